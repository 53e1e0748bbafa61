"""The first rows of a relation that is there as a whole, in the order of a top-k.

Law: ``first(shelf, kept, node, count)`` are all rows of the relation before some row of the
order, at least `count` of them as they are counted; or all of them, if there are no more.

So a top-k over everything does not read everything. Of a top-k of n rows, changes that take away at
most d rows and add any see only the first n + d rows that were there, and those that come: at least
n of them are left, and whatever was behind them stays behind.

Each part is put in order once (`cache.Cached.order`): parts never change. A row is complete when it
comes before the last row that was taken of every part which has more.

Where it runs: executors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from noonmark.compute.askable import is_whole
from noonmark.compute.walk import index as ix
from noonmark.compute.walk.ask import Old
from noonmark.compute.walk.finish import finished
from noonmark.compute.walk.meaning import has_kernel, in_order
from noonmark.compute.walk.rows import BEFORE, Errors, Ints, Rows, concat
from noonmark.compute.walk.scalar import ask as values_of
from noonmark.compute.walk.scalar import kept
from noonmark.compute.walk.state import Place, Shelf
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.temporal import temporal

#: How many rows of a part are looked at first, and by how much that grows.
FIRST_MIN, GROWTH = 256, 4


def is_short(node: r.Relation) -> bool:
    """Whether the operator is a top-k over everything that can be asked so."""
    return (
        isinstance(node, r.TopK)
        and not node.partition
        and node.limit is not None
        and (has_kernel(node))
    )


def reads_first(node: r.Relation) -> bool:
    """Whether a change of the operator reads its first rows alone, by its plan."""
    if not isinstance(node, r.TopK) or not is_short(node):
        return False
    below: r.Relation = node.input
    if not is_whole(below):
        return True  # it is kept as it is
    while isinstance(below, r.Project) or (isinstance(below, r.Filter) and temporal(below) is None):
        below = below.input
    return isinstance(below, r.Scan | r.Aggregate)


def enough(node: r.TopK, changed: Rows) -> int:
    """How many of the rows that were there the changes can bring into sight."""
    assert node.limit is not None
    return node.offset + node.limit + int(-changed.diff[changed.diff < 0].sum())


@dataclass(frozen=True)
class Kept:
    """A relation that filters, projections and `finished` make, row by row, of what is stored."""

    relation: r.Relation
    base: r.Relation
    place: Place

    @classmethod
    def of(cls, relation: r.Relation, old: Old) -> Kept | None:
        """The relation as it can be read; None when it cannot be, or not row by row."""
        below = relation
        while below not in old.wholes:
            match below:
                case r.Scan():
                    return cls(relation, below, old.places[below.collection])
                case r.Aggregate() if below in old.sums:
                    return cls(relation, below, old.sums[below])
                case r.Project():
                    below = below.input
                case r.Filter() if temporal(below) is None:
                    below = below.input
                case _:
                    return None
        return cls(relation, below, old.wholes[below])

    def rows(self, stored: Rows) -> tuple[Rows, Ints]:
        """The rows of the relation, and of which of the stored ones they are."""
        return self._rows(self.relation, stored)

    def _rows(self, node: r.Relation, stored: Rows) -> tuple[Rows, Ints]:
        if node is self.base:
            if isinstance(node, r.Aggregate) and len(stored.columns) != len(node.schema):
                return finished(node, stored, Errors())
            return stored, np.arange(len(stored))
        assert isinstance(node, r.Filter | r.Project)
        rows, places = self._rows(node.input, stored)
        if isinstance(node, r.Filter):
            passed = kept(node.predicate, rows, Errors())
            return rows.take(passed), places[passed]
        arrays, failed = values_of(node.scalars, rows)
        made = rows.with_columns(arrays)
        if failed is None:
            return made, places
        fine = np.flatnonzero([text is None for text in failed])
        return made.take(fine), places[fine]


def first(shelf: Shelf, given: Kept, node: r.TopK, count: int) -> Rows:
    """See the module."""
    place = given.place
    label = repr((place.collection.schema.names, given.relation, node.order))
    segments = list(shelf.segments(place, set(range(len(place.collection.schema)))))
    orders = [each.order(label, partial(_places, given, node, each.rows)) for each in segments]
    size = max(FIRST_MIN, count)
    while True:
        taken = []
        for each, order in zip(segments, orders, strict=True):
            known = each.rows.take(np.asarray(order[:size]))
            diff = np.where(known.time <= place.as_of, known.diff, 0)
            taken.append(given.rows(Rows(known.columns, known.time, diff))[0])
        longer = [len(order) > size for order in orders]
        found = _complete(node, given.relation.schema, taken, longer)
        if not any(longer) or int(found.diff.sum()) >= count:
            return found
        size *= GROWTH


def _places(given: Kept, node: r.TopK, stored: Rows) -> Ints:
    """The places of stored rows in the order of what they become."""
    rows, places = given.rows(stored)
    return places[_ordered(node, rows)]


def _ordered(node: r.TopK, rows: Rows) -> Ints:
    return in_order(node.order, rows, np.zeros(len(rows), np.int64))


def _complete(node: r.TopK, schema: Schema, taken: list[Rows], longer: list[bool]) -> Rows:
    """Of the first rows of every part, those of which nothing is missing."""
    rows = concat(taken, schema).at(BEFORE)
    if not any(longer):
        return rows.consolidated()
    ends = np.cumsum([len(each) for each in taken]) - 1
    order = _ordered(node, rows)
    ranks = np.empty(len(rows), np.int64)
    ranks[order] = np.arange(len(rows))
    last = ends[longer][np.argmin(ranks[ends[longer]])]
    ahead = rows.take(order[: ranks[last]])
    own = [column for column in ahead.columns if column is not None]
    end = pa.array(np.full(len(ahead), last))
    bound = [column.take(end) for column in rows.columns if column is not None]
    fine = np.ones(len(ahead), np.bool_)
    fine[ix.same(own, bound, len(ahead))] = False  # more of that row may follow
    return ahead.take(np.flatnonzero(fine)).consolidated()
