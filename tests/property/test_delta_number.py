"""Kernels of exact numbers mean what the scalars mean."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.compute.scalar import number
from noonmark.compute.scalar.columns import _KERNELS
from noonmark.compute.scalar.row_by_row import row_by_row
from noonmark.rows import types as t
from noonmark.rows.arrow import to_array
from noonmark.sql.functions.number.fit import WIDE
from noonmark.sql.ir.scalar import ColumnRef, Compare, Literal, Scalar


@st.composite
def _numerics(draw: st.DrawFn) -> t.Numeric:
    precision = draw(st.integers(1, 38))
    return t.Numeric(precision, draw(st.integers(0, precision)))


def _values(kind: t.Numeric) -> st.SearchStrategy[Decimal | None]:
    """Some that meet those of another scale, and all the others."""
    large = 10**kind.stored_precision - 1
    small = st.integers(-3, 3).map(lambda x: min(large, max(-large, x * 10**kind.stored_scale)))
    digits = small | st.integers(-large, large)
    return st.none() | digits.map(lambda x: Decimal(x).scaleb(-kind.stored_scale, WIDE))


@st.composite
def _sides(draw: st.DrawFn) -> tuple[list[t.Numeric], list[tuple[Any, Any]]]:
    kinds = [draw(_numerics()), draw(_numerics())]
    rows = draw(st.lists(st.tuples(*map(_values, kinds)), min_size=1, max_size=6))
    return kinds, rows


@given(_sides(), st.booleans())
@pytest.mark.parametrize("op", ["=", "<>", "<", "<=", ">", ">="])
def test_numerics_of_any_scale_are_compared_at_once(
    op: str, sides: tuple[list[t.Numeric], list[tuple[Any, Any]]], constant: bool
) -> None:
    kinds, rows = sides
    left: Scalar = ColumnRef(kinds[0], True, 0)
    right: Scalar = ColumnRef(kinds[1], True, 1)
    if constant:
        rows = [(value, rows[0][1]) for value, _ in rows]
        right = Literal(kinds[1], rows[0][1])
    node = Compare(op, left, right)
    columns = [to_array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
    made = _KERNELS[Compare](node, columns).to_pylist()
    expected, failed = row_by_row(node, columns, len(rows))
    assert failed is None
    assert made == expected.to_pylist()


LONG = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1, 0, 1])


@given(LONG, LONG)
def test_sums_and_differences_are_exact(a: int, b: int) -> None:
    x, y = (number.Scaled(np.array([value], np.int64), 0) for value in (a, b))
    assert number.add(x, y).values.tolist() == [a + b]
    assert number.subtract(x, y).values.tolist() == [a - b]
    assert number.multiply(x, y).values.tolist() == [a * b]
