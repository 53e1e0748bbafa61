"""Which plans always have an answer: nothing has to be carried for the errors of those."""

from __future__ import annotations

from noonmark.compute.plan.operators import operator_of
from noonmark.rows import types as t
from noonmark.sql.functions.number.fit import numeric_for
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall
from noonmark.sql.ir.node import Node, walk
from noonmark.sql.ir.scalar import Scalar

_SURE = {"count", "min", "max", "bool_and", "bool_or", "every", "string_agg", "array_agg"}

#: How often a row can be there has at most so many digits.
_COUNT_DIGITS = 19


def may_have_errors(plan: Node) -> bool:
    """Whether some contents of its inputs can leave a plan, or part of one, without a value."""
    return any(
        (isinstance(node, Scalar) and node.fails)
        or (isinstance(node, AggregateCall) and not _is_infallible(node))
        or (isinstance(node, r.Relation) and operator_of(node).may_fail)
        for node in walk(plan)
    )


def _is_infallible(call: AggregateCall) -> bool:
    """Whether an aggregate has a value over all rows: a sum, if there is room for any number."""
    name = call.entry.name
    if name in _SURE:
        return True
    if name not in ("sum", "avg") or not isinstance(call.type, t.Numeric):
        return False
    given = call.arguments[0].type
    if not isinstance(given, t.Numeric | t.SmallInt | t.Integer | t.BigInt):
        return False
    value = numeric_for(given)
    if value.is_plain or value.trimmed:
        return False
    total = value.stored_precision + _COUNT_DIGITS <= t.NUMERIC_PRECISION_MAX
    more = _COUNT_DIGITS if name == "sum" else 0
    room = call.type.is_plain or _whole_digits(value) + more <= _whole_digits(call.type)
    return total and room


def _whole_digits(kind: t.Numeric) -> int:
    return kind.stored_precision - kind.stored_scale
