"""The columns that a plan uses, and what is computed once of a plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from noonmark.compute.plan.columns_used import used
from noonmark.compute.plan.definition import Definition
from noonmark.compute.plan.memo import once
from noonmark.errors import EvaluationError
from noonmark.sql.ir import relation as r
from noonmark.sql.meaning.relation import outcome
from support.view import tpch
from support.view.views import SCHEMAS, History, contents, histories

PLANS = {
    "count": "SELECT count(*) AS n FROM l",
    "filtered": "SELECT v FROM l WHERE s = 'a'",
    "joined": "SELECT l.v FROM l JOIN r ON l.k = r.k WHERE s IS NULL",
    "grouped": "SELECT k, sum(v) AS total FROM l GROUP BY k HAVING count(*) > 1",
    "whole": "SELECT DISTINCT k, v, s FROM l",
    "outer": "SELECT l.k, w FROM l LEFT JOIN r ON l.k = r.k",
    "twice": "SELECT a.k, b.v FROM l a JOIN l b ON a.k = b.k WHERE a.s = 'b'",
}


@pytest.mark.parametrize("name", PLANS)
@given(history=histories(2))
def test_other_columns_do_not_matter(name: str, history: History) -> None:
    plan = Definition.of_sql(name, PLANS[name], SCHEMAS).plan
    known = used(plan)

    def shown(found: Any) -> Any:
        return "error" if isinstance(found, EvaluationError) else found

    def without(table: str, rows: dict[tuple[Any, ...], int]) -> dict[tuple[Any, ...], int]:
        made: dict[tuple[Any, ...], int] = {}
        for row, count in rows.items():
            both = zip(row, SCHEMAS[table].names, strict=True)
            bare = tuple(x if each in known[table] else None for x, each in both)
            made[bare] = made.get(bare, 0) + count
        return made

    inputs = {table: contents(history[table], 1) for table in known}
    bare = {table: without(table, rows) for table, rows in inputs.items()}
    assert shown(outcome(plan, bare)) == shown(outcome(plan, inputs))


def test_few_columns_of_tpch_are_used() -> None:
    plan = Definition.of_sql("q06", tpch.QUERIES["q06"], tpch.SCHEMAS).plan
    assert set(used(plan)["lineitem"]) == {
        "l_shipdate", "l_discount", "l_quantity", "l_extendedprice",
    }  # fmt: skip
    counted = Definition.of_sql("n", "SELECT count(*) AS n FROM lineitem", tpch.SCHEMAS).plan
    assert used(counted) == {"lineitem": ("l_orderkey",)}


def test_once_is_asked_once_for_an_object() -> None:
    asked: list[r.Relation] = []

    @once
    def width(node: r.Relation, more: int) -> int:
        asked.append(node)
        return len(node.schema) + more

    one, same = (r.Scan("l", SCHEMAS["l"]) for _ in range(2))
    assert [width(one, 1), width(one, 1), width(same, 1), width(one, 2)] == [4, 4, 4, 5]
    assert len(asked) == 3
