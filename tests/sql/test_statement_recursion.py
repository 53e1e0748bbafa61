"""Recursion, alone, for every row outside, and of several names: the rules keep its answer."""

from __future__ import annotations

import pytest

from noonmark.errors import EvaluationError, NoonmarkError
from noonmark.rows.schema import Schema
from noonmark.sql.meaning.relation import evaluate
from noonmark.sql.parse import plan_query
from noonmark.sql.rules import simplify

SCHEMAS = {
    "t": Schema.of(a="integer not null"),
    "e": Schema.of(x="integer not null", y="integer not null"),
}
ROWS = {
    "t": {(0,): 1, (1,): 1, (3,): 2},
    "e": {(1, 2): 1, (2, 3): 1, (3, 1): 1, (5, 6): 1},
}
CASES = {
    "sums for every row": (
        "select a, (with recursive r(x) as (select a union all select x - 1 from r where x > 0) "
        "select sum(x) from r) from t",
        {(0, 0): 1, (1, 1): 1, (3, 6): 2},
    ),
    "where each row leads": (
        "select a, array(with recursive r(x) as (select a union select e.y from r "
        "join e on e.x = r.x) select x from r order by x) from t",
        {(0, (0,)): 1, (1, (1, 2, 3)): 1, (3, (1, 2, 3)): 2},
    ),
    "two names": (
        "with mutually recursive even (n int) as (values (0) union select n + 1 from odd), "
        "odd (n int) as (select n + 1 from even where n < 4) select n from odd",
        {(1,): 1, (3,): 1},
    ),
    "in sequence: each sees those before it": (
        "with mutually recursive (return at recursion limit 3) "
        "a (n int) as (values (1) union all select n + 1 from b), "
        "b (n int) as (select n * 10 from a) "
        "select 'a', n from a union all select 'b', n from b",
        # rounds: a = 1, b = 10; a = 1, 11, b = 10, 110; a = 1, 11, 111, b = 10, 110, 1110
        {("a", 1): 1, ("a", 11): 1, ("a", 111): 1, ("b", 10): 1, ("b", 110): 1, ("b", 1110): 1},
    ),
    "done before its limit": (
        "with mutually recursive (error at recursion limit 5) "
        "r (n int) as (values (1) union select n + 1 from r where n < 4) select max(n) from r",
        {(4,): 1},
    ),
    "a name inside another's": (
        "with mutually recursive r (x int) as (select a from t union select e.y from r, e "
        "where e.x = r.x and exists (select 1 from r s where s.x = 3)) select count(*) from r",
        {(4,): 1},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_the_fixpoint(name: str) -> None:
    sql, expected = CASES[name]
    plan = plan_query(sql, SCHEMAS).relation
    assert evaluate(plan, ROWS) == expected
    assert evaluate(simplify(plan), ROWS) == expected


@pytest.mark.parametrize("clause", ["error at recursion limit 4", "recursion limit 4"])
def test_a_recursion_that_is_not_done_by_its_limit_has_no_answer(clause: str) -> None:
    sql = f"with mutually recursive ({clause}) r (n int) as (values (1) union select n + 1 from r) "
    plan = plan_query(sql + "select max(n) from r", SCHEMAS).relation
    with pytest.raises(EvaluationError, match="limit of rounds"):
        evaluate(plan, ROWS)


@pytest.mark.parametrize(
    ("clause", "near"),
    [
        ("return recursion limit 4", "recursion"),
        ("recursion limit 0", "0"),
        ("at recursion limit 4", "at"),
        ("recursion limit x", "x"),
    ],
)
def test_a_limit_that_is_none_is_refused_where_it_stands(clause: str, near: str) -> None:
    sql = f"with mutually recursive ({clause}) r (n int) as (values (1)) select n from r"
    with pytest.raises(NoonmarkError) as refused:
        plan_query(sql, SCHEMAS)
    assert refused.value.position is not None
    assert sql[refused.value.position - 1 :].startswith(near)
