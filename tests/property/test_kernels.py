"""Relations by kernels are what they mean: generated queries over generated rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from noonmark.compute.contents.evaluation import contents, has_rules
from noonmark.compute.contents.order import sorted_places
from noonmark.compute.contents.pieces import Pieces, Split, columns_used, split_of
from noonmark.compute.kernel.updates import Errors, Rows, one_array
from noonmark.compute.operator.table import OPERATORS
from noonmark.compute.scalar.number import NoKernel
from noonmark.errors import EvaluationError, NoonmarkError
from noonmark.rows.arrow import from_array, to_table
from noonmark.rows.identity import hashable
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.node import walk
from noonmark.sql.meaning.relation import evaluate, in_order
from noonmark.sql.parse import plan_query
from noonmark.sql.rules import simplify
from support.house.counts import counted
from support.sql.queries import SCHEMAS
from support.sql.wide import WideGenerator

Row = tuple[Any, ...]
#: What the rules leave of no query here, and what has no kernel.
UNASKED = {"Let", "Get", "Apply", "Recursive"}

QUERIES = (
    "SELECT count(*), count(b), sum(a), avg(c), min(b), max(d), min(c) FROM t",
    "SELECT a, count(*), sum(c), min(d), max(b), bool_or(a > 1) FROM t GROUP BY a",
    "SELECT b, d, count(DISTINCT a), sum(DISTINCT a), max(c) FROM t GROUP BY b, d",
    "SELECT a, sum(c) FILTER (WHERE b > ''), stddev(a) FROM t GROUP BY a HAVING count(*) > 1",
    "SELECT * FROM t ORDER BY a DESC, c LIMIT 3 OFFSET 1",
    "SELECT * FROM t ORDER BY c NULLS FIRST LIMIT 2",
    "SELECT DISTINCT ON (a) a, b, c FROM t ORDER BY a, c DESC",
    "SELECT DISTINCT b FROM t",
    "SELECT t.b, u.x FROM t JOIN u ON t.a = u.a",
    "SELECT t.b, u.x FROM t LEFT JOIN u ON t.a = u.a AND u.x > 10",
    "SELECT t.b, u.x FROM t RIGHT JOIN u ON t.a = u.a AND t.c > 1",
    "SELECT t.b, u.x FROM t FULL JOIN u ON t.a = u.a",
    "SELECT t.b, v.k FROM t, v WHERE t.a < v.k",
    "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
    "SELECT * FROM t WHERE a NOT IN (SELECT a FROM u WHERE a IS NOT NULL)",
    "SELECT a FROM t INTERSECT ALL SELECT a FROM u",
    "SELECT a FROM t EXCEPT SELECT a FROM u",
    "SELECT a FROM t EXCEPT ALL SELECT a FROM u",
    "SELECT a FROM t UNION SELECT x FROM u",
    "SELECT a, count(*) FROM t GROUP BY GROUPING SETS ((a), ())",
    "SELECT sum(z), avg(z), max(z) FROM v",
    "SELECT 10 / a FROM t",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM t WHERE 10 / a > 1)",
    "SELECT t.a, u.x FROM t JOIN u ON t.c = u.a",
    "SELECT max(a + 0.5), min(c * 2) FROM t",
    "SELECT min(x), max(x) FROM (VALUES (1.0::numeric), (1.00), (1), (2.50), (2.5), (NULL)) v (x)",
    "SELECT a % 2, min(c::numeric * 10), max(c::numeric + 0.000) FROM t GROUP BY a % 2",
    "SELECT c::numeric + 1.0 AS x, b FROM t ORDER BY 1 DESC, 2 LIMIT 4",
    "SELECT a, row_number() OVER (PARTITION BY a ORDER BY c), sum(c) OVER (ORDER BY d, a) FROM t",
    "SELECT a, lag(b) OVER (ORDER BY a, c), rank() OVER (ORDER BY b DESC), count(*) OVER () FROM t",
    "SELECT * FROM (SELECT a, max(c) OVER (PARTITION BY b ORDER BY a ROWS 1 PRECEDING) m FROM t) x",
)  # fmt: skip


def given(rows: Mapping[Row, int], schema: Schema) -> Rows:
    """A multiset as columns."""
    table = to_table(list(rows), schema)
    columns = tuple(map(one_array, table.columns))
    count = np.array(list(rows.values()), np.int64)
    return Rows(columns, count * 0, count)


def shown(found: Rows, schema: Schema) -> Counter[str]:
    lists = [from_array(a, c.type) for a, c in zip(found.columns, schema, strict=True)]
    made: Counter[str] = Counter()
    listed = zip(*lists, strict=True) if lists else [()] * len(found)
    for row, count in zip(listed, found.diff.tolist(), strict=True):
        assert count > 0
        made[repr(tuple(map(hashable, row)))] += count
    return made


def by_kernels(plan: r.Relation, rows: Mapping[str, Mapping[Row, int]]) -> Any:
    """What the kernels say; None where they have no answer."""
    errors = Errors()
    try:
        found = contents(plan, {n: given(rows[n], SCHEMAS[n]) for n in rows}, errors)
    except NoKernel:
        return None
    return "error" if errors.found else shown(found, plan.schema)


def in_pieces(
    plan: r.Relation, rows: Mapping[str, Mapping[Row, int]], chance: random.Random
) -> Iterator[tuple[Split, Any]]:
    """What the kernels say when one of the inputs is cut, for each that may be."""
    inputs = {n: given(rows[n], SCHEMAS[n]) for n in rows}
    for name, whole in inputs.items():
        split = split_of(plan, name)
        if split is None:
            continue
        ends = sorted(chance.choices(range(len(whole) + 1), k=chance.randrange(5)))
        cuts = list(pairwise([0, *ends, len(whole)]))
        used = columns_used(plan, name)
        columns = [c if at in used else None for at, c in enumerate(whole.columns)]
        table = whole.with_columns(columns)

        def read(cut: tuple[int, int], _: Errors, table: Rows = table) -> Rows:
            return table.take(np.arange(*cut))

        others = {n: each for n, each in inputs.items() if n != name}
        errors = Errors()
        evaluation = Pieces(plan, split, others, chance.choice((1, 3)))
        try:
            found = evaluation.rows(cuts, read, errors)
        except NoKernel:
            continue
        yield split, "error" if errors.found else shown(found, plan.schema)


def meant(plan: r.Relation, rows: Mapping[str, Mapping[Row, int]]) -> Any:
    try:
        found = evaluate(plan, rows)
    except EvaluationError:
        return "error"
    made: Counter[str] = Counter()
    for row, count in found.items():
        made[repr(row)] += count
    return made


@pytest.mark.parametrize("sql", QUERIES)
def test_each_rule_is_what_it_means(sql: str) -> None:
    plan = simplify(plan_query(sql, SCHEMAS).relation)
    assert has_rules(plan)
    for seed in range(40):
        rows = WideGenerator(seed).rows()
        found = by_kernels(plan, rows)
        assert found is not None, sql
        assert found == meant(plan, rows), sql
        for split, cut in in_pieces(plan, rows, random.Random(seed)):
            assert cut == found, (sql, split.name)


def test_generated_queries_are_what_they_mean() -> None:
    asked: Counter[str] = Counter()
    cut: Counter[str] = Counter()
    for seed in range(counted(200, 2_500)):
        generator = WideGenerator(seed, 0.05)
        sql, _ = generator.query(2, [])
        try:
            plan = simplify(plan_query(sql, SCHEMAS).relation)
        except NoonmarkError:
            continue  # it is refused for everybody
        if not has_rules(plan):
            continue
        rows = generator.rows()
        found = by_kernels(plan, rows)
        if found is None:
            continue
        assert found == meant(plan, rows), sql
        for split, pieced in in_pieces(plan, rows, random.Random(seed)):
            assert pieced == found, (sql, split.name)
            cut.update({type(node).__name__ for node in (*split.chain, split.reduction)})
        asked.update({type(node).__name__ for node in walk(plan) if isinstance(node, r.Relation)})
    assert {kind.__name__ for kind in OPERATORS} - set(asked) <= UNASKED, asked
    wanted = {"Scan", "Filter", "Project", "Join", "Aggregate", "Distinct", "TopK", "NoneType"}
    assert wanted <= set(cut), cut


@pytest.mark.parametrize("order", ["a", "c DESC, b", "b NULLS FIRST, d DESC NULLS LAST", "d, a"])
def test_the_order_is_the_references(order: str) -> None:
    planned = plan_query(f"SELECT a, b, c, d FROM t ORDER BY {order}", SCHEMAS)
    plan = simplify(planned.relation)
    for seed in range(30):
        rows = WideGenerator(seed).rows()["t"]
        if not rows:
            continue
        columns = given(rows, SCHEMAS["t"])
        places = sorted_places(planned.order, columns, plan.schema)
        listed = list(rows)
        found = [listed[at] for at in places.tolist() for _ in range(rows[listed[at]])]
        assert found == in_order(rows, plan, planned.order)


def test_the_first_of_many_rows() -> None:
    chance = random.Random(5)
    rows = Counter(
        (chance.choice([None, *range(50)]), chance.choice(["a", "b", None]), None, None)
        for _ in range(30_000)
    )
    many = {
        (a, f"{b}{i}" if b else None, c, d): 1 for i, (a, b, c, d) in enumerate(rows.elements())
    }
    for sql in (
        "SELECT * FROM t ORDER BY a LIMIT 7",
        "SELECT * FROM t ORDER BY a DESC LIMIT 1000",
        "SELECT * FROM t ORDER BY a DESC NULLS LAST, b LIMIT 20 OFFSET 3",
        "SELECT * FROM t ORDER BY b NULLS FIRST LIMIT 5000",
    ):
        plan = simplify(plan_query(sql, SCHEMAS).relation)
        assert by_kernels(plan, {"t": many}) == meant(plan, {"t": many}), sql
