"""Which plans always have an answer: nothing has to be carried for the errors of those."""

from __future__ import annotations

from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall
from noonmark.sql.ir.node import Node, walk
from noonmark.sql.ir.scalar import Scalar


def may_have_errors(plan: Node) -> bool:
    """Whether some contents of its inputs can leave a plan, or part of one, without a value."""
    sure = {"count", "min", "max", "bool_and", "bool_or", "every", "string_agg", "array_agg"}
    return any(
        (isinstance(node, Scalar) and node.fails)
        or (isinstance(node, AggregateCall) and node.entry.name not in sure)
        or isinstance(node, r.Window | r.FlatMap | r.Recursive)
        for node in walk(plan)
    )
