"""`noonmark.open`: the database inside of a process, with the caller's Spark session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import noonmark
from noonmark.errors import LockHeld, Stopped, UndefinedTable, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_execute_ask_and_follow(tmp_path: Path, spark: SparkSession) -> None:
    with noonmark.open(tmp_path) as db:
        assert (
            db.execute("create table t (a int, b text); create table u (c int)") == "CREATE TABLE"
        )
        assert db.execute("insert into t values ($1, $2), (2, null)", [1, "one"]) == "INSERT 0 2"
        answer = db.sql("select a, b, a from t where a < $1 order by 1", [9])
        assert answer.rows() == [(1, "one", 1), (2, None, 2)]
        assert answer.to_arrow().to_pydict() == {"a": [1, 2], "b": ["one", None], "a_1": [1, 2]}
        assert list(answer.to_pandas()["b"]) == ["one", None]
        assert db.spark().sparkContext is spark.sparkContext, "the caller's, not a second one"
        assert answer.to_spark().count() == 2
        steps = db.subscribe("t")
        first = next(steps)
        assert sorted(update.data[0] for update in first.updates) == [1, 2]
        db.execute("insert into t values (3, 'three')")
        changed = next(step for step in steps if step.updates)
        assert [(update.data, update.diff) for update in changed.updates] == [((3, "three"), 1)]
        assert changed.progress > changed.updates[0].time >= first.progress
        steps.close()
    # The caller's session is theirs: it lives on.
    assert spark.range(2).count() == 2
    with noonmark.open(tmp_path) as db:
        assert db.sql("select count(*) from t").rows() == [(3,)]


def test_what_goes_wrong_is_said(tmp_path: Path, spark: SparkSession) -> None:
    assert spark
    with noonmark.open(tmp_path) as db:
        with pytest.raises(UndefinedTable):
            db.sql("select * from missing")
        with pytest.raises(UsageError, match="gives no rows"):
            db.sql("create table t (a int)")
        with pytest.raises(UsageError, match="needs a client"):
            db.execute("copy t from stdin")
        assert db.sql("select * from t").rows() == []
        with pytest.raises(LockHeld):
            noonmark.open(tmp_path)
    with pytest.raises(Stopped):
        db.execute("select 1")
