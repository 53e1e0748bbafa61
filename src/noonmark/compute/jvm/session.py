"""The Spark session: the caller's if there is one, else ours, started with a fit Java.

Law (same meaning everywhere): a session from `for_ticks` or `for_batches` has every setting of
`MEANING`, whoever built the session that it came from. Those settings decide what rows a query
gives; all others decide only how fast. A caller's own session is never changed: both functions
derive another one on the same Spark context, the same one whenever they are asked.

Two tempos. A tick is a handful of small jobs: adaptive execution is off, because it runs each
shuffle stage as a job of its own before it plans the next, and there is one partition per core. A
batch (a snapshot, a hydration, a big compaction) has adaptive execution on, so that Spark cuts
its partitions to fit.

Measured on 2 busy cores, warm, settings alternating in one session, median of 20 rounds over
1,000 rows (ms): two stages (group and sum) 92 with Spark's defaults, 88 with 2 partitions, 62 with
adaptive execution off too; a self-join and two aggregates 231, 181, 156; one stage 34 to 46 and
`mapInArrow` 99 to 110 whatever the settings. A start takes 5.4 to 6 s for the JVM and 2 s for the
first query on quiet cores, with Spark's defaults and with ours: the difference is within the noise.

Where it runs: driver.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

from noonmark.compute.jvm import archive
from noonmark.compute.jvm.daemon import MODULE as DAEMON
from noonmark.compute.jvm.lost import forget_dead_jvm
from noonmark.errors import ConfigError
from noonmark.java import java_home
from noonmark.source.outgoing import ALLOW, DENY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: For parts that must not know Spark: what they pass on.
Session: TypeAlias = "SparkSession"
Frame: TypeAlias = "DataFrame"
#: How such a part is given a session: asked for when it is needed.
OpenSession: TypeAlias = "Callable[[], SparkSession]"

MEANING = {
    "spark.sql.ansi.enabled": "true",
    # A sum or product keeps its digits after the point; without room for them it is no value.
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}

# One context lives as long as the process: what Spark keeps about past jobs must stay bounded.
_CONTEXT = {
    "spark.locality.wait": "0s",
    # Where in this package a column was made is of no use to anybody, and takes half of the time.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.sql.ui.retainedExecutions": "50",
    "spark.ui.enabled": "false",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "2000",
    "spark.ui.showConsoleProgress": "false",
}

#: The sessions that were derived from a session, by their settings.
Settings: TypeAlias = "tuple[tuple[str, str], ...]"
_DERIVED: WeakKeyDictionary[SparkSession, dict[Settings, SparkSession]] = WeakKeyDictionary()

#: How many resident tasks a session has room for (`noonmark.compute.runner.resident`).
RESIDENTS = "spark.noonmark.residents"
#: As many as the session has room for.
AUTOMATIC = "auto"
#: On this machine there is one a core, up to so many: each is a process with what it has open.
_RESIDENTS_MAX = 4
_LOCAL = re.compile(r"local(?:\[(\d+|\*)((?:,\d+)?)\])?")

#: The Java that was found, by what the environment says of it.
_FOUND_JAVA: dict[tuple[str | None, str | None], str] = {}
_IMPORTING = threading.Lock()
#: What is imported with Spark, so that nobody does it on a loop later.
_OVER_SPARK = (
    "noonmark.compute.view.dataflow",
    "noonmark.compute.runner.resident.runner",
    "noonmark.compute.runner.processes",
    "noonmark.compute.view.explain",
)
_LOOPBACK = "127.0.0.1"
_GIB = 1 << 30
_BATCH_PARTITIONS_MIN = 16


def spark_session(
    master: str = "local[*]", app: str = "noonmark", options: Mapping[str, str] | None = None
) -> SparkSession:
    """The active session of this process, or a new one on `master`.

    Args:
        master: where to run, as Spark spells it: ``local[4]``, ``spark://host:port``, ``yarn``, ...
        app: the name that a cluster shows.
        options: Spark settings of the caller; they win over ours.

    Raises:
        ConfigError: no fit Java, or a Spark that does not start with these options.
    """
    import_spark()
    forget_dead_jvm()
    return active_session() or _new_session(master, app, dict(options or {}))


def import_spark() -> None:
    """Import Spark's modules and ours over them, in one thread at a time.

    Threads that begin to import them at once, each at another end, see each other's half.
    """
    with _IMPORTING:
        for name in _OVER_SPARK:
            import_module(name)


def spark_is_imported() -> bool:
    """Whether `import_spark` returns at once."""
    return _OVER_SPARK[-1] in sys.modules and not _IMPORTING.locked()


def active_session() -> SparkSession | None:
    """The caller's session on the live Spark context of this process, if there is one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # A context without a session in this thread still has its default session.
    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def stop_session() -> None:
    """Stop the live Spark context of this process, if there is one."""
    if session := active_session():
        session.stop()


def for_ticks(session: SparkSession) -> SparkSession:
    """A session on the same context for many small jobs, one after another."""
    return _derive(
        session,
        {
            "spark.sql.adaptive.enabled": "false",
            # A broadcast is a job of its own; rows in one partition meet without it.
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.sql.shuffle.partitions": str(_cores(session)),
        },
    )


def for_batches(session: SparkSession) -> SparkSession:
    """A session on the same context for one big job."""
    return _derive(
        session,
        {
            "spark.sql.adaptive.enabled": "true",
            "spark.sql.shuffle.partitions": str(max(_BATCH_PARTITIONS_MIN, 4 * _cores(session))),
        },
    )


def _derive(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """The session with these settings; made once, because it brings a catalog and rules along."""
    wanted = {**MEANING, **settings}
    known = _DERIVED.setdefault(session, {})
    name = tuple(sorted(wanted.items()))
    if name not in known:
        derived = session.newSession()
        for key, value in wanted.items():
            derived.conf.set(key, value)
        known[name] = derived
    return known[name]


def _cores(session: SparkSession) -> int:
    return max(1, session.sparkContext.defaultParallelism)


def _new_session(master: str, app: str, options: Mapping[str, str]) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    settings = {**MEANING, **_CONTEXT, **_local_settings(master), **_policy(), **options}
    widened, room = with_room(master, options)
    settings = {**room, **settings}
    builder = SparkSession.builder.master(widened).appName(app)
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _environment(_launch_environment(master)):
        try:
            return builder.getOrCreate()
        except PySparkException as error:
            raise ConfigError(
                f"Spark did not start on {master}",
                detail=str(error),
                hint="Check the master and the options; Spark's own words are on standard error.",
            ) from error


def with_room(master: str, options: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A master on this machine with cores for residents beside those for jobs, and its settings."""
    local = _LOCAL.fullmatch(master)
    if local is None:
        # Said, because a JVM that had another session before remembers what that one was told.
        return master, {RESIDENTS: AUTOMATIC}
    cores = os.cpu_count() or 1 if local[1] == "*" else int(local[1] or 1)
    residents = int(options.get(RESIDENTS, min(cores, _RESIDENTS_MAX)))
    settings = {RESIDENTS: str(residents), "spark.default.parallelism": str(cores)}
    return f"local[{cores + residents}{local[2] or ''}]", settings


def _policy() -> dict[str, str]:
    """Where connections may go, for executors: what this process was told."""
    told = ((name, os.environ.get(name)) for name in (ALLOW, DENY))
    return {f"spark.executorEnv.{name}": value for name, value in told if value is not None}


def _local_settings(master: str) -> dict[str, str]:
    """What only holds where driver and executors share this machine: loopback, files, memory."""
    if not master.startswith("local"):
        return {}
    # Executors of their own may have other code than the driver.
    has_own = master.startswith("local-cluster")
    return {
        "spark.python.daemon.module": "pyspark.daemon" if has_own else DAEMON,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.extraJavaOptions": f"{java_options()} {archive.use(java_home_once())}",
        "spark.driver.host": _LOOPBACK,
        "spark.driver.memory": f"{_driver_memory_bytes() >> 20}m",
        "spark.executor.extraJavaOptions": java_options(),
        "spark.sql.shuffle.partitions": str(max(_BATCH_PARTITIONS_MIN, 4 * (os.cpu_count() or 1))),
    }


def java_options() -> str:
    """What Java is told on this machine."""
    logging = Path(__file__).with_name("log4j2.properties").as_uri()
    return f"-Dlog4j2.configurationFile={logging} -Duser.timezone=UTC"


def _driver_memory_bytes() -> int:
    """A quarter of the memory that this process may have, between 1 and 8 GiB."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file() and (text := limit.read_text().strip()).isdigit():
        memory = min(memory, int(text))
    return min(max(memory // 4, _GIB), 8 * _GIB)


def _launch_environment(master: str) -> dict[str, str]:
    """What the JVM and the Python workers inherit when the context starts."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigError("pyspark is not installed")
    environment = {
        "JAVA_HOME": java_home_once(),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # `local-cluster` starts its executors from here, also when another Spark is on PATH.
        "SPARK_HOME": str(Path(spec.origin).parent),
    }
    if master.startswith("local"):
        environment["SPARK_LOCAL_IP"] = _LOOPBACK
    return environment


def java_home_once() -> str:
    """Java is looked for once, as long as what was found is there: a start takes long enough."""
    asked = os.environ.get("JAVA_HOME"), os.environ.get("PATH")
    found = _FOUND_JAVA.get(asked)
    if found is None or not os.access(Path(found) / "bin" / "java", os.X_OK):
        found = _FOUND_JAVA[asked] = java_home()
    return found


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for the length of a block: the caller's own are put back."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
