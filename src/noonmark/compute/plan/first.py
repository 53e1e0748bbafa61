"""Operators that the first rows of a key decide: top-k, minima and maxima.

Whether a change of one reads only the first rows of its keys is known from the plan; the rows are
read by `noonmark.compute.incremental.first`.
"""

from __future__ import annotations

from noonmark.compute.kernel.keyed import has_order
from noonmark.compute.plan.keys import keyed_inputs
from noonmark.compute.plan.memo import once
from noonmark.compute.plan.operators import operator_of
from noonmark.compute.plan.pushdown import is_whole, under
from noonmark.rows.exact import has_extremes
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.scalar import ColumnRef, Scalar

Order = tuple[SortKey, ...]
Key = tuple[Scalar, ...]


@once
def orders_of(node: r.Relation) -> tuple[Order, ...]:
    """The orders in which the first rows decide what an operator is; none if there are no such."""
    return operator_of(node).orders(node)


def with_extremes(node: r.Relation, made: tuple[Order, ...]) -> tuple[Order, ...]:
    """The orders, if rows can be found by them; else none."""
    if not made or not operator_of(node).has_kernel(node) or not all(map(has_order, made)):
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
        return not keyed_inputs(node)[0].key  # then it is kept as it is
    key: Key = keyed_inputs(node)[0].key
    while (inner := operator_of(below).row_by_row(below)) is not None:
        if isinstance(below, r.Project):
            key = tuple(under(below.scalars, part) for part in key)
        below = inner
    return operator_of(below).is_found_by(below, key)


def is_of_groups(node: r.Aggregate, key: Key) -> bool:
    """Whether a key is some of what an aggregation groups by."""
    return all(isinstance(part, ColumnRef) and part.index < len(node.keys) for part in key)


def shown(node: r.Relation) -> int:
    """How many rows of a key decide what the operator is of it."""
    return node.offset + node.limit if isinstance(node, r.TopK) and node.limit is not None else 1
