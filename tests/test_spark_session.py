"""The session: reuse of the caller's, the settings that carry meaning, and real executors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from noonmark.compute.jvm import session as sessions
from noonmark.errors import ConfigError

pytestmark = pytest.mark.alone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def process_ids(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on executors: the Python worker, its parent JVM's executor, its interpreter."""
    list(batches)
    yield pa.record_batch({"pid": [os.getpid()], "python": [sys.executable]})


def test_the_active_session_is_reused(spark: SparkSession) -> None:
    found = sessions.spark_session(master="local[1]", app="other")
    assert found.sparkContext is spark.sparkContext
    assert spark.sparkContext.defaultParallelism == 2


def test_a_session_of_the_caller_keeps_its_settings(spark: SparkSession) -> None:
    callers = spark.newSession()
    callers.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    callers.conf.set("spark.sql.ansi.enabled", "false")
    for derive in (sessions.for_ticks, sessions.for_batches):
        derived = derive(callers)
        assert {name: derived.conf.get(name) for name in sessions.MEANING} == sessions.MEANING
    assert callers.conf.get("spark.sql.session.timeZone") == "Asia/Kathmandu"
    assert callers.conf.get("spark.sql.ansi.enabled") == "false"


def test_ticks_and_batches_differ_in_tempo_alone(spark: SparkSession) -> None:
    ticks, batches = sessions.for_ticks(spark), sessions.for_batches(spark)
    assert ticks.conf.get("spark.sql.adaptive.enabled") == "false"
    assert ticks.conf.get("spark.sql.shuffle.partitions") == "2"
    assert batches.conf.get("spark.sql.adaptive.enabled") == "true"
    assert int(batches.conf.get("spark.sql.shuffle.partitions") or 0) >= 16
    query = "select id % 3 as k, sum(id) as total from range(100) group by 1 order by 1"
    assert ticks.sql(query).toArrow() == batches.sql(query).toArrow()


def test_nothing_listens_beyond_this_machine(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.driver.host") == "127.0.0.1"
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None


def test_the_environment_of_the_caller_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/the/callers")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with sessions._environment({"JAVA_HOME": "/ours", "SPARK_HOME": "/ours"}):
        assert os.environ["JAVA_HOME"] == os.environ["SPARK_HOME"] == "/ours"
    assert os.environ["JAVA_HOME"] == "/the/callers"
    assert "SPARK_HOME" not in os.environ


def test_workers_run_the_interpreter_of_the_driver(spark: SparkSession) -> None:
    seen = spark.range(1).mapInArrow(process_ids, "pid long, python string").toArrow()
    assert set(seen.column("python").to_pylist()) == {sys.executable}


def test_a_master_that_cannot_work_is_a_config_error(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "from noonmark.compute.jvm.session import spark_session\n"
        "from noonmark.errors import ConfigError\n"
        "try:\n"
        "    spark_session(master='nonsense')\n"
        "except ConfigError as error:\n"
        "    print(error.message)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "Spark did not start on nonsense\n"


def test_a_pyspark_that_is_not_installed_is_a_config_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="pyspark is not installed"):
        sessions._launch_environment("local[2]")


def test_executors_are_processes_of_their_own(spark_cluster: SparkSession) -> None:
    frame = spark_cluster.range(0, 4, 1, 4).mapInArrow(process_ids, "pid long, python string")
    seen = frame.toArrow()
    assert seen.num_rows == 4
    assert os.getpid() not in seen.column("pid").to_pylist()
    assert set(seen.column("python").to_pylist()) == {sys.executable}
    assert spark_cluster.range(1000).groupBy().sum("id").toArrow().column(0).to_pylist() == [499500]


KILLED_WHILE_IT_STARTS = """
import threading
from noonmark.compute.jvm.session import import_spark, spark_session
import_spark()
from pyspark import SparkContext
def kill():
    while getattr(SparkContext._gateway, "proc", None) is None:
        threading.Event().wait(0.01)
    SparkContext._gateway.proc.kill()
    SparkContext._gateway.proc.wait()
threading.Thread(target=kill, daemon=True).start()
try:
    spark_session("local[1]")
except OSError:
    print(spark_session("local[1]").range(3).count())
"""


def test_a_jvm_that_died_while_it_started_is_followed_by_another() -> None:
    said = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_IT_STARTS],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert said.stdout.split() == ["3"]
