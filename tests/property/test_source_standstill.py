"""Standing still: whoever asks is told, in any order of asking, taking back, working and ending."""

from __future__ import annotations

from concurrent.futures import Future

from hypothesis import given
from hypothesis import strategies as st

from noonmark.adapter.schedule.standstill import Standstill

STEPS = st.lists(st.sampled_from(["ask", "take back", "grant", "over"]), max_size=20)


@given(STEPS)
def test_whoever_asks_is_told(steps: list[str]) -> None:
    standstill = Standstill()
    asking: list[Future[None]] = []
    is_over = False
    for step in steps:
        if step == "ask":
            asking.append(standstill.ask())
            assert asking[-1].done() == is_over
        elif step == "take back" and asking:
            standstill.take_back(asking.pop(0))
        elif step == "grant":
            assert standstill.grant() == bool(asking)
            assert all(each.done() for each in asking)
        elif step == "over":
            standstill.over()
            is_over = True
            assert all(each.done() for each in asking)
