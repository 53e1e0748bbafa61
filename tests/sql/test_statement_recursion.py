"""Recursion, alone, for every row outside, and of several names: the rules keep its answer."""

from __future__ import annotations

import pytest

from noonmark.compute.reference import evaluate
from noonmark.rows.schema import Schema
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
