"""``format("noonmark")`` for a user of Spark: a plain session in a process of its own.

The Python of Spark's workers is, without a setting, whatever `python3` is: another one than that
of the test, which knows nothing of Noonmark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import noonmark
from noonmark.embedded.database import Embedded
from noonmark.errors import ConfigError, LockHeld, TooManyRows, UndefinedTable, UsageError
from noonmark.java import java_home
from noonmark.spark_write import Destination, TableWriter, Written
from support.serve.process import serving

CHILD = Path(__file__).parents[1] / "support" / "neighbour" / "plain_session.py"
TABLES = (
    "create schema s; create table s.keyed (a int primary key, b text, c double precision);"
    "create table plain (a int not null, d date, n numeric, e text default 'x')"
)


def run(when: str, location: Path, server: str = "") -> dict[str, Any]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK"))}
    environment["JAVA_HOME"] = java_home()
    done = subprocess.run(
        [sys.executable, str(CHILD), when, str(location), server],
        env=environment, cwd=location.parent, capture_output=True, text=True, timeout=560,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-6000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def judge(found: dict[str, Any]) -> None:
    assert found["first"] == [["1", "one", "1.5"], ["2", "two", "None"]]
    assert found["plain"] == [["3", "2026-01-02", "2.50", "x"]]
    assert "duplicate key" in found["duplicate"]
    assert found["upserted"] == [["1", "one", "1.5"], ["2", "zwei", "None"], ["3", "drei", "None"]]
    assert found["filtered"] == ["zwei"]
    assert found["replaced"] == [["drei"], ["zwei"]]
    assert found["before"] == found["moment"] == found["first"]
    # Upsert and replacement are one commit each: every row came and went at one of two times.
    assert ["2", "two", "None"] in found["times"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_session_that_was_there_before_reads_and_writes(tmp_path: Path) -> None:
    location = tmp_path / "location"
    made = Embedded(str(location), None, None, maintain=False)
    made.execute(TABLES)
    made.close()
    judge(run("after", location))
    assert sorted(row[1] for row in noonmark.read(location, "s.keyed").rows()) == ["drei", "zwei"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_later_session_writes_through_the_server(tmp_path: Path) -> None:
    location = tmp_path / "location"
    with serving(location) as server, server.connect() as connection:
        connection.execute(TABLES)
        url = f"postgresql://me@127.0.0.1:{server.pg}/noonmark"
        judge(run("before", location, url))


def test_writes_that_cannot_be(tmp_path: Path) -> None:
    """What a writer does beside the driver, without Spark."""
    location = str(tmp_path / "location")
    made = Embedded(location, None, None, maintain=False)
    made.execute(TABLES)

    def commit(path: str, rows: dict[str, list[Any]], **more: str) -> None:
        wanted = Destination.of({"location": location, "path": path, **more}, overwrite=False)
        writer = TableWriter(wanted, tuple(rows))
        batches = iter(pa.table(rows).to_batches())
        writer.commit([None, Written(b""), writer.write(batches)])

    with pytest.raises(LockHeld) as held:
        commit("plain", {"a": [1]})
    assert '"server"' in str(held.value.hint)
    made.close()
    with pytest.raises(TooManyRows, match="have the same key"):
        commit("s.keyed", {"a": [1, 1], "b": ["x", "y"]}, upsert="true")
    with pytest.raises(UsageError, match="no primary key"):
        commit("plain", {"a": [1]}, upsert="true")
    with pytest.raises(UsageError, match='no column "a"'):
        commit("s.keyed", {"b": ["x"]}, upsert="true")
    with pytest.raises(UndefinedTable):
        commit("absent", {"a": [1]})
    with pytest.raises(ConfigError, match="unknown option"):
        commit("plain", {"a": [1]}, mode="append")
    with pytest.raises(ConfigError, match="by their keys"):
        Destination.of({"location": "x", "path": "t", "upsert": "true"}, overwrite=True)
    commit("s.keyed", {"a": [1, 2]}, upsert="true")
    assert noonmark.read(location, "s.keyed").rows() == [(1, None, None), (2, None, None)]
