"""When a source ticks next: `noonmark.adapter.schedule.pace`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from noonmark.adapter.schedule.pace import COST, FLOOR_S, INTERVAL_S, Pace

seconds = st.floats(0, 100, allow_nan=False)


@st.composite
def paces(draw: st.DrawFn) -> Pace:
    asked, later, took = draw(seconds), draw(seconds), draw(seconds)
    return Pace(asked + later, asked + later + took, asked)


@given(paces())
def test_a_tick_that_nobody_hurries_is_paid_for(last: Pace) -> None:
    """Law (bounded)."""
    took = last.ended_s - last.began_s
    begins = last.due_s(early=True)
    assert begins >= last.ended_s
    floor = last.began_s + max(FLOOR_S, COST * took)
    assert begins >= min(floor, max(last.ended_s, last.asked_s + INTERVAL_S))


@given(paces())
def test_upstream_is_asked_once_in_an_interval(last: Pace) -> None:
    """Law (soon): nobody has a reason, and still it is at most an interval, or a tick."""
    begins = last.due_s(early=False)
    assert begins == max(last.ended_s, last.asked_s + INTERVAL_S)
    assert last.asks(begins)
    assert last.due_s(early=True) <= begins
    if last.began_s < last.asked_s + INTERVAL_S:
        assert not last.asks(last.began_s)


@given(st.integers(1, 400), seconds)
def test_neighbours_that_pull_do_not_keep_a_source_from_asking(pulls: int, asked_s: float) -> None:
    """Ticks that ask nobody follow each other: one that asks is due as if they were not."""
    last, asked = Pace(asked_s, asked_s, asked_s), 0
    for _ in range(pulls):
        begins = last.due_s(early=True)
        asks = last.asks(begins)
        asked += asks
        last = Pace(begins, begins + 0.001, begins if asks else last.asked_s)
    ran_s = last.began_s - asked_s
    assert asked >= int(ran_s / (INTERVAL_S + FLOOR_S) + 1e-6)
    assert pulls <= ran_s / FLOOR_S * 1.1 + 1
