"""The first rows of some keys, in an order, of a relation that is there as a whole.

Law: ``first(traces, asked)`` are, of each key and for each order, all rows of the relation before
some row of the order, at least as many as are wanted; or all of them, if there are no more.

So a top-k, or a minimum, does not read its whole partition. Of a top-k of n rows, changes that take
away at most d rows and add any see only the first n + d rows that were there, and those that come:
at least n of them are left, and whatever was behind them stays behind. Several minima and maxima
are several orders: the rows that are first in one of them.

Each part is put in order once, by the hash of the key and then by the order (`TraceRun.index`):
parts never change. Of what is taken of the parts, a row is complete when it comes before the last
row that was taken of every part which has more of its key.

Where it runs: executors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from noonmark.compute.kernel import index as ix
from noonmark.compute.kernel.finish import finished
from noonmark.compute.kernel.scalar import ask as values_of
from noonmark.compute.kernel.sorting import in_order, sortable
from noonmark.compute.kernel.updates import BEFORE, Errors, Ints, Rows, concat, empty_rows
from noonmark.compute.plan.first import Key, Order, is_of_groups, orders_of
from noonmark.compute.plan.operators import operator_of
from noonmark.compute.plan.pushdown import under
from noonmark.compute.scalar.number import NO_KERNEL
from noonmark.compute.trace.by_key import CollectionAt, TraceReader, TraceRun, label_of
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import column, columns_of

if TYPE_CHECKING:
    from noonmark.compute.incremental.old import Old

#: How many rows of a part are looked at first, of all keys together and of each; how that grows.
FIRST_MIN, EACH_MIN, GROWTH = 256, 8, 4
#: Keys with fewer rows, together, are read as they are: to put parts in order costs more.
ROWS_MIN = 8_192


def first_of(
    old: Old, node: r.Relation, key: Key, probes: Sequence[pa.Array], counts: Ints
) -> Rows | None:
    """The first rows of an operator's input, as many of each key; None where all are to be read.

    Args:
        old: what was there.
        node: the operator.
        key: its key, over the rows of its input.
        probes: the keys that are asked for, each once.
        counts: of each key, how many rows are wanted.
    """
    orders = orders_of(node)
    given = Kept.of(next(r.relations_below(node)), old) if orders else None
    if given is None or given.place.first is not None:
        return None
    asked = Asked(given, key, orders, probes, counts)
    try:
        return first(old.traces, asked) if asked.is_worth_it(old.traces) else None
    except NO_KERNEL:
        return None


@dataclass(frozen=True)
class Kept:
    """A relation that filters, projections and `finished` make, row by row, of what is stored."""

    relation: r.Relation
    base: r.Relation
    place: CollectionAt

    @classmethod
    def of(cls, relation: r.Relation, old: Old) -> Kept | None:
        """The relation as it can be read; None when it cannot be, or not row by row."""
        below = relation
        while below not in old.wholes:
            operator = operator_of(below)
            place, inner = operator.place(below, old), operator.row_by_row(below)
            if place is not None:
                return cls(relation, below, place)
            if inner is None:
                return None
            below = inner
        return cls(relation, below, old.wholes[below])

    def stored_key(self, key: Key) -> Key | None:
        """A key over what is stored; None if it is of what accumulators show, and not of groups."""
        node = self.relation
        while node is not self.base:
            if isinstance(node, r.Project):
                key = tuple(under(node.scalars, part) for part in key)
            below = operator_of(node).row_by_row(node)
            assert below is not None, "row by row, down to what is stored"
            node = below
        if not isinstance(node, r.Aggregate) or len(self.place.collection.schema) == len(
            node.schema
        ):
            return key
        if not is_of_groups(node, key):
            return None
        columns = self.place.collection.schema.columns
        return tuple(column(at, columns[at]) for part in key for at in columns_of(part))

    def rows(self, stored: Rows) -> tuple[Rows, Ints]:
        """The rows of the relation, and of which of the stored ones they are."""
        return self._rows(self.relation, stored)

    def _rows(self, node: r.Relation, stored: Rows) -> tuple[Rows, Ints]:
        if node is self.base:
            if isinstance(node, r.Aggregate) and len(stored.columns) != len(node.schema):
                return finished(node, stored, Errors())
            return stored, np.arange(len(stored))
        operator = operator_of(node)
        below = operator.row_by_row(node)
        assert below is not None, "row by row, down to what is stored"
        rows, places = self._rows(below, stored)
        made, kept = operator.each_row(node, rows)
        return made, places[kept]


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked for: of each key, in each of the orders, the first rows.

    Attributes:
        given: the relation.
        key: over its rows.
        orders: of its rows.
        probes: the values of the keys, column by column.
        counts: of each key, how many rows are wanted.
    """

    given: Kept
    key: Key
    orders: tuple[Order, ...]
    probes: Sequence[pa.Array]
    counts: Ints

    def is_worth_it(self, traces: TraceReader) -> bool:
        """Whether there may be many more rows with these keys than are wanted."""
        if not self.key:
            return True
        stored = self.given.stored_key(self.key)
        if stored is None:
            return False
        found = int(traces.counts(self.given.place, stored, self.probes).sum())
        return found >= max(ROWS_MIN, GROWTH * int(self.counts.sum()))


def first(traces: TraceReader, asked: Asked) -> Rows:
    """See the module."""
    place = asked.given.place
    segments = list(traces.segments(place, set(range(len(place.collection.schema)))))
    if not segments:
        return empty_rows(asked.given.relation.schema)
    taken: list[list[Ints]] = [[] for _ in segments]
    for order in asked.orders:
        search = _Search(asked, order, segments)
        for places, more in zip(taken, search.places(), strict=True):
            places.append(more)
        traces.touched += search.touched
    found = []
    for segment, places in zip(segments, taken, strict=True):
        # A row that is first in two orders is there once.
        stored = segment.rows.take(np.unique(np.concatenate(places)))
        known = np.flatnonzero(stored.time <= place.as_of)
        found.append(asked.given.rows(stored.take(known))[0])
    return concat(found, asked.given.relation.schema).at(BEFORE).consolidated()


class _Search:
    """The first rows in one order: more and more of each part, until they are enough."""

    def __init__(self, asked: Asked, order: Order, segments: Sequence[TraceRun]) -> None:
        self.asked = asked
        self.order = order
        self.segments = segments
        self.touched = 0
        self.hashes = ix.hashes_of(asked.probes, len(asked.counts))
        self.indexes = [ordered(asked.given, each, asked.key, order) for each in segments]

    def places(self) -> list[Ints]:
        """The places of the rows in each segment."""
        wanted = self.asked.counts
        size = max(FIRST_MIN // len(wanted), EACH_MIN, int(wanted.max()))
        while True:
            taken = [ix.firsts(index, self.hashes, size) for index in self.indexes]
            self.touched += sum(len(places) for _, places, _ in taken)
            found, enough = self._complete(taken)
            if enough:
                return found
            size *= GROWTH

    def _complete(self, taken: Sequence[tuple[Ints, Ints, ix.Bools]]) -> tuple[list[Ints], bool]:
        """Of what was taken, that of which nothing is missing; and whether it is enough."""
        given, as_of = self.asked.given, self.asked.given.place.as_of
        rows = []
        for segment, (_, places, _) in zip(self.segments, taken, strict=True):
            stored = segment.rows.take(places)
            diff = np.where(stored.time <= as_of, stored.diff, 0)
            rows.append(given.rows(Rows(stored.columns, stored.time, diff))[0])
        every = concat(rows, given.relation.schema)
        ids, cut = (np.concatenate([each[at] for each in taken]) for at in (0, 2))
        fine = self._ahead(every, ids, cut) & self._own(every, ids)
        counts = np.zeros(len(self.asked.counts), np.int64)
        np.add.at(counts, ids[fine], every.diff[fine])
        open_ = np.zeros(len(counts), np.bool_)
        open_[ids[cut]] = True
        ends = np.cumsum([len(places) for _, places, _ in taken])[:-1]
        parts = zip(np.split(fine, ends), taken, strict=True)
        found = [places[those] for those, (_, places, _) in parts]
        return found, bool((~open_ | (counts >= self.asked.counts)).all())

    def _ahead(self, rows: Rows, ids: Ints, cut: ix.Bools) -> ix.Bools:
        """Which rows come before the last that was taken of every segment that has more."""
        order = in_order(self.order, rows, ids)
        ranks = np.empty(len(rows), np.int64)
        ranks[order] = np.arange(len(rows))
        bounds = np.full(len(self.asked.counts), len(rows), np.int64)
        np.minimum.at(bounds, ids[cut], ranks[cut])
        fine = ranks < bounds[ids]
        bounded = np.flatnonzero(fine & (bounds[ids] < len(rows)))
        if len(bounded):  # more of the last row itself may follow
            last = pa.array(order[bounds[ids[bounded]]])
            columns = [sortable(each) for each in rows.columns if each is not None]
            mine = [column.take(pa.array(bounded)) for column in columns]
            same = ix.same(mine, [column.take(last) for column in columns], len(bounded))
            fine[bounded[same]] = False
        return fine

    def _own(self, rows: Rows, ids: Ints) -> ix.Bools:
        """Which rows have the key that they were found by, and not only its hash."""
        values, _ = values_of(self.asked.key, rows)
        probes = [probe.take(pa.array(ids)) for probe in self.asked.probes]
        made = np.zeros(len(rows), np.bool_)
        made[ix.same(values, probes, len(rows))] = True
        return made


def ordered(given: Kept, segment: TraceRun, key: Key, order: Order) -> ix.Index:
    """Of the stored rows that become rows of the relation: by key, and then in order."""
    label = label_of(given.place.collection.schema.names, given.relation, key, order)

    def make(stored: Rows) -> ix.Index:
        rows, places = given.rows(stored)
        hashes = ix.hashes_of(values_of(key, rows)[0], len(rows))
        by = in_order(order, rows, hashes)
        return ix.Index(hashes[by], places[by].astype(np.uint32))

    return segment.index(label, make)
