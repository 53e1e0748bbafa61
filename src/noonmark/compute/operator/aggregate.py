"""Aggregate: one row for each group; without keys, one row always.

Law: an aggregation that is *linear* has accumulators, which are sums over the rows of a group
(`noonmark.compute.kernel.accumulator`), so its changes follow from those of its input and from the
accumulators alone: these it keeps. All others need the rows of the groups that changed; minima and
maxima only the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from noonmark.compute.contents import group
from noonmark.compute.contents.reduction import Grouped, Reduction
from noonmark.compute.incremental.accumulate import accumulate
from noonmark.compute.incremental.binding import Found
from noonmark.compute.kernel import keyed
from noonmark.compute.kernel.accumulator import accumulator_schema, argument, is_linear
from noonmark.compute.kernel.finish import finished
from noonmark.compute.kernel.updates import Changes, Errors, Ints, Rows, concat
from noonmark.compute.operator.base import Key, Keyed, Wanted, columns_in
from noonmark.compute.plan.first import Order, is_of_groups, with_extremes
from noonmark.compute.plan.growing import EXTREMES, can_be_asked, can_merge, keeps_itself
from noonmark.compute.plan.multiway import Keys
from noonmark.compute.plan.operators import Way
from noonmark.compute.plan.pushdown import can_push_down
from noonmark.rows.exact import is_exact
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.scalar import ColumnRef, Scalar, column

if TYPE_CHECKING:
    from noonmark.compute.contents.evaluation import ContentsEvaluation
    from noonmark.compute.incremental.old import Old
    from noonmark.compute.incremental.rules import Evaluation
    from noonmark.compute.trace.by_key import CollectionAt


class Aggregate(Keyed[r.Aggregate]):
    """See the module."""

    def way(self, node: r.Aggregate) -> Way:
        """By accumulators, by its own rows, or by the rows of the groups that changed."""
        if is_linear(node):
            return Way.SUMS
        return Way.KEPT if keeps_itself(node) else super().way(node)

    def sides(self, node: r.Aggregate) -> Sequence[tuple[r.Relation, Key]]:
        """Its keys."""
        return [(node.input, node.keys)]

    def over_scans(self, node: r.Aggregate) -> r.Relation:
        """Over one collection."""
        return replace(node, input=r.Scan("0", node.input.schema))

    def orders(self, node: r.Aggregate) -> tuple[Order, ...]:
        """Minima and maxima are first in the order of their argument."""
        if any(call.entry.name not in EXTREMES for call in node.aggregates):
            return ()
        made = tuple(
            (SortKey(argument(call), descending=call.entry.name == "max"),)
            for call in node.aggregates
        )
        return with_extremes(node, made)

    def can_push_down(self, node: r.Aggregate, key: Scalar) -> bool:
        """By what it groups by."""
        if not isinstance(key, ColumnRef) or key.index >= len(node.keys):
            return False
        return self.is_whole(node) or can_push_down(node.input, node.keys[key.index])

    def is_whole(self, node: r.Aggregate) -> bool:
        """If its accumulators are kept, or it is itself."""
        return is_linear(node) or keeps_itself(node)

    def is_found_by(self, node: r.Aggregate, key: Key) -> bool:
        """If it is kept, by what it groups by."""
        return self.is_whole(node) and is_of_groups(node, key)

    def of_growing(self, node: r.Aggregate) -> r.Aggregate:
        """Marked."""
        return replace(node, growing=True)

    def keeps_itself(self, node: r.Aggregate) -> bool:
        """Minima, maxima and counts of what only grows."""
        exact = all(is_exact(key.type) for key in node.keys)
        ends = any(call.entry.name in EXTREMES for call in node.aggregates)
        merged = ends and all(map(can_merge, node.aggregates)) and keyed.can_aggregate(node)
        return node.growing and exact and merged and can_be_asked(node.input, node.keys)

    def group_key(self, node: r.Aggregate) -> Key:
        """Its first columns."""
        columns = node.schema.columns[: len(node.keys)]
        return tuple(column(at, each) for at, each in enumerate(columns))

    def is_one_row(self, node: r.Aggregate, *, exactly: bool) -> bool:
        """Without keys."""
        del exactly
        return not node.keys

    def is_unique(self, node: r.Aggregate, key: Sequence[Scalar], keys: Keys) -> bool:
        """If all that it groups by is given."""
        del keys
        return set(range(len(node.keys))) <= columns_in(*key)

    def used(self, node: r.Aggregate, wanted: Wanted) -> Iterable[tuple[r.Relation, Wanted]]:
        """Keys and arguments."""
        del wanted
        return [(node.input, columns_in(*node.keys, *node.aggregates))]

    def delta(self, node: r.Aggregate, tick: Evaluation) -> Changes:
        """By accumulators, if it is linear."""
        if not is_linear(node):
            return super().delta(node, tick)
        made, tick.sums[node] = accumulate(node, tick.delta(node.input), tick.old)
        return made

    def whole(self, node: r.Aggregate, old: Old) -> Rows:
        """What the accumulators show."""
        everything = set(range(len(accumulator_schema(node))))
        rows = old.traces.everything(old.sums[node], everything)
        return finished(node, rows.consolidated(), Errors())[0]

    def ask(
        self, node: r.Aggregate, old: Old, key: Key, probes: Sequence[pa.Array], wanted: set[int]
    ) -> Found:
        """What the accumulators show for the key, or what is kept; or the groups of its rows."""
        if node in old.wholes:
            return self.found(node, old, key, probes)
        if node not in old.sums:
            return super().ask(node, old, key, probes, wanted)
        everything = set(range(len(accumulator_schema(node))))
        places, rows = old.traces.find(old.sums[node], _stored_key(node, key), probes, everything)
        numbered = Rows((pa.array(places), *rows.columns), rows.time, rows.diff).consolidated()
        places = numbered.columns[0].to_numpy()  # type: ignore[union-attr]
        made, fine = finished(node, numbered.with_columns(numbered.columns[1:]), Errors())
        return places[fine], made

    def asked_sides(
        self, node: r.Aggregate, old: Old, key: Key, probes: Sequence[pa.Array]
    ) -> list[Rows]:
        """The rows of the groups."""
        return [old.contents(node.input, self.own_key(node, key), probes)]

    def own_key(self, node: r.Aggregate, key: Key) -> Key:
        """What the parts of the key group by."""
        made = []
        for part in key:
            assert isinstance(part, ColumnRef), "an aggregation is asked by its keys"
            made.append(node.keys[part.index])
        return tuple(made)

    def place(self, node: r.Aggregate, old: Old) -> CollectionAt | None:
        """Its accumulators, each of which is one row; or itself."""
        return old.sums.get(node) or old.wholes.get(node)

    def counts(
        self, node: r.Aggregate, old: Old, key: Key, probes: Sequence[pa.Array]
    ) -> Ints | None:
        """In the accumulators, in what is kept, or in its input."""
        if node in old.wholes:
            return old.traces.counts(old.wholes[node], key, probes)
        if node in old.sums:
            return old.traces.counts(old.sums[node], _stored_key(node, key), probes)
        return old.counts(node.input, self.own_key(node, key), probes)

    def has_kernel(self, node: r.Aggregate) -> bool:
        """Counts, minima and maxima by exact keys, if nothing fails."""
        return keyed.can_aggregate(node)

    def kernel(self, node: r.Aggregate, *sides: Rows) -> Rows:
        """Its groups."""
        return keyed.aggregate(node, *sides)

    def with_more(self, node: r.Aggregate, rows: Rows, more: Rows) -> Rows | None:
        """The groups of both: of equal keys the aggregates are merged."""
        return keyed.merged(node, concat([rows, keyed.aggregate(node, more)], node.schema))

    def can(self, node: r.Aggregate) -> bool:
        """If every aggregate has a kernel, and equal keys are the same."""
        return group.can_aggregate(node)

    def reduction(self, node: r.Aggregate) -> Reduction[Any]:
        """By what its aggregates follow from."""
        return Grouped(node)

    def contents(self, node: r.Aggregate, asked: ContentsEvaluation) -> Rows:
        """Its groups."""
        return group.aggregate(node, asked.rows(node.input), asked.errors)


def _stored_key(node: r.Aggregate, key: Key) -> Key:
    """A key of an aggregation over its accumulators."""
    columns = accumulator_schema(node).columns
    return tuple(column(at, columns[at]) for part in key for at in columns_in(part))
