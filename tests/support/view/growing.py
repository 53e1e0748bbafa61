"""Every operator and class of functions, over n rows and over ten times as many.

Queries are evaluated as they are for a statement (`noonmark.sql.meaning.evaluation`), maintained
views get one row more. What is measured is the processor's time of this process.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from noonmark.compute.plan.definition import Definition
from noonmark.rows.numeral import numeral
from noonmark.rows.schema import Schema
from noonmark.sql.meaning.evaluation import contents
from noonmark.sql.parse import plan_query
from noonmark.sql.rules import simplify
from noonmark.tvc import Update
from support.view.walk import Walker

SCHEMAS = {
    "t": Schema.of(
        id="bigint not null", k="integer", v="integer", n="numeric", f="double precision", s="text"
    ),
    "u": Schema.of(id="bigint not null", w="integer"),
}
WINDOWS = (
    "row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(7)", "lag(v)",
    "lead(v, 3, 0)", "first_value(s)", "last_value(s)", "nth_value(v, 4)",
)  # fmt: skip
FOLDS = (
    "count(*)", "sum(v)", "sum(n)", "sum(f)", "avg(v)", "min(s)", "max(f)", "stddev(f)",
    "var_pop(v)", "bool_and(v > 3)", "bit_xor(v)", "any_value(s)",
)  # fmt: skip
FRAMES = (
    "ORDER BY id", "ORDER BY v", "ORDER BY id ROWS BETWEEN 20 PRECEDING AND 5 FOLLOWING",
    "ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ORDER BY v RANGE BETWEEN 10 PRECEDING AND 10 FOLLOWING EXCLUDE CURRENT ROW",
    "ORDER BY v GROUPS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE TIES",
)  # fmt: skip
AGGREGATES = (
    *FOLDS, "count(DISTINCT v)", "sum(DISTINCT n)", "string_agg(s, ',' ORDER BY id)",
    "array_agg(v)", "jsonb_agg(s)", "jsonb_object_agg(id, v)", "array_agg(DISTINCT v)",
    "sum(v) FILTER (WHERE k = 1)",
)  # fmt: skip
RELATIONS = {
    "filter": "SELECT id, v + 1 AS x FROM t WHERE v % 2 = 0",
    "join": "SELECT t.id, w FROM t JOIN u ON t.id = u.id",
    "left join": "SELECT t.id, w FROM t LEFT JOIN u ON t.id = u.id",
    "full join": "SELECT t.id, w FROM t FULL JOIN u ON t.id = u.id",
    "join by an expression": "SELECT t.id, w FROM t FULL JOIN u ON t.id = u.id + 5",
    "exists": "SELECT id FROM t WHERE EXISTS (SELECT FROM u WHERE u.id = t.id AND w > 3)",
    "not in": "SELECT id FROM t WHERE id NOT IN (SELECT id FROM u WHERE w > 3)",
    "scalar subquery": "SELECT id, (SELECT max(w) FROM u WHERE u.id = t.id) AS x FROM t",
    "lateral": "SELECT t.id, x.w FROM t, LATERAL (SELECT w FROM u WHERE u.id = t.id LIMIT 1) x",
    "group": "SELECT v, count(*) AS x FROM t GROUP BY v",
    "grouping sets": "SELECT k, v, count(*) AS x FROM t GROUP BY ROLLUP (k, v)",
    "distinct": "SELECT DISTINCT v, s FROM t",
    "distinct on": "SELECT DISTINCT ON (k) k, v FROM t ORDER BY k, v DESC, id",
    "union": "SELECT id FROM t UNION SELECT id FROM u",
    "intersect": "SELECT id FROM t INTERSECT SELECT id FROM u",
    "except": "SELECT id FROM t EXCEPT ALL SELECT id FROM u WHERE w > 3",
    "top": "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 10",
    "sort": "SELECT id, v FROM t ORDER BY v DESC, s, id LIMIT 1000000",
    "series": "SELECT g FROM generate_series(1, {n}) g",
    "unnest": "SELECT t.id, x FROM t, unnest(ARRAY[v, k]) x",
    "count up": "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c WHERE x < "
    "{n} / 4) SELECT x FROM c",
    "chain": "WITH RECURSIVE c(x) AS (VALUES (0::bigint) UNION SELECT t.id + 1 FROM c JOIN t ON "
    "t.id = c.x WHERE t.id < {n} / 4) SELECT x FROM c",
}
MAINTAINED = {
    "running sum": "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY id) AS x FROM t",
    "running sum of floats": "SELECT id, sum(f) OVER (PARTITION BY k ORDER BY id) AS x FROM t",
    "row_number": "SELECT id, row_number() OVER (PARTITION BY k ORDER BY v, id) AS x FROM t",
    "string_agg": "SELECT k, string_agg(s, ',') AS x FROM t GROUP BY k",
    "count distinct": "SELECT k, count(DISTINCT v) AS x FROM t GROUP BY k",
    "max of join": "SELECT k, max(w) AS x FROM t JOIN u ON t.id = u.id GROUP BY k",
    "left join": "SELECT k, w FROM t LEFT JOIN u ON t.k = u.w AND u.w < 2",
}


def queries() -> dict[str, str]:
    """Every query by name."""
    made = {f"select {name}": sql for name, sql in RELATIONS.items()}
    for call in AGGREGATES:
        made[f"select {call}"] = f"SELECT k, {call} AS x FROM t GROUP BY k"
    for call in WINDOWS:
        made[f"select {call} over"] = f"SELECT id, {call} OVER (ORDER BY v, id) AS x FROM t"
    for call in FOLDS:
        for frame in FRAMES:
            made[f"select {call} over {frame}"] = f"SELECT id, {call} OVER ({frame}) AS x FROM t"
    return made


def rows(count: int) -> dict[str, dict[tuple[Any, ...], int]]:
    """The tables with so many rows; values are as many as rows, groups stay few."""
    t = {
        (at, at % 3, at * 7919 % count, numeral(Decimal(at) / 4), at * 0.5, f"s{at % 50}"): 1
        for at in range(count)
    }
    return {"t": t, "u": {(at, at * 31 % count): 1 for at in range(count)}}


def took(act: Callable[[], Any], times: int) -> float:
    """The least processor time of some runs."""
    found = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(times):
            begun = time.process_time()
            act()
            found.append(time.process_time() - begun)
    finally:
        gc.enable()
    return min(found)


def ratio(sql: str, count: int, times: int = 3) -> float:
    """How much longer a query takes over ten times as many rows."""
    found = []
    for size in (count, 10 * count):
        plan, given = simplify(plan_query(sql.format(n=size), SCHEMAS).relation), rows(size)
        found.append(took(lambda p=plan, g=given: contents(p, g), times))  # type: ignore[misc]
    return found[1] / found[0]


def maintained(sql: str, count: int) -> float:
    """How much longer a tick of one row takes when all groups are ten times as large."""
    found = []
    for size in (count, 10 * count):
        with tempfile.TemporaryDirectory() as folder:
            walker = Walker(Path(folder), SCHEMAS, {})
            given = {n: [Update(row, 1, 1) for row in x] for n, x in rows(size).items()}
            walker.write(given, 2)
            walker.create(Definition.of_sql("v", sql, SCHEMAS))
            times = []
            for now in range(2, 7):
                row = (now * size, 1, now, numeral(Decimal(1)), 0.5, "s")
                more = {"t": [Update(row, now, 1)], "u": [Update((now * size, 1), now, 1)]}
                walker.write(more, now + 1)
                times.append(took(lambda w=walker: w.tick("v"), 1))  # type: ignore[misc]
            walker.stop()
        found.append(min(times))
    return found[1] / found[0]
