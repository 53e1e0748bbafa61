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

from noonmark.compute.kernel import floats, moments, number
from noonmark.compute.kernel.number import NO_KERNEL, NoKernel
from noonmark.compute.kernel.row_by_row import row_by_row
from noonmark.compute.kernel.updates import Errors, Rows, places
from noonmark.rows import types as t
from noonmark.rows.arrow import arrow_type, to_array
from noonmark.rows.conform import as_numerals
from noonmark.rows.exact import FLOATS, is_exact
from noonmark.rows.numeral import SCALE_BYTES
from noonmark.sql.functions.array import OPERATORS
from noonmark.sql.functions.text.pattern import like
from noonmark.sql.ir import scalar as s

Column: TypeAlias = "pa.Array | None"
_WHOLE = (t.SmallInt, t.Integer, t.BigInt)
_MOMENTS = (t.Date, t.Timestamp, t.TimestampTz)


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
        return filled(value_of(scalar, columns), scalar.type, count), None
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
        return _COMPARE[node.op](*(_as_array(each, row, floats.in_order) for each in _pair(node)))
    _exact(node.left, node.right)
    left, right = value_of(node.left, row), value_of(node.right, row)
    numerics = pa.types.is_decimal(left.type) and pa.types.is_decimal(right.type)
    scalars = isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar)
    if numerics and left.type != right.type and not scalars:
        # Arrow would cast them to a type of both, for which there may be no room.
        return number.compared(_scaled(left), _scaled(right), OPERATORS[node.op])
    return _COMPARE[node.op](left, right)


def _pair(node: s.Compare) -> tuple[s.Scalar, s.Scalar]:
    return node.left, node.right


def _as_array(node: s.Scalar, row: Sequence[Column], act: Callable[[pa.Array], pa.Array]) -> Any:
    """What a kernel of arrays gives, also of a constant."""
    value = value_of(node, row)
    if isinstance(value, pa.Scalar):
        return act(pa.repeat(value, 1))[0]
    return act(value)


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
        return _as_array(node.operand, row, lambda each: moments.cast(each, arrow_type(target)))
    numbers = (*_WHOLE, t.Numeric)
    if isinstance(source, numbers) and isinstance(target, t.Double):
        return _as_array(node.operand, row, lambda each: floats.of_numbers(number.scaled(each)))
    if isinstance(source, t.Real) and isinstance(target, t.Double):
        return value.cast(pa.float64())
    if not isinstance(source, numbers) or not isinstance(target, numbers):
        raise NoKernel
    return number.to_array(_scaled(value), target)


def _scaled(value: pa.Array | pa.Scalar) -> number.Scaled:
    """A column or a constant; numpy spreads the constant over the rows."""
    if isinstance(value, pa.Scalar):
        return number.scaled(pa.repeat(value, 1))
    return number.scaled(value)


def _call(node: s.Call, row: Sequence[Column]) -> Any:
    kernel = FUNCTIONS.get(node.function)
    if kernel is None:
        raise NoKernel
    return kernel(node, row)


def _arithmetic(
    act: Callable[[number.Scaled, number.Scaled], number.Scaled],
) -> Callable[[s.Call, Sequence[Column]], Any]:
    def kernel(node: s.Call, row: Sequence[Column]) -> Any:
        values = [value_of(each, row) for each in node.arguments]
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
    text, column = pattern.value, value_of(value, row)
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
    return pc.utf8_slice_codeunits(value_of(text, row), first - 1, first - 1 + count)


def _part(name: str) -> Callable[[s.Call, Sequence[Column]], Any]:
    def kernel(node: s.Call, row: Sequence[Column]) -> Any:
        def act(array: pa.Array) -> pa.Array:
            found = moments.part(name, array)
            if not t.is_plain(node.type):
                return number.to_array(found, node.type)
            return as_numerals(number.to_array(found, t.Numeric(20, found.scale)))

        return _as_array(node.arguments[0], row, act)

    return kernel


def _date_trunc(node: s.Call, row: Sequence[Column]) -> Any:
    unit, moment = node.arguments
    if not isinstance(unit, s.Literal) or unit.value is None:
        raise NoKernel
    return _as_array(moment, row, lambda each: moments.truncated(unit.value.lower(), each))


def _float(op: str) -> Callable[[s.Call, Sequence[Column]], Any]:
    def kernel(node: s.Call, row: Sequence[Column]) -> Any:
        values = [value_of(each, row) for each in node.arguments]
        count = max((len(each) for each in values if not isinstance(each, pa.Scalar)), default=0)
        if not count:
            raise NoKernel
        a, b = (pa.repeat(v, count) if isinstance(v, pa.Scalar) else v for v in values)
        return floats.arithmetic(op, a, b, arrow_type(node.type))

    return kernel


def _ascii(act: Callable[[pa.Array], pa.Array]) -> Callable[[s.Call, Sequence[Column]], Any]:
    """For texts of ASCII alone: of others the meaning knows more."""

    def kernel(node: s.Call, row: Sequence[Column]) -> Any:
        value = value_of(node.arguments[0], row)
        if isinstance(value, pa.Scalar) or pc.all(pc.string_is_ascii(value)).as_py() is False:
            raise NoKernel
        return act(value)

    return kernel


def _text(act: Callable[..., Any]) -> Callable[[s.Call, Sequence[Column]], Any]:
    return lambda node, row: act(*(value_of(each, row) for each in node.arguments))


_TIMESTAMPS = ("timestamp without time zone", "timestamp with time zone")
_INTEGERS = [f"({kind}, {kind})" for kind in ("smallint", "integer", "bigint")]
#: By the id of the function.
FUNCTIONS: dict[str, Callable[[s.Call, Sequence[Column]], Any]] = {
    **{f"+{types}": _arithmetic(number.add) for types in (*_INTEGERS, "(numeric, numeric)")},
    **{f"-{types}": _arithmetic(number.subtract) for types in (*_INTEGERS, "(numeric, numeric)")},
    **{f"*{types}": _arithmetic(number.multiply) for types in (*_INTEGERS, "(numeric, numeric)")},
    "like(text, text)": _like,
    "substring(text, integer, integer)": _substring,
    **{
        f"extract {part}({kind})": _part(part)
        for part in moments.PARTS
        for kind in (*_TIMESTAMPS, "date")
    },
    **{f"date_trunc(text, {kind})": _date_trunc for kind in _TIMESTAMPS},
    **{
        f"{op}({a}, {b})": _float(op)
        for op in "+-*/"
        for a in ("real", "double precision")
        for b in ("real", "double precision")
    },
    "lower(text)": _ascii(pc.ascii_lower),
    "upper(text)": _ascii(pc.ascii_upper),
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
