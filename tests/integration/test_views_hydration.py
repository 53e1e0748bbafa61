"""Hydration as one Spark batch, against the definition: every operator that Spark computes itself.

Law (`noonmark.compute.spark.whole`): what Spark's joins, aggregates and windows make of contents is
what the operator means. The rows, the errors and the arrangements of a view are stored by one
query.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from noonmark import persist
from noonmark.compute.incremental.output import FIRST_MAX, ViewOutput
from noonmark.compute.plan.definition import Definition, errors_name
from noonmark.compute.spark import stage, whole
from noonmark.compute.view.audit import audit_view
from noonmark.compute.view.dataflow import Dataflow
from noonmark.compute.view.view import View
from noonmark.errors import Corrupt
from noonmark.persist.client import Client, Options
from noonmark.persist.config import Config
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.node import walk
from support.view.views import SCHEMAS, answer, seeded_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TIME = 4
COUNT = "SELECT count(*) AS n FROM l WHERE k < 100"
NOTHING = "SELECT k FROM l ORDER BY k LIMIT 0"

#: By Spark's own operators, all of them.
NATIVE = {
    "left_on": "SELECT l.k, v, w FROM l LEFT JOIN r ON l.k = r.k AND v <= w",
    "right": "SELECT l.k, v, r.k AS rk, w FROM l RIGHT JOIN r ON l.k = r.k",
    "both": "SELECT l.k, v, r.k AS rk, w FROM l FULL JOIN r ON l.k = r.k AND v < w",
    "semi": "SELECT k, v, s FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND w > v)",
    "anti": "SELECT k, v, s FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k)",
    "folds": "SELECT k, min(v) AS low, max(s) AS high, count(DISTINCT v) AS n, sum(v) AS total, "
    "bool_and(v > 0) AS every, bool_or(v > 1) FILTER (WHERE s IS NOT NULL) AS some "
    "FROM l GROUP BY k",
    "fold": "SELECT min(v) AS low, max(s) AS high, avg(v) AS mean FROM l",
    "first": "SELECT DISTINCT ON (k) k, v, s FROM l ORDER BY k, v DESC NULLS LAST",
    "page": "SELECT k, v, s FROM l ORDER BY s NULLS FIRST, v DESC LIMIT 4 OFFSET 2",
    "doubles": "SELECT k, v FROM (SELECT k, v FROM l UNION ALL SELECT k, v FROM l) t "
    "ORDER BY v LIMIT 5 OFFSET 1",
}
#: Of those, the ones whose first rows are found in what is kept as a whole.
FIRST = ("page", "doubles")
#: Made of accumulators as those are stored (`noonmark.compute.incremental.output`).
SHOWN = {
    "sums": "SELECT k, count(*) AS n, sum(v) AS total, avg(v) AS mean FROM l GROUP BY k",
    "some": "SELECT k + 1 AS k1, total FROM (SELECT k, count(*) AS n, sum(v) AS total FROM l "
    "GROUP BY k) t WHERE n > 1 AND total IS NOT NULL",
    "one": "SELECT count(*) AS n, sum(v) + 1 AS more FROM l WHERE v > 100",
    "largest": "SELECT k, sum(v) AS total FROM l GROUP BY k ORDER BY total DESC NULLS LAST LIMIT 2",
    "later": "SELECT n + 1 AS n1 FROM (SELECT k, count(*) AS n FROM l GROUP BY k "
    "ORDER BY n, k DESC LIMIT 3 OFFSET 1) t WHERE n > 0",
}
#: With errors beside the rows.
FAILING = {
    "shown_fails": "SELECT k, 6 / (count(*) - count(k)) AS ratio FROM l GROUP BY k",
    "first_fails": "SELECT 6 / (n - m) AS ratio FROM (SELECT count(*) AS n, count(k) AS m FROM l "
    "GROUP BY k ORDER BY m DESC LIMIT 1) t",
    "sums_fail": "SELECT k, sum(6 / v) AS total FROM l GROUP BY k",
    "fails": "SELECT k, max(6 / v) AS ratio FROM l GROUP BY k",
    "left_fails": "SELECT l.k, w FROM l LEFT JOIN r ON 6 / l.v = r.k",
}


def hydrated(client: Client, spark: SparkSession, views: dict[str, str]) -> Dataflow:
    """The views, brought up by Spark however small they are."""
    flow = Dataflow()
    for name, sql in views.items():
        flow.add(View(client, lambda: spark, Definition.of_sql(name, sql, SCHEMAS)).start())
        flow.views[name].task_bytes_max = -1
    flow.tick()
    assert flow.failures == {}
    return flow


def is_native(node: r.Relation) -> bool:
    """Whether Spark itself computes an operator with a key."""
    if isinstance(node, r.Join):
        return whole.is_native_join(node)
    if isinstance(node, r.Aggregate):
        return whole.is_native_aggregate(node)
    return isinstance(node, r.TopK) and whole.is_native_top_k(node)


@pytest.mark.parametrize("rows_max", [3, 1_000_000], ids=["many runs", "one run"])
def test_what_spark_computes_is_what_is_meant(
    tmp_path: Path, spark: SparkSession, rows_max: int
) -> None:
    history = seeded_history(12, TIME + 1)
    options = Options(notify_host=None, config=Config(part_rows_max=rows_max))
    with persist.open(tmp_path, options=options) as client:
        for name, schema in SCHEMAS.items():
            updates = [each for each in history[name] if each.time <= TIME]
            handle = client.create_or_load(name, schema)[0]
            handle.compare_and_append(updates, 0, TIME + 1).result()
        flow = hydrated(client, spark, NATIVE | SHOWN | FAILING)

        def stored(name: str) -> object:
            failed = client.create_or_load(errors_name(name))[1].snapshot(TIME).result().counts()
            rows = client.create_or_load(name)[1].snapshot(TIME).result().counts()
            return "error" if failed else dict(rows)

        plans = {name: view.definition.plan for name, view in flow.views.items()}
        wrong = {
            name: (stored(name), wanted)
            for name, plan in plans.items()
            if stored(name) != (wanted := answer(plan, history, TIME))
        }
        assert wrong == {}
        assert {name for name in FAILING if stored(name) == "error"} >= FAILING.keys() - {
            "left_fails"
        }
        assert all(ViewOutput.of_plan(plans[name]) is not None for name in (*SHOWN, *FIRST))
        # Those were found by the tasks that store, from what is kept; an audit asks Spark.
        assert [found for name in FIRST if (found := audit_view(flow.views[name], TIME))] == []
    for name in NATIVE:
        keyed = [x for x in walk(plans[name]) if isinstance(x, r.Join | r.Aggregate | r.TopK)]
        apart = [x for x in keyed if isinstance(x, r.Join) and x.kind is r.JoinKind.INNER]
        assert len(keyed) > len(apart)
        assert all(is_native(x) for x in keyed if x not in apart), name


def test_only_few_first_rows_are_found_by_the_driver() -> None:
    few, many = (
        f"SELECT k, count(*) AS n FROM l GROUP BY k ORDER BY n, k LIMIT {limit}"
        for limit in (FIRST_MAX, FIRST_MAX + 1)
    )
    assert ViewOutput.of_plan(Definition.of_sql("few", few, SCHEMAS).plan) is not None
    assert ViewOutput.of_plan(Definition.of_sql("many", many, SCHEMAS).plan) is None


def test_an_arrangement_is_computed_with_its_view(tmp_path: Path, spark: SparkSession) -> None:
    """The accumulators are read by both, and computed once: no job reads the input again."""
    sql = "SELECT k, count(*) AS n, sum(v) AS total FROM l GROUP BY k"
    with persist.open(tmp_path, options=Options(notify_host=None)) as client:
        handle = client.create_or_load("l", SCHEMAS["l"])[0]
        rows = [persist.Update((at % 7, at, "x"), 1, 1) for at in range(1_000)]
        handle.compare_and_append(rows, 0, 2).result()
        flow = hydrated(client, spark, {"sums": sql})
        (arrangement,) = flow.views["sums"].arrangements()
        kept = client.create_or_load(arrangement.name)[1].snapshot(1).result().counts()
        shown = client.create_or_load("sums")[1].snapshot(1).result().counts()
        assert {(row[0], row[1]) for row in kept} == {(row[0], row[1]) for row in shown}
        assert len(shown) == 7
        (record,) = flow.records
        assert record.jobs <= 4


@pytest.mark.parametrize("bytes_max", [stage.CHECK_BYTES_MAX, 0], ids=["in a task", "beside"])
@pytest.mark.parametrize("sql", [COUNT, NOTHING], ids=["count", "nothing"])
def test_a_damaged_part_is_named_and_nothing_is_committed(
    tmp_path: Path, spark: SparkSession, sql: str, bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query does not read the column that is damaged, or nothing at all."""
    monkeypatch.setattr(stage, "CHECK_BYTES_MAX", bytes_max)
    with persist.open(tmp_path, options=Options(notify_host=None)) as client:
        handle = client.create_or_load("l", SCHEMAS["l"])[0]
        rows = [persist.Update((at, at % 7, f"row {at}"), 1, 1) for at in range(20_000)]
        handle.compare_and_append(rows, 0, 2).result()
        (part,) = [each for b in client.state.collection("l").batches for each in b.parts]
        file = tmp_path / part.key
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        view = View(client, lambda: spark, Definition.of_sql("n", sql, SCHEMAS)).start()
        view.task_bytes_max = -1
        with pytest.raises(Corrupt, match=part.key):
            view.tick()
        assert not view.is_hydrated
