"""Every operator of the table in every engine, against what its relation means.

Law (`noonmark.compute.operator.base`): over generated histories, with rows that come, go and are
there several times, at several times a tick,

    delta       the changes of the kernels, added to what was there, are the meaning at every time,
                in one task and cut over several
    contents    the kernels over the contents of the inputs are the meaning
    Spark       Spark's form over the same is the meaning

An operator that no case exercises fails the suite, and so does one that an engine lacks without
being listed here.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from noonmark.compute.contents.evaluation import contents as by_kernels
from noonmark.compute.contents.evaluation import has_rules
from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.kernel.updates import Errors, Rows
from noonmark.compute.operator.table import OPERATORS
from noonmark.compute.plan.definition import Definition
from noonmark.compute.plan.keys import over_scans
from noonmark.compute.plan.pushdown import operators
from noonmark.compute.scalar.number import NoKernel
from noonmark.rows.arrow import conform, from_array, from_table, to_array, to_table
from noonmark.rows.identity import hashable
from noonmark.rows.schema import Column, Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.node import walk
from noonmark.sql.parse import plan_query
from noonmark.tvc import Update
from support.view.views import SCHEMAS, History, answer, contents, seeded_history
from support.view.walk import Walker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMES, BEGUN, TICKS = 9, 2, (4, 5, 9)
RECURSIVE = """WITH RECURSIVE near (k, n) AS (
    SELECT k, 0 FROM l UNION SELECT near.k, n + 1 FROM near JOIN r ON near.k = r.k WHERE n < 2
) SELECT k, n FROM near"""

SHARED = "WITH x AS (SELECT k, v FROM l) SELECT a.k FROM x a JOIN x b ON a.v = b.v"

#: For each operator queries in whose plans it stands: as it is maintained, and as it is asked.
CASES: dict[type[r.Relation], tuple[str, ...]] = {
    r.Scan: ("SELECT k, v, s FROM l",),
    r.Constant: (
        "SELECT l.k, n FROM l JOIN (VALUES (1, 10), (2, 20), (2, 20)) x (k, n) USING (k)",
    ),
    r.Filter: ("SELECT k, v FROM l WHERE v > 0 OR s IS NULL", "SELECT k FROM l WHERE 6 / v > 1"),
    r.Project: ("SELECT v + 1 AS a, s || 'x' AS b FROM l", "SELECT 6 / v AS a FROM l"),
    r.FlatMap: ("SELECT k, n FROM l, generate_series(1, v) AS g (n)",),
    r.Union: ("SELECT k, v FROM l UNION ALL SELECT k, w FROM r",),
    r.Join: (
        "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k AND v <= w",
        "SELECT a.k, b.v, w FROM l a JOIN l b ON a.k = b.k JOIN r ON r.k = b.k",
        "SELECT l.k, v, w FROM l LEFT JOIN r ON l.k = r.k AND v <= w",
        "SELECT l.k, v, w FROM l RIGHT JOIN r ON l.k = r.k",
        "SELECT l.k, v, w FROM l FULL JOIN r ON l.k = r.k AND v <= w",
        "SELECT k, v FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k)",
        "SELECT k, v FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k)",
        "SELECT k, v FROM l WHERE v > (SELECT avg(w) FROM r)",
    ),
    r.Aggregate: (
        "SELECT k, count(*) AS n, sum(v) AS total, avg(v) AS mean FROM l GROUP BY k",
        "SELECT count(*) AS n, sum(v) AS total, stddev(v) AS spread FROM l",
        "SELECT k, min(v) AS low, max(s) AS high, count(DISTINCT v) AS n FROM l GROUP BY k",
        "SELECT k, string_agg(s, ',' ORDER BY s) AS all_of FROM l GROUP BY k",
        "SELECT n, count(*) AS m FROM (SELECT k, count(*) AS n FROM l GROUP BY k) x GROUP BY n",
        "SELECT x.k, n, m FROM (SELECT k, count(*) AS n FROM l GROUP BY k) x "
        "JOIN (SELECT k, max(w) AS m FROM r GROUP BY k) y ON x.k = y.k",
    ),
    r.Distinct: ("SELECT DISTINCT k, s FROM l", "SELECT DISTINCT v::float8 AS x FROM l"),
    r.Intersect: (
        "SELECT k, v FROM l INTERSECT SELECT k, w FROM r",
        "SELECT k, v FROM l INTERSECT ALL SELECT k, w FROM r",
    ),
    r.Except: (
        "SELECT k, v FROM l EXCEPT SELECT k, w FROM r",
        "SELECT k, v FROM l EXCEPT ALL SELECT k, w FROM r",
    ),
    r.TopK: (
        "SELECT k, v, s FROM l ORDER BY v DESC, s LIMIT 3 OFFSET 1",
        "SELECT DISTINCT ON (k) k, v, s FROM l ORDER BY k, v DESC, s",
        "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k ORDER BY v, w DESC LIMIT 2",
    ),
    r.Window: (
        "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM l",
        "SELECT k, sum(v) OVER (PARTITION BY k) AS total FROM l",
    ),
    r.Recursive: (RECURSIVE,),
    r.Let: (
        "WITH x AS MATERIALIZED (SELECT k, v FROM l) SELECT a.k FROM x a JOIN x b ON a.v = b.v",
    ),
    r.Get: (
        "WITH x AS MATERIALIZED (SELECT k, v FROM l) SELECT a.k FROM x a JOIN x b ON a.v = b.v",
    ),
}
#: What a plan has before it is maintained or read, and no engine sees.
NOT_EVALUATED = {r.Apply}
#: What stands in no plan that is maintained: names are replaced by what they are bound to.
NOT_MAINTAINED = {r.Let, r.Get}
#: What the kernels leave to another engine when a query is read.
NOT_READ_BY_KERNELS = {r.Recursive}
#: Each is a job: of every operator the first query, and of joins one of each kind.
BY_SPARK = tuple(dict.fromkeys([*(each[0] for each in CASES.values()), *CASES[r.Join][2:7]]))
QUERIES = tuple(dict.fromkeys(sql for each in CASES.values() for sql in each))


def definition(number: int) -> Definition:
    return Definition.of_sql(f"view_{number}", QUERIES[number], SCHEMAS)


DEFINITIONS = [definition(at) for at in range(len(QUERIES))]


def test_every_operator_of_the_table_is_exercised() -> None:
    assert CASES.keys() | NOT_EVALUATED == OPERATORS.keys()
    for kind, queries in CASES.items():
        for sql in queries:
            written = plan_query(sql, SCHEMAS).relation
            plans = [written, DEFINITIONS[QUERIES.index(sql)].plan]
            assert any(isinstance(n, kind) for p in plans for n in walk(p)), (kind, sql)
    maintained = {type(node) for each in DEFINITIONS for node in operators(each.plan)}
    assert maintained == CASES.keys() - NOT_MAINTAINED


def later(history: History) -> History:
    return {n: [Update(u.data, u.time + 1, u.diff) for u in us] for n, us in history.items()}


@pytest.mark.parametrize("tasks", [0, 3], ids=["one task", "three tasks"])
@pytest.mark.parametrize("seed", [4, 11])
def test_delta_by_kernels(tmp_path: Path, seed: int, tasks: int) -> None:
    history = later(seeded_history(seed, TIMES - 1))
    walker = Walker(tmp_path, SCHEMAS, {"l": ("k",)} if seed % 2 else {}, tasks=tasks)
    walker.write(history, BEGUN + 1)
    for each in DEFINITIONS:
        walker.create(each)
    for last in TICKS:
        walker.write(history, last + 1)
        for each in DEFINITIONS:
            walker.tick(each.name)
    wrong = [
        (each.sql, time, got, want)
        for each in DEFINITIONS
        for time in range(BEGUN, TIMES + 1)
        if (got := walker.at(each.name, time)) != (want := answer(each.plan, history, time))
    ]
    assert bool(walker.cut) == bool(tasks)
    walker.stop()
    assert wrong[:2] == []


def rows_at(history: History, name: str, time: int) -> Rows:
    there = contents(history[name], time)
    columns = [to_array([row[i] for row in there], c.type) for i, c in enumerate(SCHEMAS[name])]
    counts = np.array(list(there.values()), np.int64)
    return Rows(tuple(columns), np.zeros(len(there), np.int64), counts)


def counted(rows: Rows, schema: Schema) -> dict[Any, int]:
    values = [from_array(column, c.type) for column, c in zip(rows.columns, schema, strict=True)]
    found: Counter[Any] = Counter()
    for row, diff in zip(zip(*values, strict=True), rows.diff.tolist(), strict=True):
        found[tuple(map(hashable, row))] += diff
    return {row: count for row, count in found.items() if count}


def test_contents_by_kernels() -> None:
    answered: set[type[r.Relation]] = set()
    for seed in range(6):
        history = seeded_history(seed, TIMES)
        for each in DEFINITIONS:
            for plan in (each.written, each.plan):
                if not has_rules(plan):
                    continue
                inputs = {n: rows_at(history, n, TIMES - 1) for n in r.scans(plan)}
                errors = Errors()
                try:
                    made = by_kernels(plan, inputs, errors)
                except NoKernel:
                    continue
                got = "error" if errors.found else counted(made, plan.schema)
                assert got == answer(plan, history, TIMES - 1), (each.sql, plan)
                answered |= {type(node) for node in walk(plan) if isinstance(node, r.Relation)}
    assert answered == CASES.keys() - NOT_READ_BY_KERNELS


def test_an_operator_alone_stands_on_collections() -> None:
    for each in DEFINITIONS:
        for node in operators(each.plan):
            if OPERATORS[type(node)].sides(node):
                assert all(name.isdigit() for name in r.scans(over_scans(node)))


@pytest.mark.spark
def test_contents_by_spark(spark: SparkSession) -> None:
    from noonmark.compute.spark.contents import FORMS, BatchQuery
    from noonmark.compute.spark.frame import local_frame, names
    from noonmark.compute.spark.keyed import as_updates

    assert FORMS.keys() == OPERATORS.keys()
    history = seeded_history(5, TIMES)

    def read(scan: r.Scan) -> Any:
        there = contents(history[scan.collection], TIMES - 1)
        rows = [row for row, count in there.items() for _ in range(count)]
        table = to_table(rows, scan.columns).rename_columns(names(len(scan.columns)))
        return local_frame(spark, as_updates(table, len(rows)), scan.schema)

    batch = BatchQuery(spark, read, inputs_fail=False, now=TIMES - 1)
    for each in (DEFINITIONS[QUERIES.index(sql)] for sql in BY_SPARK):
        want = answer(each.plan, history, TIMES - 1)
        table = batch.frame(each.plan).toArrow()
        if want == "error":
            assert table.column(ERROR).null_count < table.num_rows, each.sql
            continue
        assert table.column(ERROR).null_count == table.num_rows, each.sql
        free = Schema(tuple(Column(c.name, c.type) for c in each.plan.schema))
        data = table.select(range(len(free))).rename_columns(list(free.names))
        got: Counter[Any] = Counter()
        diffs = table.column("_diff").to_pylist()
        for row, diff in zip(from_table(conform(data, free), free), diffs, strict=True):
            got[tuple(map(hashable, row))] += diff
        assert {row: count for row, count in got.items() if count} == want, each.sql
