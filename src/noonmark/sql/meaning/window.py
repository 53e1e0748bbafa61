"""The meaning of window calls over one sorted partition. See `noonmark.sql.ir.relation.Window`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from noonmark.sql.evaluate import Outer
from noonmark.sql.evaluate import evaluate as scalar_value
from noonmark.sql.functions.number.fit import fit
from noonmark.sql.functions.window import WindowRow
from noonmark.sql.ir.call import AggregateCall, Exclusion, Frame, Unit, WindowCall
from noonmark.sql.ir.scalar import Scalar

Row = tuple[Any, ...]
PlaceOf = Callable[[Scalar], Callable[[Row], Any]]
#: For each row, where its frame begins and ends; None where no value says so.
Edges = tuple[list[int] | None, list[int] | None]
Fold = Callable[[AggregateCall, Sequence[tuple[Row, int]], Outer], Any]


def window(
    calls: Sequence[WindowCall],
    rows: Sequence[Row],
    keys: Sequence[Any],
    outer: Outer,
    fold: Fold,
    *,
    place_of: PlaceOf,
) -> list[Row]:
    """Every row of the partition with the values of the calls; rows with equal keys are peers.

    `place_of` gives for a scalar in place of the sort key where a row stands by it.
    """
    groups = peer_groups(keys)
    columns = [
        _column(call, rows, groups, outer, fold, edges=edges_of(call.frame, rows, place_of))
        for call in calls
    ]
    return [row + tuple(column[at] for column in columns) for at, row in enumerate(rows)]


def peer_groups(keys: Sequence[Any]) -> list[int]:
    """For each row the number of its group of peers."""
    groups: list[int] = []
    for at, key in enumerate(keys):
        groups.append(0 if at == 0 else groups[-1] + (key != keys[at - 1]))
    return groups


def edges_of(frame: Frame, rows: Sequence[Row], place_of: PlaceOf) -> Edges:
    """The edges of the frames that are given by values."""
    if frame.by is None:
        return None, None
    own = list(map(place_of(frame.by), rows))
    first = None if frame.first is None else map(place_of(frame.first), rows)
    last = None if frame.last is None else map(place_of(frame.last), rows)
    return (
        None if first is None else [bisect_left(own, place) for place in first],
        None if last is None else [bisect_right(own, place) for place in last],
    )


def _column(
    call: WindowCall,
    rows: Sequence[Row],
    groups: list[int],
    outer: Outer,
    fold: Fold,
    *,
    edges: Edges,
) -> list[Any]:
    values: list[list[Any]] = []
    if call.is_window:  # an aggregate asks only the rows in a frame that pass its FILTER
        values = [[scalar_value(each, row, outer) for row in rows] for each in call.arguments]
    result = []
    for at in range(len(rows)):
        frame = _frame(call.frame, at, groups, edges)
        if not call.is_window:
            folded = AggregateCall(call.function, call.arguments, filter=call.filter)
            result.append(fold(folded, [(rows[i], 1) for i in frame], outer))
            continue
        place = WindowRow(
            position=at,
            size=len(rows),
            peers_start=bisect_left(groups, groups[at]),
            peers_end=bisect_right(groups, groups[at]),
            group=groups[at],
            frame=frame,
            argument=lambda k, i: values[k][i],
        )
        result.append(fit(call.entry.meaning(place), call.type))
    return result


def _frame(frame: Frame, at: int, groups: list[int], edges: Edges) -> list[int]:
    """The positions of the rows in the frame of the row at `at`."""
    start, end = _bounds(frame, at, groups)
    start = start if edges[0] is None else edges[0][at]
    end = end if edges[1] is None else edges[1][at]
    own = groups[at]

    def kept(i: int) -> bool:
        match frame.exclude:
            case Exclusion.CURRENT_ROW:
                return i != at
            case Exclusion.GROUP:
                return groups[i] != own
            case Exclusion.TIES:
                return i == at or groups[i] != own
        return True

    return [i for i in range(max(start, 0), min(end, len(groups))) if kept(i)]


def _bounds(frame: Frame, at: int, groups: list[int]) -> tuple[int, int]:
    """The first position and one past the last."""
    size = len(groups)
    if frame.unit is Unit.ROWS:
        start = 0 if frame.start is None else at + frame.start
        return start, size if frame.end is None else at + frame.end + 1
    # Bounds of RANGE that are no values are 0 or open, so both units count groups of peers.
    start = 0 if frame.start is None else bisect_left(groups, groups[at] + frame.start)
    end = size if frame.end is None else bisect_right(groups, groups[at] + frame.end)
    return start, end
