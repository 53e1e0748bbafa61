"""A scalar over columns.

Law: ``one(scalar, columns, count)`` gives for every row the value that the scalar means
(`noonmark.sql.evaluate`), or its error.

A scalar with a kernel for each of its parts is computed for all rows at once, all parts of it. When
that fails, in Arrow or because a number does not fit, or when there is no kernel, the scalar is
asked of its meaning row by row: so the kernels know nothing of errors and of what is asked first.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from noonmark.compute.scalar import floats, moments, number
from noonmark.compute.scalar.forms import spread
from noonmark.compute.scalar.number import NO_KERNEL, NoKernel
from noonmark.compute.scalar.row_by_row import row_by_row
from noonmark.compute.scalar.table import forms
from noonmark.rows import types as t
from noonmark.rows.arrow import arrow_type, to_array
from noonmark.rows.conform import as_numerals
from noonmark.rows.exact import FLOATS, is_exact
from noonmark.rows.numeral import SCALE_BYTES
from noonmark.sql.functions.array import OPERATORS
from noonmark.sql.ir import scalar as s

Column: TypeAlias = "pa.Array | None"
_WHOLE = (t.SmallInt, t.Integer, t.BigInt)
_MOMENTS = (t.Date, t.Timestamp, t.TimestampTz)


def one(
    scalar: s.Scalar, columns: Sequence[Column], count: int
) -> tuple[pa.Array, list[str | None] | None]:
    """One scalar: its values, and its errors if there are any."""
    try:
        return filled(value_of(scalar, columns), scalar.type, count), None
    except NO_KERNEL:
        return row_by_row(scalar, columns, count)


def filled(value: pa.Array | pa.Scalar, kind: t.SqlType, count: int) -> pa.Array:
    """A column of the type's storage, also of a constant."""
    if isinstance(value, pa.Scalar):
        value = pa.repeat(value, count)
    storage = arrow_type(kind)
    return value if value.type == storage else value.cast(storage)


# -- kernels ------------------------------------------------------------------------------------


def value_of(node: s.Scalar, row: Sequence[Column]) -> Any:
    """A scalar by its kernels: an array, or a constant; `NoKernel` where it has none."""
    kernel = _KERNELS.get(type(node))
    if kernel is None:
        raise NoKernel
    return kernel(node, row)


def _column(node: s.ColumnRef, row: Sequence[Column]) -> Any:
    found = row[node.index]
    assert found is not None, f"column {node.index} was not read"
    return found


def _literal(node: s.Literal, _: Sequence[Column]) -> Any:
    return to_array([node.value], node.type)[0]


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def _exact(*nodes: s.Scalar) -> None:
    if not all(is_exact(node.type) for node in nodes):
        raise NoKernel


def _numeral_key(node: s.Scalar, row: Sequence[Column]) -> Any:
    """What is in the order of numbers, and equal for equal ones, whatever their types."""
    value = value_of(node, row)
    is_scalar = isinstance(value, pa.Scalar)
    array = pa.array([value.as_py()], value.type) if is_scalar else value
    if not t.is_plain(node.type):
        array = as_numerals(array)
    made = pc.binary_slice(array, 0, -SCALE_BYTES)
    return made[0] if is_scalar else made


def _compare(node: s.Compare, row: Sequence[Column]) -> Any:
    if t.is_plain(node.left.type) or t.is_plain(node.right.type):
        left, right = _numeral_key(node.left, row), _numeral_key(node.right, row)
        return _COMPARE[node.op](left, right)
    if isinstance(node.left.type, FLOATS):
        values = (value_of(each, row) for each in (node.left, node.right))
        return _COMPARE[node.op](*(spread(value, floats.in_order) for value in values))
    _exact(node.left, node.right)
    left, right = value_of(node.left, row), value_of(node.right, row)
    numerics = pa.types.is_decimal(left.type) and pa.types.is_decimal(right.type)
    scalars = isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar)
    if numerics and left.type != right.type and not scalars:
        # Arrow would cast them to a type of both, for which there may be no room.
        pair = number.scaled_or_constant(left), number.scaled_or_constant(right)
        return number.compared(*pair, OPERATORS[node.op])
    return _COMPARE[node.op](left, right)


def _is_distinct(node: s.IsDistinct, row: Sequence[Column]) -> Any:
    _exact(node.left, node.right)
    left, right = value_of(node.left, row), value_of(node.right, row)
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.and_(pc.invert(both), pc.fill_null(pc.not_equal(left, right), True))


def _chain(node: s.And | s.Or, row: Sequence[Column]) -> Any:
    join = pc.and_kleene if isinstance(node, s.And) else pc.or_kleene
    made: Any = pa.scalar(isinstance(node, s.And))
    for part in node.parts:
        made = join(made, value_of(part, row))
    return made


def _not(node: s.Not, row: Sequence[Column]) -> Any:
    return pc.invert(value_of(node.operand, row))


def _is(node: s.Is, row: Sequence[Column]) -> Any:
    operand = value_of(node.operand, row)
    if node.value is None:
        return pc.is_null(operand)
    return pc.fill_null(pc.equal(operand, node.value), False)


def _in_list(node: s.InList, row: Sequence[Column]) -> Any:
    _exact(node.operand)
    kind, operand = node.operand.type, value_of(node.operand, row)
    if any(not isinstance(x, s.Literal) or x.value is None or x.type != kind for x in node.items):
        return _chain(s.Or(tuple(s.Compare("=", node.operand, x) for x in node.items)), row)
    listed = to_array([x.value for x in node.items if isinstance(x, s.Literal)], kind)
    found = pc.is_in(operand, value_set=listed)
    return pc.if_else(pc.is_valid(operand), found, pa.scalar(None, pa.bool_()))


def _case(node: s.Case, row: Sequence[Column]) -> Any:
    made = value_of(node.default, row)
    for branch in reversed(node.branches):
        taken = pc.fill_null(value_of(branch.condition, row), False)
        made = pc.if_else(taken, value_of(branch.value, row), made)
    return made


def _coalesce(node: s.Coalesce, row: Sequence[Column]) -> Any:
    return pc.coalesce(*(value_of(each, row) for each in node.arguments))


def _cast(node: s.Cast, row: Sequence[Column]) -> Any:
    source, target = node.operand.type, node.type
    value = value_of(node.operand, row)
    if source == target:
        return value
    text = t.Text | t.Varchar
    if isinstance(source, text) and (target == t.Text() or target == t.Varchar(None)):
        return value
    if isinstance(source, _MOMENTS) and isinstance(target, _MOMENTS):
        return spread(value, lambda each: moments.cast(each, arrow_type(target)))
    numbers = (*_WHOLE, t.Numeric)
    if isinstance(source, numbers) and isinstance(target, t.Double):
        return spread(value, lambda each: floats.of_numbers(number.scaled(each)))
    if isinstance(source, t.Real) and isinstance(target, t.Double):
        return value.cast(pa.float64())
    if not isinstance(source, numbers) or not isinstance(target, numbers):
        raise NoKernel
    return number.to_array(number.scaled_or_constant(value), target)


def _call(node: s.Call, row: Sequence[Column]) -> Any:
    kernel = forms(node.function).kernel
    if kernel is None:
        raise NoKernel
    return kernel(node, *(value_of(each, row) for each in node.arguments))


_KERNELS: dict[type[s.Scalar], Callable[[Any, Sequence[Column]], Any]] = {
    s.ColumnRef: _column,
    s.Literal: _literal,
    s.Call: _call,
    s.Cast: _cast,
    s.Compare: _compare,
    s.IsDistinct: _is_distinct,
    s.And: _chain,
    s.Or: _chain,
    s.Not: _not,
    s.Is: _is,
    s.InList: _in_list,
    s.Case: _case,
    s.Coalesce: _coalesce,
}
