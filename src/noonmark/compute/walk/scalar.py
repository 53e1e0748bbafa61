"""Scalars over columns.

Law: ``ask(scalars, rows)`` gives for every row the values that the scalars mean
(`noonmark.sql.evaluate`), or the error of the first that has none.

A scalar with a kernel for each of its parts is computed for all rows at once, all parts of it. When
that fails, in Arrow or because a number does not fit, or when there is no kernel, the scalar is
asked of its meaning row by row: so the kernels know nothing of errors and of what is asked first.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.compute.exact import is_exact
from noonmark.compute.row_by_row import row_by_row
from noonmark.compute.walk import number
from noonmark.compute.walk.number import NO_KERNEL, NoKernel
from noonmark.compute.walk.rows import Errors, Rows, places
from noonmark.rows import types as t
from noonmark.rows.arrow import arrow_type, to_array
from noonmark.rows.conform import as_numerals
from noonmark.rows.numeral import SCALE_BYTES
from noonmark.sql.functions.array import OPERATORS
from noonmark.sql.functions.pattern import like
from noonmark.sql.ir import scalar as s

Column: TypeAlias = "pa.Array | None"
_WHOLE = (t.SmallInt, t.Integer, t.BigInt)
#: Dates in this range have a year that Arrow knows.
_DAYS_MAX = 365 * 8000


def ask(scalars: Sequence[s.Scalar], rows: Rows) -> tuple[list[pa.Array], list[str | None] | None]:
    """The values, and per row the first error; None when there is no error."""
    arrays: list[pa.Array] = []
    errors: list[str | None] | None = None
    for scalar in scalars:
        array, failed = one(scalar, rows.columns, len(rows))
        arrays.append(array)
        if failed is not None:
            before = errors or [None] * len(rows)
            errors = [a if a is not None else b for a, b in zip(before, failed, strict=True)]
    return arrays, errors


def one(
    scalar: s.Scalar, columns: Sequence[Column], count: int
) -> tuple[pa.Array, list[str | None] | None]:
    """One scalar: its values, and its errors if there are any."""
    try:
        return filled(_value(scalar, columns), scalar.type, count), None
    except NO_KERNEL:
        return row_by_row(scalar, columns, count)


def filled(value: pa.Array | pa.Scalar, kind: t.SqlType, count: int) -> pa.Array:
    """A column of the type's storage, also of a constant."""
    if isinstance(value, pa.Scalar):
        value = pa.repeat(value, count)
    storage = arrow_type(kind)
    return value if value.type == storage else value.cast(storage)


def projected(
    scalars: Sequence[s.Scalar], rows: Rows, errors: Errors
) -> tuple[list[pa.Array], Rows]:
    """The values of the rows that have them; what fails is added to the errors."""
    arrays, failed = ask(scalars, rows)
    if failed is None:
        return arrays, rows
    errors.add(failed, rows.time, rows.diff)
    fine = np.flatnonzero([text is None for text in failed])
    return [array.take(pa.array(fine)) for array in arrays], rows.take(fine)


def kept(predicate: s.Scalar, rows: Rows, errors: Errors) -> np.ndarray[Any, Any]:
    """The places of the rows for which the predicate is TRUE; what fails is added to the errors."""
    if predicate == s.TRUE or not len(rows):
        return np.arange(len(rows))
    array, failed = one(predicate, rows.columns, len(rows))
    if failed is not None:
        errors.add(failed, rows.time, rows.diff)
    return places(array)


# -- kernels ------------------------------------------------------------------------------------


def _value(node: s.Scalar, row: Sequence[Column]) -> Any:
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
    value = _value(node, row)
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
    _exact(node.left, node.right)
    left, right = _value(node.left, row), _value(node.right, row)
    numerics = pa.types.is_decimal(left.type) and pa.types.is_decimal(right.type)
    scalars = isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar)
    if numerics and left.type != right.type and not scalars:
        # Arrow would cast them to a type of both, for which there may be no room.
        return number.compared(_scaled(left), _scaled(right), OPERATORS[node.op])
    return _COMPARE[node.op](left, right)


def _is_distinct(node: s.IsDistinct, row: Sequence[Column]) -> Any:
    _exact(node.left, node.right)
    left, right = _value(node.left, row), _value(node.right, row)
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.and_(pc.invert(both), pc.fill_null(pc.not_equal(left, right), True))


def _chain(node: s.And | s.Or, row: Sequence[Column]) -> Any:
    join = pc.and_kleene if isinstance(node, s.And) else pc.or_kleene
    made: Any = pa.scalar(isinstance(node, s.And))
    for part in node.parts:
        made = join(made, _value(part, row))
    return made


def _not(node: s.Not, row: Sequence[Column]) -> Any:
    return pc.invert(_value(node.operand, row))


def _is(node: s.Is, row: Sequence[Column]) -> Any:
    operand = _value(node.operand, row)
    if node.value is None:
        return pc.is_null(operand)
    return pc.fill_null(pc.equal(operand, node.value), False)


def _in_list(node: s.InList, row: Sequence[Column]) -> Any:
    _exact(node.operand)
    kind, operand = node.operand.type, _value(node.operand, row)
    if any(not isinstance(x, s.Literal) or x.value is None or x.type != kind for x in node.items):
        return _chain(s.Or(tuple(s.Compare("=", node.operand, x) for x in node.items)), row)
    listed = to_array([x.value for x in node.items if isinstance(x, s.Literal)], kind)
    found = pc.is_in(operand, value_set=listed)
    return pc.if_else(pc.is_valid(operand), found, pa.scalar(None, pa.bool_()))


def _case(node: s.Case, row: Sequence[Column]) -> Any:
    made = _value(node.default, row)
    for branch in reversed(node.branches):
        taken = pc.fill_null(_value(branch.condition, row), False)
        made = pc.if_else(taken, _value(branch.value, row), made)
    return made


def _coalesce(node: s.Coalesce, row: Sequence[Column]) -> Any:
    return pc.coalesce(*(_value(each, row) for each in node.arguments))


def _cast(node: s.Cast, row: Sequence[Column]) -> Any:
    source, target = node.operand.type, node.type
    value = _value(node.operand, row)
    if source == target:
        return value
    text = t.Text | t.Varchar
    if isinstance(source, text) and (target == t.Text() or target == t.Varchar(None)):
        return value
    numbers = (*_WHOLE, t.Numeric)
    if not isinstance(source, numbers) or not isinstance(target, numbers):
        raise NoKernel
    return number.to_array(_scaled(value), target)


def _scaled(value: pa.Array | pa.Scalar) -> number.Scaled:
    """A column or a constant; numpy spreads the constant over the rows."""
    if isinstance(value, pa.Scalar):
        return number.scaled(pa.repeat(value, 1))
    return number.scaled(value)


def _call(node: s.Call, row: Sequence[Column]) -> Any:
    kernel = _FUNCTIONS.get(node.function)
    if kernel is None:
        raise NoKernel
    return kernel(node, row)


def _arithmetic(
    act: Callable[[number.Scaled, number.Scaled], number.Scaled],
) -> Callable[[s.Call, Sequence[Column]], Any]:
    def kernel(node: s.Call, row: Sequence[Column]) -> Any:
        values = [_value(each, row) for each in node.arguments]
        if all(isinstance(value, pa.Scalar) for value in values):
            raise NoKernel
        a, b = (_scaled(value) for value in values)
        made = act(a, b)
        if made.valid is not None and len(made.valid) != len(made):
            made = number.Scaled(made.values, made.scale, np.resize(made.valid, len(made)))
        return number.to_array(made, node.type)

    return kernel


def _like(node: s.Call, row: Sequence[Column]) -> Any:
    value, pattern = node.arguments
    if not isinstance(pattern, s.Literal) or pattern.value is None:
        raise NoKernel
    text, column = pattern.value, _value(value, row)
    inner = text.strip("%")
    if "\\" in text or "_" in text or "%" in inner or isinstance(column, pa.Scalar):
        matcher = like(text)
        listed = filled(column, value.type, 1).to_pylist()
        found = [None if x is None else matcher.matches(x) for x in listed]
        return pa.array(found, pa.bool_())
    if text == inner:
        return pc.equal(column, text)
    if text.startswith("%") and text.endswith("%"):
        return pc.match_substring(column, inner)
    return (pc.ends_with if text.startswith("%") else pc.starts_with)(column, inner)


def _substring(node: s.Call, row: Sequence[Column]) -> Any:
    text, start, length = node.arguments
    if not isinstance(start, s.Literal) or not isinstance(length, s.Literal):
        raise NoKernel
    first, count = start.value, length.value
    if first is None or count is None or first < 1 or count < 0:
        raise NoKernel
    return pc.utf8_slice_codeunits(_value(text, row), first - 1, first - 1 + count)


def _year(node: s.Call, row: Sequence[Column]) -> Any:
    dates = _value(node.arguments[0], row)
    days = pc.min_max(dates.view(pa.int32()))
    low, high = days["min"].as_py(), days["max"].as_py()
    if low is not None and (low < -_DAYS_MAX // 4 or high > _DAYS_MAX):
        raise NoKernel
    return number.to_array(number.scaled(pc.year(dates)), node.type)


def _text(act: Callable[..., Any]) -> Callable[[s.Call, Sequence[Column]], Any]:
    return lambda node, row: act(*(_value(each, row) for each in node.arguments))


_INTEGERS = [f"({kind}, {kind})" for kind in ("smallint", "integer", "bigint")]
_FUNCTIONS: dict[str, Callable[[s.Call, Sequence[Column]], Any]] = {
    **{f"+{types}": _arithmetic(number.add) for types in (*_INTEGERS, "(numeric, numeric)")},
    **{f"-{types}": _arithmetic(number.subtract) for types in (*_INTEGERS, "(numeric, numeric)")},
    **{f"*{types}": _arithmetic(number.multiply) for types in (*_INTEGERS, "(numeric, numeric)")},
    "like(text, text)": _like,
    "substring(text, integer, integer)": _substring,
    "extract year(date)": _year,
    "length(text)": _text(pc.utf8_length),
    "||(text, text)": _text(lambda a, b: pc.binary_join_element_wise(a, b, "")),
}

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
