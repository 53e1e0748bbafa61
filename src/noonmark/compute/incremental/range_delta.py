"""The rows for which a comparison with one row switches, found in their order.

Law: ``switched(...)`` are, of the rows of a leaf as they were, all for which the comparison does
not give the same with every one of the changes, and perhaps some more; each beside all changes.

The rows of a part for which the comparison holds are neighbours in the order of the switch
(`noonmark.compute.plan.range_delta`). Where they begin and end is searched for each of the changes,
by asking predicates of some rows at a time; it switches for those that are not among them for every
change.

Where it runs: executors.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from noonmark.compute.incremental.binding import Binding, Found
from noonmark.compute.incremental.first import Kept, ordered
from noonmark.compute.kernel import index as ix
from noonmark.compute.kernel.scalar import kept
from noonmark.compute.kernel.updates import BEFORE, Errors, Ints, Rows, concat, empty_rows
from noonmark.compute.plan.multiway import MultiwayJoin, Step
from noonmark.compute.plan.range_delta import RangeDelta
from noonmark.compute.scalar.number import NO_KERNEL
from noonmark.compute.trace.by_key import TraceRun
from noonmark.sql.ir.scalar import Scalar

if TYPE_CHECKING:
    from noonmark.compute.incremental.old import Old

#: How many rows are asked at a time: the search takes as many rounds as there are digits.
ASKED = 64


def switched(
    old: Old, group: MultiwayJoin, step: Step, switch: RangeDelta, binding: Binding
) -> Found | None:
    """Old rows of the next leaf beside the changes of one row; None where all are to be read."""
    leaf = group.leaves[step.leaf]
    if not len(binding.rows):
        return np.zeros(0, np.int64), empty_rows(leaf.schema)
    if not _is_balanced(binding.rows):
        return None
    given = Kept.of(leaf, old)
    if given is None or given.place.first is not None:
        return None
    try:
        rows = _Search(group, step, switch, given, binding.rows).rows(old)
    except NO_KERNEL:
        return None
    count = len(binding.rows)
    places = np.repeat(np.arange(count), len(rows))
    return places, rows.take(np.tile(np.arange(len(rows)), count))


def _is_balanced(rows: Rows) -> bool:
    """Whether at every time as many rows come as go."""
    times, at = np.unique(rows.time, return_inverse=True)
    sums = np.zeros(len(times), np.int64)
    np.add.at(sums, at, rows.diff)
    return not sums.any()


class _Search:
    def __init__(
        self, group: MultiwayJoin, step: Step, switch: RangeDelta, given: Kept, changes: Rows
    ) -> None:
        self.start = group.starts[step.leaf]
        self.switch = switch
        self.given = given
        self.changes = changes

    def rows(self, old: Old) -> Rows:
        """Those for which the comparison switches."""
        place, schema = self.given.place, self.given.relation.schema
        found = []
        for segment in old.traces.segments(place, set(range(len(place.collection.schema)))):
            index = ordered(self.given, segment, (), self.switch.order)
            ranges = [self._range(segment, index, at) for at in range(len(self.changes))]
            stored = segment.rows.take(index.rows[_not_in_all(ranges)].astype(np.int64))
            old.traces.touched += len(stored)
            known = np.flatnonzero(stored.time <= place.as_of)
            found.append(self.given.rows(stored.take(known))[0])
        return concat(found, schema).at(BEFORE) if found else empty_rows(schema)

    def _range(self, segment: TraceRun, index: ix.Index, change: int) -> tuple[int, int]:
        """The rows of a segment, in order, for which the comparison with a change holds."""
        before, until = self.switch.before, self.switch.until
        start = 0 if before is None else self._end(before, segment, index, change)
        return start, self._end(until, segment, index, change)

    def _end(self, predicate: Scalar, segment: TraceRun, index: ix.Index, change: int) -> int:
        """For how many rows of a segment, the first ones, a predicate holds."""
        low, high = 0, len(index.rows)
        while low < high:
            asked = np.unique(np.linspace(low, high - 1, ASKED).astype(np.int64))
            stored = segment.rows.take(index.rows[asked].astype(np.int64))
            holds = self._holds(predicate, stored, change)
            if holds < len(asked):
                high = int(asked[holds])
            if holds:
                low = int(asked[holds - 1]) + 1
        return low

    def _holds(self, predicate: Scalar, stored: Rows, change: int) -> int:
        """For how many of these rows a predicate holds."""
        rows, _ = self.given.rows(stored)
        one = self.changes.take(np.full(len(rows), change, np.int64))
        columns: list[pa.Array | None] = list(one.columns)
        columns[self.start : self.start + len(rows.columns)] = rows.columns
        return len(kept(predicate, rows.with_columns(columns), Errors()))


def _not_in_all(ranges: list[tuple[int, int]]) -> Ints:
    """The places that are in some of the ranges, and not in all of them."""
    bounds = sorted({bound for each in ranges for bound in each})
    pieces = [np.zeros(0, np.int64)]
    for low, high in pairwise(bounds):
        among = sum(start <= low and high <= end for start, end in ranges)
        if 0 < among < len(ranges):
            pieces.append(np.arange(low, high))
    return np.concatenate(pieces)
