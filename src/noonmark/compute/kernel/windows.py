"""Windows, of all rows of some partitions at once.

Law: ``window(node, rows)`` is what `ir.relation.Window` says, for rows that hold whole partitions.
`NoKernel` where a value does not fit, or has no order that Arrow knows.

The rows stand in order, partition by partition, each as often as it is there. A frame is where it
begins and ends; sums and counts of frames are differences of running ones, minima and maxima are
looked up in a table of those of 1, 2, 4, ... rows. So n rows take n log n.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.compute.kernel import index as ix
from noonmark.compute.kernel.average import averages
from noonmark.compute.kernel.scalar import kept
from noonmark.compute.kernel.sorting import in_order, sortable, values_of
from noonmark.compute.kernel.updates import BEFORE, Errors, Ints, Rows, group_ids
from noonmark.compute.scalar import number
from noonmark.compute.scalar.number import NoKernel
from noonmark.rows import types as t
from noonmark.rows.exact import FLOATS
from noonmark.sql.functions.number.fit import numeric_for
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import Exclusion, Frame, Unit, WindowCall
from noonmark.sql.ir.scalar import Scalar

#: The table of extremes has 8 bytes for each row and power of two.
_TABLE_ROWS_MAX = 1 << 21
_NUMBERS = (t.SmallInt, t.Integer, t.BigInt, t.Numeric)


def has_window_kernel(
    call: WindowCall,
    plain: Callable[[Sequence[Scalar]], bool],
    ordered: Callable[[Sequence[Scalar]], bool],
) -> bool:
    """Whether a call may be computed for all rows at once; `plain` and `ordered` judge scalars."""
    frame, name = call.frame, call.entry.name
    if frame.by is not None or frame.exclude is not Exclusion.NO_OTHERS:
        return False
    if call.filter is not None and not plain([call.filter]):
        return False
    if call.is_window:
        known = name in _PLACES or (name in _NEIGHBOURS and len(call.arguments) == 1)
        return known and ordered(call.arguments)
    if name in ("min", "max"):
        return ordered(call.arguments) and not isinstance(call.arguments[0].type, FLOATS)
    if name in ("sum", "avg"):
        kind = call.arguments[0].type
        return isinstance(kind, _NUMBERS) and not t.is_plain(kind) and plain(call.arguments)
    return name == "count" and plain(call.arguments)


@dataclass(frozen=True, eq=False)
class Partitions:
    """Rows in order, partition by partition.

    Attributes:
        rows: each as often as it is there.
        starts, ends: of each row's partition; `ends` are one past.
        peers, peers_end: of each row's group of peers.
        groups: the number of that group, counted through all partitions.
        group_starts: where each group begins, and the end of all rows.
    """

    rows: Rows
    starts: Ints
    ends: Ints
    peers: Ints
    peers_end: Ints
    groups: Ints
    group_starts: Ints

    @classmethod
    def of(cls, node: r.Window, rows: Rows) -> Partitions:
        """The rows as the window has them."""
        ids, _ = group_ids(values_of(node.partition, rows), len(rows))
        order = in_order(node.order, rows, ids)
        order = np.repeat(order, rows.diff[order])
        listed, ids = rows.take(order), ids[order]
        begins = np.diff(ids, prepend=-1) != 0
        changes = begins.copy()
        keys = [sortable(each) for each in values_of([e.scalar for e in node.order], listed)]
        if keys and len(listed) > 1:
            before, after = ([key[at] for key in keys] for at in (slice(0, -1), slice(1, None)))
            same = np.zeros(len(listed) - 1, np.bool_)
            same[ix.same(before, after, len(listed) - 1)] = True
            changes[1:] |= ~same
        starts, ends, _, _ = _spans(begins)
        peers, peers_end, groups, group_starts = _spans(changes)
        return cls(listed, starts, ends, peers, peers_end, groups, group_starts)

    def frames(self, frame: Frame) -> tuple[Ints, Ints]:
        """Where the frame of each row begins, and one past its end."""
        at = np.arange(len(self.rows))
        low, high = self.starts, self.ends
        if frame.unit is Unit.ROWS:
            low = low if frame.start is None else at + frame.start
            high = high if frame.end is None else at + frame.end + 1
        else:
            low = low if frame.start is None else self._group(frame.start)
            high = high if frame.end is None else self._group(frame.end + 1)
        low = np.clip(low, self.starts, self.ends)
        return low, np.maximum(np.clip(high, self.starts, self.ends), low)

    def _group(self, distance: int) -> Ints:
        """Where the group so many further begins."""
        last = len(self.group_starts) - 1
        return self.group_starts[np.clip(self.groups + distance, 0, last)]


def _spans(begins: ix.Bools) -> tuple[Ints, Ints, Ints, Ints]:
    """Of each row where its span begins and ends, the number of the span, and all beginnings."""
    firsts = np.append(np.flatnonzero(begins), len(begins))
    numbers = np.cumsum(begins) - 1
    return firsts[numbers], firsts[numbers + 1], numbers, firsts


def window(node: r.Window, rows: Rows) -> Rows:
    """Every row with the values of the calls."""
    made = Partitions.of(node, rows)
    count = len(made.rows)
    columns = [_column(call, made) for call in node.calls]
    once, before = np.ones(count, np.int64), np.full(count, BEFORE, np.int64)
    return Rows((*made.rows.columns, *columns), before, once)


def _column(call: WindowCall, given: Partitions) -> pa.Array:
    if not call.is_window:
        return _aggregated(call, given)
    if call.entry.name in _PLACES:
        return pa.array(_PLACES[call.entry.name](given), pa.int64())
    (values,) = values_of(call.arguments, given.rows)
    at, there = _NEIGHBOURS[call.entry.name](given, call.frame)
    return values.take(pa.array(np.where(there, at, 0), mask=~there))


def _shifted(by: int) -> Callable[[Partitions, Frame], tuple[Ints, ix.Bools]]:
    def act(given: Partitions, _: Frame) -> tuple[Ints, ix.Bools]:
        at = np.arange(len(given.rows)) + by
        return at, (at >= given.starts) & (at < given.ends)

    return act


def _first(given: Partitions, frame: Frame) -> tuple[Ints, ix.Bools]:
    low, high = given.frames(frame)
    return low, low < high


def _last(given: Partitions, frame: Frame) -> tuple[Ints, ix.Bools]:
    low, high = given.frames(frame)
    return high - 1, low < high


def _dense(given: Partitions) -> Ints:
    return given.groups - given.groups[given.starts] + 1 if len(given.rows) else given.groups


_PLACES: dict[str, Callable[[Partitions], Ints]] = {
    "row_number": lambda given: np.arange(len(given.rows)) - given.starts + 1,
    "rank": lambda given: given.peers - given.starts + 1,
    "dense_rank": _dense,
}
#: At which row a value is taken, and whether that is there.
_NEIGHBOURS: dict[str, Callable[[Partitions, Frame], tuple[Ints, ix.Bools]]] = {
    "lag": _shifted(-1),
    "lead": _shifted(1),
    "first_value": _first,
    "last_value": _last,
}


# -- aggregates ---------------------------------------------------------------------------------


def _aggregated(call: WindowCall, given: Partitions) -> pa.Array:
    low, high = given.frames(call.frame)
    seen = np.zeros(len(given.rows), np.bool_)
    if call.filter is None:
        seen[:] = True
    else:
        seen[kept(call.filter, given.rows, Errors())] = True
    if not call.arguments:
        return pa.array(_differences(_running(seen.astype(np.int64)), low, high), pa.int64())
    (values,) = values_of(call.arguments, given.rows)
    seen &= values.is_valid().to_numpy(zero_copy_only=False)
    counts = _differences(_running(seen.astype(np.int64)), low, high).astype(np.int64)
    match call.entry.name:
        case "count":
            return pa.array(counts, pa.int64())
        case "min" | "max":
            return _extremes(call, values, seen, low, high)
    scale = numeric_for(call.arguments[0].type).stored_scale
    exact = number.scaled(values).at_scale(scale).values
    totals = _differences(_running(np.where(seen, exact, 0)), low, high)
    sums = number.Scaled(totals, scale, counts != 0)
    return averages(sums, counts) if call.entry.name == "avg" else number.to_array(sums, call.type)


def _running(values: number.Values) -> number.Values:
    """The exact sum of all values before each, and of all."""
    if values.dtype != object and number.bound(values) * max(len(values), 1) >= float(1 << 62):
        values = values.astype(object)
    return np.concatenate([np.zeros(1, values.dtype), np.cumsum(values, dtype=values.dtype)])


def _differences(running: number.Values, low: Ints, high: Ints) -> number.Values:
    return running[high] - running[low]


def _extremes(
    call: WindowCall, values: pa.Array, seen: ix.Bools, low: Ints, high: Ints
) -> pa.Array:
    """The least or the greatest value of each frame, found by its place in the order of all."""
    count = len(values)
    if count > _TABLE_ROWS_MAX:
        raise NoKernel
    way = "descending" if call.entry.name == "max" else "ascending"
    order = pc.sort_indices(pa.table([values], names=["v"]), [("v", way)]).to_numpy()
    ranks = np.empty(count, np.int64)
    ranks[order] = np.arange(count)
    ranks[~seen] = count
    table = [ranks]
    while 2 << (len(table) - 1) <= count:
        last, step = table[-1], 1 << (len(table) - 1)
        table.append(np.minimum(last[:-step], last[step:]))
    best = np.full(count, count, np.int64)
    sizes = high - low
    for level in np.unique(_levels(sizes)).tolist():
        at = np.flatnonzero((_levels(sizes) == level) & (sizes > 0))
        row = table[level]
        best[at] = np.minimum(row[low[at]], row[high[at] - (1 << level)])
    there = best < count
    places = np.append(order, 0)[np.where(there, best, count)]
    return values.take(pa.array(places.astype(np.int64), mask=~there))


def _levels(sizes: Ints) -> Ints:
    """The power of two that is at most as large."""
    return np.frexp(np.maximum(sizes, 1).astype(np.float64))[1].astype(np.int64) - 1
