"""Parameters get the types that their places ask for; a plan is bound, not planned again."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from noonmark.errors import UndefinedParameter
from noonmark.rows.schema import Schema
from noonmark.rows.types import Integer
from noonmark.sql.ir.asked import Now, Parameter, asked
from noonmark.sql.meaning.relation import evaluate
from noonmark.sql.parse import plan_query
from noonmark.sql.plan.row import Statement
from noonmark.sql.rules import simplify

SCHEMAS = {
    "t": Schema.of(
        a="integer not null", b="text", n="numeric(10,2)", at="timestamptz", c="character(3)"
    )
}

CASES = [
    ("select * from t where a = $1", ["integer"]),
    ("select * from t where $1 < n", ["numeric"]),
    ("select * from t where b like $1 and a in ($2, $3)", ["text", "integer", "integer"]),
    ("select $1", ["text"]),
    ("select $1::date, $2::numeric(5,1)", ["date", "numeric"]),
    ("select a + $1 from t", ["integer"]),
    ("select coalesce(at, $1) from t", ["timestamp with time zone"]),
    ("select * from t where a = any($1)", ["integer[]"]),
    ("select * from t where a between $2 and $1", ["integer", "integer"]),
    ("select * from t limit $1 offset $2", ["bigint", "bigint"]),
    ("select case when $1 then 1 else $2 end", ["boolean", "integer"]),
    ("select $2 || b from t", ["text", "text"]),
    ("values ($1, 1), (2, $2)", ["integer", "integer"]),
    ("select * from t where c = $1", ["bpchar"]),
    ("select $1 = $1", ["text"]),
]


@pytest.mark.parametrize(("sql", "types"), CASES, ids=[sql for sql, _ in CASES])
def test_types_are_those_of_postgresql(sql: str, types: list[str]) -> None:
    statement = Statement(SCHEMAS, parameters={})
    plan_query(sql, statement)
    assert [str(kind) for kind in statement.parameter_types()] == types


def test_what_the_client_states_holds() -> None:
    statement = Statement(SCHEMAS, parameters={1: Integer()})
    query = plan_query("select $1, b = $2 from t", statement)
    assert [str(kind) for kind in statement.parameter_types()] == ["integer", "text"]
    assert query.relation.schema.columns[0].type == Integer()


ROWS = {
    (1, "x", Decimal("1.50"), None, "a  "): 1,
    (2, "y", Decimal("2.50"), None, "b  "): 1,
}


def answer(sql: str, *values: Any, now: int | None = None) -> list[Any]:
    statement = Statement(SCHEMAS, parameters={})
    query = plan_query(sql, statement)
    if statement.late:
        known = Statement(SCHEMAS, parameters=statement.parameters, values=values)
        query = plan_query(sql, known)
    plan = simplify(query.relation)
    from noonmark.sql.ir.asked import bind

    return sorted(evaluate(bind(plan, values, now), {"t": ROWS}))


def test_one_plan_many_values() -> None:
    assert answer("select b from t where a = $1", 1) == [("x",)]
    assert answer("select b from t where a = $1", 2) == [("y",)]
    assert answer("select b from t where a = $1", None) == []
    assert answer("select a from t where n = $1", Decimal("2.505")) == [], "nothing is rounded"
    assert answer("select a from t where c = $1", "a") == [(1,)]
    assert answer("select a from t order by a limit $1", 1) == [(1,)]
    assert answer("select a from t where a = any($1)", (2, 3)) == [(2,)]


def test_now_is_the_time_of_the_query() -> None:
    sql = "select a from t where mz_now() > a * 1000"
    assert answer(sql, now=1_500) == [(1,)]
    statement = Statement(SCHEMAS)
    query = plan_query("select 1 where '2020-01-01'::timestamptz + '1 day' <= mz_now()", statement)
    assert asked(query.relation) == {Now}
    midnight = 1_577_923_200_000
    for now, rows in ((midnight - 1, []), (midnight, [(1,)])):
        bound = query.bound((), now)
        assert list(evaluate(bound.relation, {})) == rows


def test_there_are_no_parameters_in_a_view() -> None:
    with pytest.raises(UndefinedParameter, match=r"there is no parameter \$1") as caught:
        plan_query("select * from t where a = $1", SCHEMAS)
    assert caught.value.position == 27


def test_a_plan_says_what_it_asks() -> None:
    query = plan_query("select $1 from t", Statement(SCHEMAS, parameters={}))
    assert asked(query.relation) == {Parameter}
    assert not asked(query.bound(["x"]).relation)
