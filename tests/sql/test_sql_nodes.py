"""Nodes refuse what has no meaning, whoever makes them; and the order and fit of values."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.errors import DatatypeMismatch, NoonmarkError, OutOfRange, SchemaMismatch
from noonmark.rows import types as t
from noonmark.rows.order import row_key, sort_key, total_key
from noonmark.rows.schema import Schema
from noonmark.sql.coerce import common_type
from noonmark.sql.functions import AGGREGATES, FUNCTIONS
from noonmark.sql.functions.number.fit import bounded, fit_numeric, plain
from noonmark.sql.functions.number.numeric import divide
from noonmark.sql.ir import relation as r
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.call import AggregateCall, SortKey
from support.store.rows import ALL_TYPES, values

T = r.Scan("t", Schema.of(a="integer not null", b="text"))
A, B = s.column(0, T.schema.columns[0]), s.column(1, T.schema.columns[1])
ONE = s.Literal(t.Integer(), 1)

WRONG: dict[str, Callable[[], object]] = {
    "a filter that is not boolean": lambda: r.Filter(T, A),
    "a column that is not there": lambda: r.Filter(T, s.Is(s.ColumnRef(t.Text(), True, 2), None)),
    "a column of another type": lambda: r.Project(T, (s.ColumnRef(t.Text(), True, 0),), ("x",)),
    "a column that hides NULL": lambda: r.Project(T, (s.ColumnRef(t.Text(), False, 1),), ("x",)),
    "a projection with a name too few": lambda: r.Project(T, (A, B), ("x",)),
    "two columns of one name": lambda: r.Project(T, (A, B), ("x", "x")),
    "a comparison of kinds": lambda: s.Compare("=", A, B),
    "a comparison that is none": lambda: s.Compare("~", A, A),
    "AND of a number": lambda: s.And((A,)),
    "CASE of two types": lambda: s.Case((s.When(s.TRUE, A),), B),
    "COALESCE of nothing": lambda: s.Coalesce(()),
    "a function that is not in the table": lambda: s.Call("java_method(text)", (B,)),
    "a function of other arguments": lambda: s.Call("lower(text)", (A,)),
    "a cast that does not exist": lambda: s.Cast(t.Date(), A),
    "an aggregate that is not in the table": lambda: AggregateCall("percentile(integer)", (A,)),
    "a join key of two kinds": lambda: r.JoinKey(A, B),
    "a lateral full join": lambda: r.Apply(r.JoinKind.FULL, T, T, 1),
    "a union of widths": lambda: r.Union((T, r.Project(T, (A,), ("a",)))),
    "a union of types": lambda: r.Union((r.Project(T, (A,), ("a",)), r.Project(T, (B,), ("a",)))),
    "a negative limit": lambda: r.TopK(T, (), (), -1),
    "a row of another length": lambda: r.Constant(T.schema, ((1,),)),
    "an order of documents": lambda: SortKey(s.Literal(t.Jsonb(), None)),
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG.keys())
def test_a_plan_without_meaning_cannot_be_made(make: Callable[[], object]) -> None:
    with pytest.raises(NoonmarkError) as refused:
        make()
    assert isinstance(refused.value, DatatypeMismatch | SchemaMismatch) or refused.value.message


def test_names_stay_distinct_where_inputs_meet() -> None:
    assert r.Join(r.JoinKind.INNER, T, T).schema.names == ("a", "b", "a_1", "b_1")


def test_an_outer_join_may_give_null() -> None:
    left = r.Join(r.JoinKind.LEFT, T, T).schema
    assert [column.nullable for column in left] == [False, True, True, True]


def test_every_function_has_a_type_for_what_it_takes() -> None:
    assert len(FUNCTIONS.by_id) > 300
    assert {entry.id for entry in AGGREGATES.by_id.values() if not entry.gives_null} == {
        "count()",
        "count(any)",
        "regr_count(double precision, double precision)",
    }


@given(st.sampled_from(ALL_TYPES).flatmap(lambda kind: st.tuples(st.just(kind), values(kind))))
def test_keys_can_be_hashed_and_tell_the_same_from_the_same(
    pair: tuple[t.SqlType, object],
) -> None:
    kind, value = pair
    for of in (sort_key, total_key):
        key = row_key((kind,), of)
        assert key((value,)) == key((value,))
        assert key((value,)) < key((None,))


NUMBERS = st.decimals(
    min_value=-(10**15), max_value=10**15, allow_nan=False, allow_infinity=False, places=6
)


@given(NUMBERS, st.integers(0, 18))
def test_fit_is_the_nearest_value_of_the_type(number: Decimal, scale: int) -> None:
    fitted = fit_numeric(number, t.Numeric(38, scale))
    assert abs(fitted - number) * 2 <= Decimal(1).scaleb(-scale)
    assert fit_numeric(fitted, t.Numeric(38, scale)) == fitted
    assert plain(fitted) == fitted


def test_fit_refuses_what_is_too_large() -> None:
    with pytest.raises(OutOfRange):
        fit_numeric(Decimal(1000), t.Numeric(3, 0))
    with pytest.raises(OutOfRange):
        fit_numeric(Decimal("1e131072"), t.Numeric())


@given(NUMBERS, NUMBERS.filter(bool))
def test_a_quotient_has_sixteen_digits_at_least(a: Decimal, b: Decimal) -> None:
    exact = a / b
    found = divide(a, b)
    if exact:
        assert math.isclose(float(found), float(exact), rel_tol=1e-12)


@given(st.integers(0, 50), st.integers(0, 50))
def test_bounded_numerics_exist(whole: int, scale: int) -> None:
    made = bounded(whole, scale)
    assert made.precision is None or made.precision <= t.NUMERIC_PRECISION_MAX


def test_common_types() -> None:
    assert common_type([t.Integer(), t.Numeric(5, 2)], "CASE") == t.Numeric()
    assert common_type([t.Numeric(9, 2), t.Numeric(5, 2)], "CASE") == t.Numeric(9, 2)
    # As PostgreSQL: of types that become each other the first stays.
    assert common_type([t.Varchar(3), t.Text()], "CASE") == t.Varchar()
    assert common_type([t.Text(), t.Varchar(3)], "CASE") == t.Text()
    assert common_type([t.Date(), t.TimestampTz()], "CASE") == t.TimestampTz()
    with pytest.raises(DatatypeMismatch):
        common_type([t.Integer(), t.Text()], "CASE")
