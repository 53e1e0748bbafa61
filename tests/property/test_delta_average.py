"""Averages of many groups at once are those of each: PostgreSQL's digits."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from noonmark.compute.kernel.average import averages
from noonmark.compute.scalar.number import NoKernel, Scaled
from noonmark.rows import types as t
from noonmark.rows.arrow import from_array
from noonmark.sql.functions.number import numeric
from noonmark.sql.functions.number.fit import fit

TOTALS = st.one_of(st.integers(-(10**16), 10**16), st.integers(-20_000, 20_000))
COUNTS = st.one_of(st.integers(0, 10), st.integers(0, 10**8))


@given(st.lists(st.tuples(TOTALS, COUNTS), max_size=8), st.integers(0, 6))
@example([(1, 3), (200, 3), (-5, 2), (99_999_999, 10_000), (10**16, 1)], 2)
@example([(1, 10**8), (0, 3), (0, 0), (5, 10_000)], 6)
def test_all_at_once_is_one_by_one(groups: list[tuple[int, int]], scale: int) -> None:
    totals = np.array([total for total, _ in groups], np.int64)
    counts = np.array([count for _, count in groups], np.int64)
    made = from_array(averages(Scaled(totals, scale), counts), t.Numeric())
    wanted = [
        fit(numeric.divide(Decimal(total).scaleb(-scale), Decimal(count)), t.Numeric())
        if count
        else None
        for total, count in groups
    ]
    assert made == wanted


@pytest.mark.parametrize("total", [10**18, -(10**18), -(2**63)])
def test_what_is_too_large_is_left_to_others(total: int) -> None:
    with pytest.raises(NoKernel):
        averages(Scaled(np.array([total], np.int64), 0), np.array([1]))
