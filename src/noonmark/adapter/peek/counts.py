"""Answers from the statistics of batches: how many rows a collection has, without reading any.

Law: ``counted(peek, state, time)`` is the answer's plan with the counts in their places, or None:
something else is asked, or a batch has updates on both sides of the time.

A collection has the sum of the diffs of all updates up to a time in rows; each batch knows its own,
which no rewriting changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from noonmark.persist.log.state import Collection, State
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall
from noonmark.sql.ir.node import Node, rebuild, walk
from noonmark.sql.ir.scalar import ColumnRef, Literal

if TYPE_CHECKING:
    from noonmark.adapter.peek.answer import Peek


def only_counts(peek: Peek) -> bool:
    """Whether a peek asks nothing of its collections but how many rows they have."""
    leaves = peek.shape.leaves
    if not leaves or any(leaf.predicate is not None for leaf in leaves):
        return False
    if any(leaf.collection in peek.system for leaf in leaves):
        return False
    rest = _with_counts(peek.shape.rest, {leaf.name: 0 for leaf in leaves})
    return not any(isinstance(node, r.Scan) for node in walk(rest))


def counted(peek: Peek, state: State, time: int) -> r.Relation | None:
    """See the module; the peek is one that `only_counts`."""
    counts: dict[str, int] = {}
    for leaf in peek.shape.leaves:
        found = row_count(state.collection(leaf.collection), time)
        if found is None:
            return None
        counts[leaf.name] = found
    return _with_counts(peek.shape.rest, counts)


def row_count(collection: Collection, time: int) -> int | None:
    """How many rows a collection has at a time at which it is complete, if the batches tell."""
    total = 0
    for batch in collection.batches:
        if batch.time_max <= time:
            total += batch.diff_sum
        elif batch.time_min <= time:
            return None
    return total if total >= 0 else None  # who reads them says which rows are wrong


def _with_counts(relation: r.Relation, counts: Mapping[str, int]) -> r.Relation:
    def change(node: Node) -> Node:
        if isinstance(node, r.Aggregate) and _is_count(node):
            scan = _scan_below(node.input)
            if scan is not None:
                row = (counts[scan.collection],) * len(node.aggregates)
                return r.Constant(node.schema, (row,))
        return rebuild(node, change) if isinstance(node, r.Relation) else node

    made = change(relation)
    assert isinstance(made, r.Relation)
    return made


def _is_count(node: r.Aggregate) -> bool:
    return not node.keys and all(map(_counts_rows, node.aggregates))


def _counts_rows(call: AggregateCall) -> bool:
    if call.entry.name != "count" or call.distinct or call.filter is not None:
        return False
    return all(isinstance(each, ColumnRef) and not each.nullable for each in call.arguments)


def _scan_below(node: r.Relation) -> r.Scan | None:
    """The scan whose rows a relation has one for one, without computing anything."""
    while isinstance(node, r.Project):
        if not all(isinstance(each, ColumnRef | Literal) for each in node.scalars):
            return None
        node = node.input
    return node if isinstance(node, r.Scan) else None
