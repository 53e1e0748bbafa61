"""Window calls over one sorted partition of n rows, in n log n.

Law: ``window(...)`` is that of `noonmark.sql.meaning.window`, which asks every frame anew.

A frame is a few ranges of positions and is never listed. Where frames begin and end follows from
the groups of peers; an aggregate is folded by ranges (`noonmark.sql.meaning.frame_folds`), and what
shows all of its frame (array_agg, string_agg, ...) is asked of the frame: its answer is as long.

Where it runs: everywhere; pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from noonmark.sql.evaluate import Outer
from noonmark.sql.evaluate import evaluate as scalar_value
from noonmark.sql.functions.aggregate import Aggregator
from noonmark.sql.functions.number.fit import fit
from noonmark.sql.functions.window import WindowRow
from noonmark.sql.ir.call import AggregateCall, Exclusion, Frame, Unit, WindowCall
from noonmark.sql.meaning.frame_folds import Counted, Fold, Range, Ranges, fold_of
from noonmark.sql.meaning.window import Edges, PlaceOf, edges_of, peer_groups
from noonmark.sql.meaning.window import Fold as Meaning

Row = tuple[Any, ...]


class Positions(Sequence[int]):
    """The positions in some ranges, in order, without a list of them."""

    def __init__(self, ranges: Sequence[Range]) -> None:
        self._ranges = ranges

    def __len__(self) -> int:
        return sum(high - low for low, high in self._ranges)

    def __getitem__(self, at: Any) -> Any:
        left = at + len(self) if at < 0 else at
        for low, high in self._ranges:
            if left < high - low:
                return low + left
            left -= high - low
        raise IndexError(at)

    def __iter__(self) -> Iterator[int]:
        for low, high in self._ranges:
            yield from range(low, high)


@dataclass(frozen=True)
class _Peers:
    """The groups of peers of a partition: of each row its group, of each group where it begins."""

    groups: list[int]
    starts: list[int]

    @classmethod
    def of(cls, keys: Sequence[Any]) -> _Peers:
        groups = peer_groups(keys)
        starts = [at for at, group in enumerate(groups) if at == 0 or group != groups[at - 1]]
        return cls(groups, [*starts, len(groups)])

    def start(self, group: int) -> int:
        """The first position of a group; of one that is not there, the end on its side."""
        return self.starts[min(max(group, 0), len(self.starts) - 1)]

    def of_row(self, at: int) -> Range:
        """The peers of a row."""
        return self.start(self.groups[at]), self.start(self.groups[at] + 1)

    def bounds(self, frame: Frame, at: int) -> Range:
        """Where a frame that is not given by values begins, and one past its end."""
        size = len(self.groups)
        if frame.unit is Unit.ROWS:
            start = 0 if frame.start is None else at + frame.start
            return start, size if frame.end is None else at + frame.end + 1
        own = self.groups[at]
        start = 0 if frame.start is None else self.start(own + frame.start)
        return start, size if frame.end is None else self.start(own + frame.end + 1)

    def ranges(self, frame: Frame, at: int, edges: Edges) -> tuple[Range, ...]:
        """The frame of a row."""
        start, end = self.bounds(frame, at)
        start = max(start if edges[0] is None else edges[0][at], 0)
        end = min(end if edges[1] is None else edges[1][at], len(self.groups))
        if frame.exclude is Exclusion.NO_OTHERS:
            return ((start, end),) if start < end else ()
        low, high = (at, at + 1) if frame.exclude is Exclusion.CURRENT_ROW else self.of_row(at)
        own = (at, at + 1) if frame.exclude is Exclusion.TIES else (at, at)
        parts = (
            (start, min(end, low)),
            (max(start, own[0]), min(end, own[1])),
            (max(start, high), end),
        )
        return tuple(part for part in parts if part[0] < part[1])


def window(
    calls: Sequence[WindowCall],
    rows: Sequence[Row],
    keys: Sequence[Any],
    outer: Outer,
    fold: Meaning,
    *,
    place_of: PlaceOf,
) -> list[Row]:
    """Every row of the partition with the values of the calls; rows with equal keys are peers."""
    peers = _Peers.of(keys)
    columns = []
    for call in calls:
        edges = edges_of(call.frame, rows, place_of)
        frames = [peers.ranges(call.frame, at, edges) for at in range(len(rows))]
        if call.is_window:
            columns.append(_places(call, rows, peers, frames, outer))
        else:
            columns.append(_aggregates(call, rows, frames, outer, fold))
    return [row + values for row, values in zip(rows, zip(*columns, strict=True), strict=True)]


def _places(
    call: WindowCall,
    rows: Sequence[Row],
    peers: _Peers,
    frames: Sequence[Sequence[Range]],
    outer: Outer,
) -> list[Any]:
    """A window function proper, at the place of each row."""
    values = [[scalar_value(argument, row, outer) for row in rows] for argument in call.arguments]
    made = []
    for at in range(len(rows)):
        start, end = peers.of_row(at)
        place = WindowRow(
            position=at,
            size=len(rows),
            peers_start=start,
            peers_end=end,
            group=peers.groups[at],
            frame=Positions(frames[at]),
            argument=lambda k, i: values[k][i],
        )
        made.append(fit(call.entry.meaning(place), call.type))
    return made


def _aggregates(
    call: WindowCall,
    rows: Sequence[Row],
    frames: Sequence[Sequence[Range]],
    outer: Outer,
    fold: Meaning,
) -> list[Any]:
    """An aggregate over the frame of each row; equal frames of neighbours are asked once."""
    made: list[Any] = []
    known = fold_of(call.entry.name, [each.type for each in call.arguments])
    folded = None
    if known is not None:
        folded = Ranges(known, _states(call, known, rows, _used(frames, len(rows)), outer))
    for at, frame in enumerate(frames):
        if at and frame == frames[at - 1]:
            made.append(made[-1])
        elif folded is not None:
            made.append(fit(folded.over(frame), call.type))
        else:
            whole = AggregateCall(call.function, call.arguments, filter=call.filter)
            made.append(fold(whole, [(rows[i], 1) for i in Positions(frame)], outer))
    return made


def _used(frames: Sequence[Sequence[Range]], count: int) -> list[bool]:
    """Which rows are in some frame: nothing is asked of the others."""
    steps = [0] * (count + 1)
    for frame in frames:
        for low, high in frame:
            steps[low] += 1
            steps[high] -= 1
    return [depth > 0 for depth in accumulate(steps)][:count]


def _states(
    call: WindowCall, fold: Fold, rows: Sequence[Row], used: Sequence[bool], outer: Outer
) -> list[Counted]:
    """The state of each row; None of one that the aggregate does not see."""
    entry = call.entry
    assert isinstance(entry, Aggregator)
    made: list[Counted] = []
    for row, is_used in zip(rows, used, strict=True):
        state: Counted = None
        if is_used and (call.filter is None or scalar_value(call.filter, row, outer) is True):
            arguments = [scalar_value(each, row, outer) for each in call.arguments]
            if not entry.strict or all(each is not None for each in arguments):
                state = 1, fold.lift(arguments[0] if arguments else None)
        made.append(state)
    return made
