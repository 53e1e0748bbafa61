"""Aggregates that are said to have a value always have one, in the largest groups there can be."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.compute.kernel.accumulator import Summand, final, type_of
from noonmark.compute.plan.infallible import may_have_errors
from noonmark.errors import EvaluationError
from noonmark.rows import types as t
from noonmark.sql.functions.number.fit import fit, numeric_for
from noonmark.sql.ir.call import AggregateCall
from noonmark.sql.ir.scalar import ColumnRef

ROWS_MAX = 2**63 - 1


@st.composite
def _numerics(draw: st.DrawFn) -> t.Numeric:
    precision = draw(st.integers(1, 38))
    return t.Numeric(precision, draw(st.integers(0, precision)))


def _largest(kind: t.Numeric) -> Decimal:
    return (10**kind.stored_precision - 1) * Decimal(1).scaleb(-kind.stored_scale)


def _has_value(call: AggregateCall) -> bool:
    """Whether so many of the largest value have a sum in storage, and an answer."""
    each = _largest(numeric_for(call.arguments[0].type))
    try:
        total = fit(each * ROWS_MAX, type_of(call, Summand.NUMBER))
        final(call, ROWS_MAX, total)
    except EvaluationError:
        return False
    return True


@given(_numerics() | st.sampled_from([t.Numeric(), t.SmallInt(), t.Integer(), t.BigInt()]))
@pytest.mark.parametrize("function", ["sum", "avg"])
def test_a_sure_aggregate_has_a_value_for_every_group(function: str, kind: t.SqlType) -> None:
    name = "numeric" if isinstance(kind, t.Numeric) else str(kind)
    call = AggregateCall(f"{function}({name})", (ColumnRef(kind, False, 0),))
    if not may_have_errors(call):
        assert _has_value(call)


@pytest.mark.parametrize(
    ("function", "kind", "infallible"),
    [
        ("sum(numeric)", t.Numeric(15, 2), True),
        ("avg(numeric)", t.Numeric(15, 2), True),
        ("sum(numeric)", t.Numeric(19, 2), True),
        ("sum(numeric)", t.Numeric(20, 2), False),
        ("sum(numeric)", t.Numeric(), False),
        ("sum(integer)", t.Integer(), False),  # a bigint holds four billion of the largest
        ("avg(integer)", t.Integer(), True),
        ("stddev_samp(numeric)", t.Numeric(15, 2), False),
    ],
    ids=str,
)
def test_which_aggregates_are_sure(function: str, kind: t.SqlType, infallible: bool) -> None:
    call = AggregateCall(function, (ColumnRef(kind, False, 0),))
    assert may_have_errors(call) is not infallible
