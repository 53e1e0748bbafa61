"""Plans as they are evaluated for users against their plain meaning; and how the time grows."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noonmark.compute.contents.evaluation import by_kernel
from noonmark.compute.kernel.updates import from_table
from noonmark.errors import EvaluationError
from noonmark.persist.part.run import DIFF, TIME
from noonmark.rows.arrow import from_array, to_table
from noonmark.rows.numeral import numeral
from noonmark.rows.schema import Schema
from noonmark.rows.value import Interval
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.node import walk_once
from noonmark.sql.meaning.evaluation import contents
from noonmark.sql.meaning.relation import evaluate
from noonmark.sql.parse import plan_query
from noonmark.sql.rules import simplify

SCHEMAS = {
    "t": Schema.of(
        k="bigint", i="integer", b="bigint", n="numeric", p="numeric(10,2)", f="double precision",
        g="real", y="interval", s="text", o="boolean",
    ),
    "e": Schema.of(a="bigint", b="bigint"),
}  # fmt: skip
POOLS: tuple[tuple[Any, ...], ...] = (
    (None, 1, 2, 3),
    (None, 0, 1, 2, 3, 7, -3),
    (None, 5, -(2**62), 2**62),
    (None, *(numeral(Decimal(text)) for text in ("1.50", "-2", "1000", "NaN"))),
    (None, Decimal("0.01"), Decimal("-7.25")),
    (None, 0.1, -0.0, 1e300, math.inf, -math.inf, math.nan),
    (None, 0.5, 2.0),
    (None, Interval(1, 2, 3), Interval(0, -1, 5)),
    (None, "a", "b", "ab"),
    (None, True, False),
)
CALLS = (
    "row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(3)",
    "lag(s)", "lead(i, 2, 9)", "first_value(s)", "last_value(n)", "nth_value(i, 2)",
    "count(*)", "count(s)", "sum(i)", "sum(b)", "sum(n)", "sum(p)", "sum(f)", "sum(g)", "sum(y)",
    "avg(i)", "avg(n)", "avg(p)", "avg(f)", "avg(y)", "min(n)", "max(f)", "min(s)", "max(y)",
    "bool_and(o)", "bool_or(o)", "every(o)", "bit_and(i)", "bit_or(b)", "bit_xor(i)",
    "any_value(s)", "stddev(i)", "var_pop(n)", "stddev_samp(f)", "variance(g)",
    "string_agg(s, '-')", "array_agg(i)", "jsonb_agg(s)", "sum(i) FILTER (WHERE o)",
    "count(*) FILTER (WHERE i > 0)", "sum(10 / i) FILTER (WHERE i <> 0)", "max(1 / i)",
    "corr(f, g)", "regr_count(i, b)", "covar_samp(i, p)",
)  # fmt: skip
BOUNDS = ("UNBOUNDED PRECEDING", "2 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "UNBOUNDED FOLLOWING")
EXCLUSIONS = ("", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES")


def frames(chance: random.Random) -> str:
    """A window: partitions, an order, a frame."""
    order = chance.choice(["", "ORDER BY i", "ORDER BY i DESC NULLS LAST, s", "ORDER BY s"])
    over = [chance.choice(["", "PARTITION BY k"]), order]
    if order and chance.random() < 0.7:
        unit = chance.choice(["ROWS", "GROUPS", "RANGE"])
        if unit == "RANGE" and order != "ORDER BY i":
            unit = "ROWS"
        low = chance.randrange(4)
        high = chance.randrange(max(low, 1), 5)
        over.append(f"{unit} BETWEEN {BOUNDS[low]} AND {BOUNDS[high]}{chance.choice(EXCLUSIONS)}")
    return f"({' '.join(filter(None, over))})"


def rows(chance: random.Random, count: int) -> Counter[Any]:
    return Counter(tuple(chance.choice(pool) for pool in POOLS) for _ in range(count))


def both(sql: str, given: dict[str, Any]) -> list[Any]:
    """What a query is, plainly and as it is served; NaN is equal to itself."""
    plan = simplify(plan_query(sql, SCHEMAS).relation)
    made: list[Any] = []
    for how in (evaluate, contents):
        try:
            made.append(sorted((repr(row), n) for row, n in how(plan, given).items()))
        except EvaluationError:
            made.append("error")
    return made


@pytest.mark.parametrize("call", CALLS)
def test_windows_are_what_they_mean(call: str) -> None:
    chance = random.Random(call)
    for _ in range(25):
        given = {"t": rows(chance, chance.randrange(14)), "e": {}}
        sql = f"SELECT k, i, s, {call} OVER {frames(chance)} AS x FROM t"
        plain, served = both(sql, given)
        assert served == plain, sql


#: Columns that kernels put in order; `-0.0` and documents are left to the meaning.
KERNEL = "SELECT k, i, b, p, s, o FROM t"


def kernel(sql: str, given: dict[str, Any]) -> tuple[Any, Any]:
    """What the window of a query is by its kernel, and what it means; None without a kernel."""
    plan = simplify(plan_query(sql, SCHEMAS).relation)
    (node,) = (each for each in walk_once(plan) if isinstance(each, r.Window))
    below = node.input
    rows = evaluate(below, given)
    table = to_table(list(rows), below.schema)
    count = np.array(list(rows.values()), np.int64)
    table = table.append_column(TIME, pa.array(count * 0)).append_column(DIFF, pa.array(count))
    found = by_kernel(node, [from_table(table)])
    if found is None:
        return None, None
    made = found.consolidated().table(node.schema.names)
    lists = [from_array(made.column(c.name).combine_chunks(), c.type) for c in node.schema]
    shown = sorted(repr(row) for row in zip(*lists, made.column(DIFF).to_pylist(), strict=True))
    return shown, sorted(repr((*row, n)) for row, n in evaluate(node, given).items())


@pytest.mark.parametrize("call", [x for x in CALLS if not x.startswith(("percent", "cume", "nth"))])
def test_kernels_of_windows_are_what_they_mean(call: str) -> None:
    chance = random.Random(call)
    made = 0
    for _ in range(25):
        given = {"t": rows(chance, 1 + chance.randrange(14)), "e": {}}
        sql = f"SELECT k, s, {call} OVER {frames(chance)} AS x FROM ({KERNEL}) t"
        if set(re.findall(r"\(([nfgy])", call)):
            return  # of a column that is not there
        shown, meant = kernel(sql, given)
        assert shown == meant, sql
        made += shown is not None
    assert made > 0 or not call.startswith(("row", "rank", "dense", "count", "sum(i)", "min(s)"))


RECURSIONS = (
    "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n WHERE x < 9) SELECT x FROM n",
    "WITH RECURSIVE p(a, b) AS (SELECT a, b FROM e UNION SELECT p.a, e.b FROM p JOIN e ON p.b = "
    "e.a) SELECT a, b FROM p",
    "WITH RECURSIVE p(a, b) AS (SELECT a, b FROM e UNION SELECT x.a, y.b FROM p x JOIN p y ON "
    "x.b = y.a) SELECT a, b FROM p",
    "WITH RECURSIVE p(a, n) AS (SELECT a, 1 FROM e UNION SELECT e.b, p.n + 1 FROM p JOIN e ON "
    "p.a = e.a WHERE p.n < 5 AND EXISTS (SELECT FROM t WHERE t.k = e.b)) SELECT a, n FROM p",
    "WITH RECURSIVE p(a, n) AS (SELECT a, 1 FROM e UNION ALL SELECT e.b, p.n + 1 FROM p LEFT "
    "JOIN e ON p.a = e.a WHERE p.n < 4) SELECT a, n FROM p",
    "WITH RECURSIVE p(a, n) AS (SELECT a, 1 FROM e UNION ALL SELECT a + g, n + 1 FROM p, "
    "generate_series(1, 2) g WHERE n < 4) SELECT a, n FROM p",
    "WITH RECURSIVE p(a) AS (SELECT 10 FROM e UNION SELECT 10 / (a - 8) FROM p) SELECT a FROM p",
    "WITH MUTUALLY RECURSIVE o (a bigint) AS (SELECT a FROM e UNION SELECT b FROM v), v (b bigint) "
    "AS (SELECT e.b FROM e JOIN o ON e.a = o.a) SELECT o.a, v.b FROM o, v",
    "WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 3) o (a bigint, n bigint) AS (SELECT a, 1 "
    "FROM e UNION ALL SELECT a, n + 1 FROM o) SELECT a, n FROM o",
    "WITH MUTUALLY RECURSIVE (ERROR AT RECURSION LIMIT 3) o (a bigint) AS (SELECT a FROM e "
    "UNION ALL SELECT a + 1 FROM o) SELECT a FROM o",
    "WITH MUTUALLY RECURSIVE o (a bigint, n bigint) AS (SELECT a, count(*) FROM (SELECT a FROM e "
    "UNION ALL SELECT a FROM o WHERE n < 5) x GROUP BY a) SELECT a, n FROM o",
)


JOINS = tuple(
    f"SELECT x.a, y.b FROM e x {kind} JOIN e y ON {on}"
    for kind in ("", "LEFT", "RIGHT", "FULL")
    for on in ("x.a = y.b + 1", "x.a = 6 / (y.b - 1) AND x.b < y.b", "x.a + 1 = y.a AND x.b = y.b")
)


@pytest.mark.parametrize("sql", [*RECURSIONS, *JOINS])
def test_recursions_and_joins_are_what_they_mean(sql: str) -> None:
    chance = random.Random(sql)
    for _ in range(12):
        ends = (None, 1, 2, 3, 4)
        edges = Counter(
            (chance.choice(ends), chance.choice(ends)) for _ in range(chance.randrange(7))
        )
        plain, served = both(sql, {"t": rows(chance, 5), "e": edges})
        assert served == plain
