"""Temporal filters: when a comparison with mz_now() changes, and where it may stand."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.compute.plan.definition import Definition
from noonmark.errors import Unsupported
from noonmark.rows import types as t
from noonmark.sql.evaluate import evaluate
from noonmark.sql.ir.asked import Now, asked
from noonmark.sql.ir.node import walk
from noonmark.sql.ir.relation import Filter, Relation
from noonmark.sql.ir.scalar import Cast, Compare, Literal
from noonmark.sql.ir.temporal import FOREVER, NEVER, Temporal, temporal
from support.view.queries import TEMPORAL
from support.view.views import SCHEMAS, answer, seeded_history

_VALUES = st.one_of(
    st.none(),
    st.integers(-20, 20),
    st.sampled_from([FOREVER, NEVER, FOREVER - 1, NEVER + 1]),
    st.decimals(-20, 20, places=2),
    st.decimals(min_value=Decimal("-1e30"), max_value=Decimal("1e30"), places=0),
    st.floats(-20, 20),
    st.sampled_from([float("inf"), float("-inf"), float("nan")]),
)


@given(st.sampled_from([">=", ">", "<", "<="]), _VALUES, st.integers(-25, 25))
def test_a_comparison_with_the_time_changes_at_its_turn(
    op: str, value: int | Decimal | float | None, time: int
) -> None:
    kind: t.SqlType = t.BigInt()
    if isinstance(value, Decimal):
        kind = t.Numeric(38, 2 if abs(value) <= 20 else 0)
    elif isinstance(value, float):
        kind = t.Double()
    now = Literal(t.BigInt(), time)
    holds = evaluate(
        Compare(op, Cast(kind, now) if kind != t.BigInt() else now, Literal(kind, value))
    )
    what = Temporal(op, Literal(kind, value))
    turn = what.turn(value)
    if turn is None:
        assert holds is None
    else:
        assert holds is (time >= turn if what.begins else time < turn)


def _temporal_filters(plan: Relation) -> list[Relation]:
    return [n for n in walk(plan) if isinstance(n, Filter) and temporal(n) is not None]


@pytest.mark.parametrize("name", TEMPORAL)
def test_filters_by_themselves_mean_what_the_query_means(name: str) -> None:
    definition = Definition.of_sql(name, TEMPORAL[name], SCHEMAS)
    history = seeded_history(5, 6)
    # A query without a temporal filter would show nothing; one that is always NULL has none left.
    assert _temporal_filters(definition.plan) or name == "never"
    for time in range(12):
        assert answer(definition.plan, history, time) == answer(definition.relation, history, time)


def test_what_comes_waits_below_what_goes() -> None:
    sql = "SELECT k FROM l WHERE mz_now() < v AND v > 1 AND mz_now() >= k"
    plan = Definition.of_sql("v", sql, SCHEMAS).plan
    found = [temporal(each) for each in _temporal_filters(plan)]
    begins = [each.begins for each in found if each is not None]
    assert begins == [False, True], "from the top"


REFUSED = {
    "SELECT k FROM l WHERE mz_now() < v OR k = 1": "inside OR",
    "SELECT k FROM l WHERE mz_now() <> v": "compared by <>",
    "SELECT k FROM l WHERE mz_now() + 1 < v": "inside an expression",
    "SELECT k FROM l WHERE mz_now() < v + mz_now()": "inside an expression",
    "SELECT k FROM l WHERE mz_now() IN (v, 2)": "inside InList",
    "SELECT k FROM l WHERE CASE WHEN mz_now() < v THEN true END": "inside Case",
    "SELECT k, mz_now() FROM l": "in what a query that is kept selects",
    "SELECT k, max(v - mz_now()) FROM l GROUP BY k": "in an aggregate",
    "SELECT k, count(*) FILTER (WHERE mz_now() < v) FROM l GROUP BY k": "in an aggregate",
    "SELECT l.k FROM l FULL JOIN r ON l.k = r.k AND mz_now() < l.v": "of a full join",
    "SELECT l.k FROM l LEFT JOIN r ON l.k = r.k AND mz_now() < l.v": "of a left join",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_elsewhere_the_time_is_refused_by_name_with_its_position(sql: str) -> None:
    definition = Definition.of_sql("v", sql, SCHEMAS)
    assert Now in asked(definition.relation)
    with pytest.raises(Unsupported) as refused:
        _ = definition.plan
    assert REFUSED[sql] in refused.value.message
    assert refused.value.hint
    assert refused.value.position in {
        at + 1 for at in range(len(sql)) if sql[at:].startswith("mz_")
    }


def test_a_filter_without_the_time_is_none() -> None:
    plain = Definition.of_sql("v", "SELECT k FROM l WHERE v < 3", SCHEMAS).plan
    assert _temporal_filters(plain) == []
