"""Operators whose own rows are enough to maintain them, while nothing leaves what they are of.

    max(R + S) = max(max(R), max(S)),  count(R + S) = count(R) + count(S),
    first(R + S) = first(first(R) + S)

So while rows only come, minima, maxima and counts of a group, and the first rows of a partition,
follow from what they were and from what has come: neither the rows of the group nor its values have
to be kept or read. This is so for every topic whose records are rows (ENVELOPE NONE), and for what
filters, projections and inner joins make of such.

What only grows is known of the collections, and is a reason to choose this way, not a promise: a
change that takes rows away is answered from the rows of the groups that it touches, as for every
other operator with keys (`noonmark.compute.incremental.rules`). So the answer is exact whatever
comes, and only what it costs follows from what was said.

Law: ``marked(p, c)`` means what p means: marks (`growing`) are no part of the meaning.

Where it runs: driver; pure.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from noonmark.compute.plan.memo import once
from noonmark.compute.plan.operators import operator_of
from noonmark.compute.plan.pushdown import can_push_down, is_whole
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall
from noonmark.sql.ir.node import Node, rebuild
from noonmark.sql.ir.scalar import Scalar

EXTREMES = ("min", "max")


def marked(node: r.Relation, collections: Set[str]) -> r.Relation:
    """The plan, where every aggregation and top-k of what only grows says so."""
    if not collections or isinstance(node, r.Recursive):
        return node  # a recursion is recomputed as a whole, whatever it is made of

    def act(child: Node) -> Node:
        return marked(child, collections) if isinstance(child, r.Relation) else child

    made = rebuild(node, act)
    below = r.relations_below(made)
    all_grow = all(grows(each, collections) for each in below)
    return operator_of(made).of_growing(made) if all_grow else made


def grows(node: r.Relation, collections: Set[str]) -> bool:
    """Whether rows of a relation only come, as they do in these collections."""
    if isinstance(node, r.Scan):
        return node.collection in collections
    below = r.relations_below(node)
    return operator_of(node).is_monotone(node) and all(grows(each, collections) for each in below)


@once
def keeps_itself(node: r.Relation) -> bool:
    """Whether an operator is maintained by its own rows, which are kept.

    Its input can be asked for the groups from which rows go, should any.
    """
    return operator_of(node).keeps_itself(node)


def can_be_asked(node: r.Relation, key: Sequence[Scalar]) -> bool:
    """Whether the rows of a relation with a key can be had, or all of them where there is none."""
    return is_whole(node) or any(can_push_down(node, part) for part in key)


def can_merge(call: AggregateCall) -> bool:
    """Whether an aggregate of all rows follows from those of two parts of them."""
    return call.entry.name in (*EXTREMES, "count") and not call.distinct
