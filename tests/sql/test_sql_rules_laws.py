"""The law of the rules: the same answer, whatever the rows; and what a plan is after them.

`support.sql.generator` makes the queries and the rows. The reference can ask a plan as it is
written, lateral joins included, so the definition itself is the oracle of every rule.
"""

from __future__ import annotations

import pickle

import pytest

from noonmark.errors import DivisionByZero, EvaluationError
from noonmark.sql import rules
from noonmark.sql.ir.node import children, rebuild, walk, walk_once
from noonmark.sql.ir.relation import Apply, Relation
from noonmark.sql.ir.scalar import OuterRef
from noonmark.sql.meaning.relation import evaluate, outcome
from noonmark.sql.parse import plan_query
from support.sql.generator import Generator
from support.sql.queries import QUERIES, ROWS, SCHEMAS

SEEDS = range(1000, 1012)
QUERIES_PER_SEED = 15


@pytest.mark.parametrize("seed", SEEDS)
def test_simplified_plans_have_the_same_answer(seed: int) -> None:
    generator = Generator(seed)
    for _ in range(QUERIES_PER_SEED):
        sql, _kinds = generator.query(2, [])
        plan = plan_query(sql, SCHEMAS).relation
        simple = rules.simplify(plan)
        assert simple.schema.names == plan.schema.names, sql
        for _ in range(3):
            rows = generator.rows()
            assert evaluate(simple, rows) == evaluate(plan, rows), (sql, rows)


def test_each_group_of_rules_keeps_the_answer() -> None:
    for sql in QUERIES[::3]:
        plan: Relation = plan_query(sql, SCHEMAS).relation
        for group in rules.RULES:
            for rule in group:
                after = rule(plan)
                expected, found = outcome(plan, ROWS), outcome(after, ROWS)
                if not isinstance(expected, EvaluationError):
                    assert found == expected, (sql, rule)
                plan = after


def test_nothing_lateral_is_left() -> None:
    for sql in QUERIES:
        simple = rules.simplify(plan_query(sql, SCHEMAS).relation)
        assert not [n for n in walk_once(simple) if isinstance(n, Apply | OuterRef)], sql


def test_rules_change_nothing_twice() -> None:
    for sql in QUERIES:
        simple = rules.simplify(plan_query(sql, SCHEMAS).relation)
        assert rules.simplify(simple) == simple, sql


def test_a_plan_is_a_value() -> None:
    for sql in QUERIES[::5]:
        plan = rules.simplify(plan_query(sql, SCHEMAS).relation)
        assert pickle.loads(pickle.dumps(plan)) == plan
        assert hash(plan_query(sql, SCHEMAS).relation) == hash(plan_query(sql, SCHEMAS).relation)


def test_rebuild_with_nothing_changed_is_the_same_node() -> None:
    for sql in QUERIES[::5]:
        for node in walk_once(plan_query(sql, SCHEMAS).relation):
            assert rebuild(node, lambda child: child) is node
            seen: list[object] = []
            rebuild(node, lambda child, seen=seen: seen.append(child) or child)  # type: ignore[misc]
            assert seen == list(children(node))


def test_an_error_is_the_answer_while_the_bad_row_is_there() -> None:
    plan = rules.simplify(plan_query("select 10 / x from u", SCHEMAS).relation)
    bad, good = (1, 0, "p"), (1, 5, "p")
    assert isinstance(outcome(plan, {"u": {bad: 1, good: 1}}), DivisionByZero)
    assert outcome(plan, {"u": {bad: 0, good: 1}}) == {(2,): 1}


def _nested(depth: int) -> Relation:
    inside = "true"
    for at in range(depth, 0, -1):
        how = "not exists" if at % 3 == 0 else "exists"
        inside = f"{how} (select 1 from t t{at} where t{at}.a = t{at - 1}.a and {inside})"
    return plan_query(f"select t0.b from t t0 where {inside}", SCHEMAS).relation


def test_subqueries_inside_of_each_other_make_a_plan_as_long_as_the_text() -> None:
    plan = _nested(4)
    assert evaluate(rules.simplify(plan), ROWS) == evaluate(plan, ROWS)
    small, large = (sum(1 for _ in walk(rules.simplify(_nested(depth)))) for depth in (10, 20))
    assert large < 3 * small
