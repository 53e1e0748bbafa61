"""Operators that the first rows of a key decide: top-k, minima and maxima.

Whether a change of one reads only the first rows of its keys is known from the plan; the rows are
read by `noonmark.compute.incremental.first`.
"""

from __future__ import annotations

from noonmark.compute.kernel.accumulator import argument
from noonmark.compute.kernel.keyed import has_kernel, has_order
from noonmark.compute.plan.keys import keyed_inputs
from noonmark.compute.plan.memo import once
from noonmark.compute.plan.pushdown import is_whole, under
from noonmark.rows.exact import has_extremes
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.scalar import ColumnRef, Scalar
from noonmark.sql.ir.temporal import temporal

Order = tuple[SortKey, ...]
Key = tuple[Scalar, ...]


@once
def orders_of(node: r.Relation) -> tuple[Order, ...]:
    """The orders in which the first rows decide what an operator is; none if there are no such."""
    made: tuple[Order, ...] = ()
    if isinstance(node, r.TopK) and node.limit is not None:
        made = (node.order,)
    elif isinstance(node, r.Aggregate) and all(
        call.entry.name in ("min", "max") for call in node.aggregates
    ):
        made = tuple(
            (SortKey(argument(call), descending=call.entry.name == "max"),)
            for call in node.aggregates
        )
    if not made or not has_kernel(node) or not all(map(has_order, made)):
        return ()
    (below,) = r.relations_below(node)
    return made if all(has_extremes(each.type) for each in below.schema) else ()


def is_short(node: r.Relation) -> bool:
    """Whether the operator is a top-k over everything that can be asked so."""
    return isinstance(node, r.TopK) and not node.partition and bool(orders_of(node))


def reads_first(node: r.Relation) -> bool:
    """Whether a change of the operator reads the first rows of a key, where it has many.

    Without a key, it always reads the first rows alone.
    """
    if not orders_of(node):
        return False
    (below,) = r.relations_below(node)
    if not is_whole(below):
        return not _has_key(node)  # then it is kept as it is
    key: Key = keyed_inputs(node)[0].key
    while isinstance(below, r.Project) or (isinstance(below, r.Filter) and temporal(below) is None):
        if isinstance(below, r.Project):
            key = tuple(under(below.scalars, part) for part in key)
        below = below.input
    return isinstance(below, r.Scan) or (
        isinstance(below, r.Aggregate) and is_of_groups(below, key)
    )


def is_of_groups(node: r.Aggregate, key: Key) -> bool:
    """Whether a key is some of what an aggregation groups by."""
    return all(isinstance(part, ColumnRef) and part.index < len(node.keys) for part in key)


def _has_key(node: r.Relation) -> bool:
    return bool(node.partition if isinstance(node, r.TopK) else getattr(node, "keys", ()))


def shown(node: r.Relation) -> int:
    """How many rows of a key decide what the operator is of it."""
    return node.offset + node.limit if isinstance(node, r.TopK) and node.limit is not None else 1
