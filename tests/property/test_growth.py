"""No operator is quadratic: ten times the rows do not take a hundred times as long."""

from __future__ import annotations

import pytest

from support.view.growing import FRAMES, MAINTAINED, maintained, queries, ratio

pytestmark = pytest.mark.alone

#: What is n log n takes 13 times as long, what is quadratic a hundred times.
RATIO_MAX = 35.0
SOME = [
    name
    for name in queries()
    if name.endswith(FRAMES[:1]) or " over" not in name or name.startswith("select lag")
]


def test_queries_grow_with_their_rows() -> None:
    slow = {name: found for name in SOME if (found := ratio(queries()[name], 60, 1)) > RATIO_MAX}
    # Once more, with more rows: a moment of a busy machine is no growth.
    again = {name: ratio(queries()[name], 200) for name in slow}
    assert {name: found for name, found in again.items() if found > RATIO_MAX} == {}


@pytest.mark.parametrize("name", ["running sum", "running sum of floats", "row_number"])
def test_ticks_grow_with_their_partitions(name: str) -> None:
    assert maintained(MAINTAINED[name], 150) <= RATIO_MAX
