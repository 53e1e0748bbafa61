"""Laws of `ingest.rates`: totals only grow, a rate is a difference by its time."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as some

from noonmark.ingest.rates import WINDOW_S, Rates

STEPS = some.lists(
    some.tuples(some.floats(0.001, 30.0), some.integers(0, 1000), some.integers(0, 9000)),
    min_size=1,
    max_size=40,
)


@given(STEPS)
def test_rates_are_those_of_the_last_window(steps: list[tuple[float, int, int]]) -> None:
    rates, now = Rates(), 5.0
    came: list[tuple[float, int]] = []
    for pause_s, rows, size in steps:
        now += pause_s
        rates.count([{"read_rows": rows, "read_bytes": size}, {"read_rows": None}], now)
        came.append((now, rows))
    told = [size if rows else 0 for _, rows, size in steps]
    assert rates.totals() == (sum(rows for _, rows, _ in steps), sum(told))
    by_second, bytes_by_second = rates.per_second(now)
    # Never more than all that came within the window and one sample before it.
    reach = [rows for at, rows in came if at >= now - WINDOW_S - 31.0]
    assert 0 <= by_second <= sum(reach)
    assert bytes_by_second >= 0
    assert rates.per_second(now + 2 * WINDOW_S) == (0.0, 0.0)


def test_a_steady_source() -> None:
    rates = Rates()
    for second in range(300):
        rates.count([{"read_rows": 50, "read_bytes": 700}], float(second))
    rows, size = rates.per_second(299.0)
    assert math.isclose(rows, 50, rel_tol=0.05)
    assert math.isclose(size, 700, rel_tol=0.05)
