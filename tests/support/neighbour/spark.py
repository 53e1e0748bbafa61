"""Spark sessions for tests: `spark` in this process's JVM, `spark_cluster` with executor processes.

Only one Spark context can live in a process, so a test session has either kind, never both at a
time: the second to be asked for stops the first. Tests of one kind therefore stand together in a
file, and `pytest_collection_modifyitems` runs all `spark_cluster` tests last, and alone: not beside
the tests of another process. Executors can import the test modules, so a function of a test may run
there.

A test's JVM lives for seconds or a few minutes, which Java's second compiler would spend with it:
the JVMs of tests, also those of processes that a test starts, have the first alone. Forty small
queries in a new session take half the processor time then. Proofs and benchmarks have both.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVA = "-XX:TieredStopAtLevel=1"


def pytest_configure() -> None:
    """Spark's launcher and its driver read these; who has set them knows why."""
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", f"{_JAVA} -XX:+UseSerialGC")
    os.environ.setdefault("SPARK_SUBMIT_OPTS", _JAVA)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Cluster tests last and alone; everything that asks for Spark carries the marker `spark`."""
    for item in items:
        asked = {"spark", "spark_cluster"} & set(getattr(item, "fixturenames", ()))
        if asked:
            item.add_marker(pytest.mark.spark)
        if "spark_cluster" in asked:
            item.add_marker(pytest.mark.alone)
    items.sort(key=lambda item: "spark_cluster" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local session for the whole run: two cores, as every machine has."""
    yield from _session("local[2]")


@pytest.fixture(scope="session")
def spark_cluster() -> Iterator[SparkSession]:
    """Two executor processes of one core each: what pickles, what is shared, what is not."""
    yield from _session("local-cluster[2,1,1024]")


def _session(master: str) -> Iterator[SparkSession]:
    from noonmark.compute.jvm.session import java_options, spark_session, stop_session

    stop_session()
    tests = Path(__file__).resolve().parents[2]
    # An executor imports the product from where this process does.
    path = [os.environ.get("PYTHONPATH"), str(tests.parent), str(tests)]
    options = {
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, path)),
        "spark.executor.extraJavaOptions": f"{java_options()} {_JAVA}",
    }
    session = spark_session(master=master, app="noonmark-tests", options=options)
    application = session.sparkContext.applicationId
    yield session
    stop_session()
    _remove_work_of(application)


def _remove_work_of(application: str) -> None:
    """Executor processes leave a folder of logs below Spark's own, and Spark never removes it."""
    import pyspark

    shutil.rmtree(Path(pyspark.__file__).parent / "work" / application, ignore_errors=True)
