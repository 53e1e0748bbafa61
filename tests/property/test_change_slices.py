"""What a subscription is given of a segment: whole times, a few at once, each update once."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from noonmark.adapter.subscribe import changes
from noonmark.adapter.subscribe.changes import ChangeRange
from noonmark.rows.schema import Schema

SCHEMA = Schema.of(n="int")
FEW = 3


@given(
    some.lists(some.integers(5, 20), max_size=30).map(sorted),
    some.one_of(some.none(), some.integers(21, 25)),
    some.integers(0, 4),
)
def test_slices_have_every_update_once_and_whole_times(
    times: list[int], upper: int | None, after: int
) -> None:
    updates = tuple(((at,), time, 1) for at, time in enumerate(times))
    segment = ChangeRange(after, upper, updates, SCHEMA, 100 * len(updates))
    found: list[Any] = []
    rows, changes.SLICE_ROWS = changes.SLICE_ROWS, FEW
    try:
        seen: int | None = after
        while seen is not None:
            each = segment.slice(seen)
            assert each.after == seen
            begins = {time for _, time, _ in each.changes}
            assert len(each.changes) <= FEW or each.changes[FEW - 1][1] == each.changes[-1][1]
            assert not begins & {time for _, time, _ in found}, "a time is given once, and whole"
            assert all(time > seen and (each.upper is None or time < each.upper) for time in begins)
            found += each.changes
            at_end = each.upper == upper
            seen = None if at_end or each.upper is None else each.upper - 1
    finally:
        changes.SLICE_ROWS = rows
    assert tuple(found) == updates
