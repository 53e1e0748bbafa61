"""Windows of which only the first places are asked for: over a top-k.

    SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM t) x
    WHERE n <= 3

The place of a row follows from the rows before it alone. So a window that gives nothing but places,
under a filter that lets only the first so many rows of a partition pass, may be asked of these: the
top-k is maintained by its first rows, and the window over it has few.

Law: ``limited(p)`` means what p means, and has its schema. It is a function of the plan alone.

Where it runs: driver; pure.
"""

from __future__ import annotations

from dataclasses import replace

from noonmark.sql.ir import relation as r
from noonmark.sql.ir.node import Node, rebuild
from noonmark.sql.ir.scalar import ColumnRef, Compare, Literal, Scalar, conjuncts

#: What follows from the rows before a row, and from those that are equal to it in order.
_PLACES = ("row_number", "rank", "dense_rank")
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def limited(node: r.Relation) -> r.Relation:
    """The plan with a top-k below every such window."""

    def act(child: Node) -> Node:
        return limited(child) if isinstance(child, r.Relation) else child

    made = rebuild(node, act)
    if not isinstance(made, r.Filter) or not isinstance(made.input, r.Window):
        return made
    window = made.input
    if any(call.entry.name not in _PLACES for call in window.calls):
        return made
    limits = [_limit(part, window) for part in conjuncts(made.predicate)]
    found = [limit for limit in limits if limit is not None]
    if not found:
        return made
    first = r.TopK(window.input, window.partition, window.order, max(min(found), 0))
    return replace(made, input=replace(window, input=first))


def _limit(part: Scalar, window: r.Window) -> int | None:
    """How many rows of a partition a condition lets pass, by their row_number; None if any."""
    if not isinstance(part, Compare):
        return None
    op, own, other = part.op, part.left, part.right
    if isinstance(own, Literal):
        op, own, other = _TURNED.get(op, op), other, own
    if not isinstance(own, ColumnRef) or not isinstance(other, Literal):
        return None
    place = own.index - len(window.input.schema)
    if place < 0 or window.calls[place].entry.name != "row_number":
        return None
    if not isinstance(other.value, int) or op not in ("<", "<=", "="):
        return None
    return other.value - 1 if op == "<" else other.value
