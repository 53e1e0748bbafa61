"""The one total order of rows, and when two rows are the same.

Law (identity): two values are the same iff their bits are; NULL is the same as NULL and every NaN
is the same as every other NaN; -0.0 is not 0.0.
Law (order): `plain` turns a column into plain columns (integers, booleans, decimals, text, bytes)
that are ordered as Arrow orders them, NULLs last, and that are equal in every component iff the
values are the same. Columns are compared from left to right.

What follows: sorting, merging and consolidating never look at a float, a timestamp or a nested
value; they look at the plain columns. Text and bytes are ordered by byte, floats by IEEE 754's
total order, structs by field after NULL, lists by an arbitrary total order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bools = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]
Row = tuple[tuple[bool, Any], ...]

_PROBE_ROWS = 256
_encode = msgspec.msgpack.Encoder().encode


def plain(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """The plain columns that stand for `column` in order and identity."""
    array = one_array(column)
    kind = array.type
    if pa.types.is_floating(kind):
        return [_float_order(array)]
    if pa.types.is_date32(kind):
        return [array.view(pa.int32())]
    if pa.types.is_time64(kind) or pa.types.is_timestamp(kind):
        return [array.view(pa.int64())]
    if pa.types.is_struct(kind):
        fields = [part for child in array.flatten() for part in plain(child)]
        return [pc.is_null(array), *fields]
    if pa.types.is_list(kind):
        data = [None if value is None else _encode(value) for value in _values(array)]
        return [pa.array(data, pa.binary())]
    if pa.types.is_null(kind):
        return []
    return [array]


def as_one_column(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One column that is equal where the values are the same; its order means nothing."""
    array = one_array(column)
    if not pa.types.is_struct(array.type):
        return (plain(array) or [array])[0]
    data = [None if value is None else _encode(value) for value in _values(array)]
    return pa.array(data, pa.binary())


def distinct(column: pa.Array) -> pa.Array:
    """Of values that are the same the first one. Arrow itself does not say it of nested ones."""
    if not pa.types.is_nested(column.type):
        return column.unique()
    codes = as_one_column(column).dictionary_encode(null_encoding="encode").indices
    _, firsts = np.unique(codes.to_numpy(), return_index=True)
    return column.take(pa.array(np.sort(firsts)))


def plain_columns(table: pa.Table, names: Iterable[str]) -> list[pa.Array]:
    """The plain columns of the named columns, in that order."""
    return [part for name in names for part in plain(table.column(name))]


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A chunked column as one array; no copy when it has one chunk."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def in_order(columns: Sequence[pa.Array]) -> bool:
    """Whether the rows never descend. Looks at a few rows first: most disorder shows at once."""
    rows = len(columns[0]) if columns else 0
    if rows > 4 * _PROBE_ROWS and not in_order([c.slice(0, _PROBE_ROWS) for c in columns]):
        return False
    if rows < 2:
        return True
    open_: Bools | None = None  # neighbours that no column has told apart yet
    for column in columns:
        descends = _descends(column)
        if open_ is not None:
            descends &= open_
        if descends.any():
            return False
        equal = _equal(column)
        open_ = equal if open_ is None else equal & open_
        if not open_.any():
            return True
    return True


def adjacent_equal(columns: Sequence[pa.Array], rows: int) -> Bools:
    """For each row but the last: is it the same as the next? Stops when none can be."""
    same = np.ones(max(rows - 1, 0), dtype=np.bool_)
    for column in columns:
        same &= _equal(column)
        if not same.any():
            break
    return same


def argsort(columns: Sequence[pa.Array]) -> Indices:
    """The permutation that puts the rows in order."""
    first = columns[0]
    if len(columns) == 1 and first.null_count == 0 and pa.types.is_signed_integer(first.type):
        return _argsort_int64(_numpy(first).astype(np.int64, copy=False))
    names = [str(i) for i in range(len(columns))]
    table = pa.Table.from_arrays(list(columns), names=names)
    order = pc.sort_indices(table, [(name, "ascending") for name in names])
    return np.asarray(order.to_numpy(zero_copy_only=False).astype(np.int64))


def refine(
    order: Indices, keys: Sequence[pa.Array], rest: Callable[[pa.Array], Sequence[pa.Array]]
) -> Indices:
    """Order rows with equal `keys` by `rest(rows)`, which is asked for those rows alone."""
    groups, places = _tied(order, keys)
    if not len(places):
        return order
    columns = [pa.array(groups), *rest(pa.array(order[places]))]
    if in_order(columns):
        return order
    order = order.copy()
    order[places] = order[places][argsort(columns)]
    return order


def _tied(order: Indices, keys: Sequence[pa.Array]) -> tuple[Indices, Indices]:
    """The places in `order` that share their keys with a neighbour, as (group, place) arrays."""
    rows = pa.array(order)
    same = adjacent_equal([key.take(rows) for key in keys], len(order))
    if not same.any():
        nothing = np.empty(0, dtype=np.int64)
        return nothing, nothing
    member = np.zeros(len(order), dtype=np.bool_)
    member[:-1] |= same
    member[1:] |= same
    groups = np.concatenate([[0], np.cumsum(~same)]).astype(np.int64)
    return groups[member], np.flatnonzero(member)


def row_at(columns: Sequence[pa.Array], at: int) -> Row:
    """One row as a Python value that compares as the row does: NULLs last."""
    return tuple(_component(column, at) for column in columns)


def lower_bound(
    columns: Sequence[pa.Array], row: Row, low: int = 0, high: int | None = None
) -> int:
    """In columns sorted within [low, high): the place of the first row that is not below `row`."""
    high = (len(columns[0]) if columns else 0) if high is None else high
    for column, value in zip(columns, row, strict=True):

        def at(place: int, column: pa.Array = column) -> tuple[bool, Any]:
            return _component(column, place)

        left = low + bisect_left(range(low, high), value, key=at)
        if left == high or at(left) != value:
            return left
        low, high = left, left + bisect_right(range(left, high), value, key=at)
    return low


def lower_bounds(columns: Sequence[pa.Array], rows: Sequence[pa.Array]) -> list[int]:
    """The lower bound of each row of `rows`. Numbers are found all at once."""
    count = len(rows[0])
    if not (_is_number(columns[0]) and _is_number(rows[0])):
        return [lower_bound(columns, row_at(rows, at)) for at in range(count)]
    places = np.searchsorted(_numpy(columns[0]), _numpy(rows[0]), side="left")
    ends = np.searchsorted(_numpy(columns[0]), _numpy(rows[0]), side="right")
    for at in np.flatnonzero(places < ends).tolist():
        within = int(places[at]), int(ends[at])
        places[at] = lower_bound(columns[1:], row_at(rows[1:], at), *within)
    return list(places.tolist())


def _component(column: pa.Array, at: int) -> tuple[bool, Any]:
    value = column[at].as_py()
    return (value is None, value)


def _argsort_int64(keys: npt.NDArray[np.int64]) -> Indices:
    """Stable. Key and row number share one word when they fit: sorting words needs no look-up."""
    if len(keys) < 2:
        return np.arange(len(keys))
    low, high = int(keys.min()), int(keys.max())
    bits = (len(keys) - 1).bit_length()
    if (high - low).bit_length() + bits > 63:
        return np.argsort(keys, kind="stable")
    words = ((keys - low) << bits) | np.arange(len(keys))
    words.sort()
    return words & ((1 << bits) - 1)


def _float_order(array: pa.Array) -> pa.Array:
    """Integers in the order of the floats: negative floats have their other bits flipped."""
    if pc.any(pc.is_nan(array)).as_py():
        nan = pa.scalar(float("nan"), array.type)
        array = pc.if_else(pc.is_nan(array), nan, array)
    width = array.type.bit_width
    integer = pa.int64() if width == 64 else pa.int32()
    bits = array.view(integer)
    flipped = pc.bit_wise_xor(bits, pa.scalar((1 << width - 1) - 1, integer))
    return pc.if_else(pc.less(bits, pa.scalar(0, integer)), flipped, bits)


def _values(array: pa.Array) -> list[Any]:
    """Nested values as Python values that encode alike iff they are the same."""
    if pa.types.is_list(array.type):
        items = iter(_values(array.flatten()))
        lengths = pc.list_value_length(array).to_pylist()
        return [None if n is None else [next(items) for _ in range(n)] for n in lengths]
    if pa.types.is_struct(array.type):
        rows = zip(*(_values(child) for child in array.flatten()), strict=True)
        return [row if valid else None for row, valid in zip(rows, _valid(array), strict=True)]
    parts = plain(array)
    return list(parts[0].to_pylist()) if parts else [None] * len(array)


def _valid(array: pa.Array) -> list[bool]:
    return list(pc.is_valid(array).to_pylist())


def _numpy(array: pa.Array) -> npt.NDArray[Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _is_number(column: pa.Array) -> bool:
    return column.null_count == 0 and bool(pa.types.is_integer(column.type))


def _equal(column: pa.Array) -> Bools:
    """For each row but the last: is this component the same as the next row's?"""
    if _is_number(column):
        numbers = _numpy(column)
        return np.asarray(numbers[:-1] == numbers[1:])
    left, right = column.slice(0, len(column) - 1), column.slice(1)
    equal = pc.equal(left, right)
    if column.null_count:
        equal = pc.fill_null(equal, pc.and_(pc.is_null(left), pc.is_null(right)))
    return _numpy(equal)


def _descends(column: pa.Array) -> Bools:
    """For each row but the last: is this component above the next row's?"""
    if _is_number(column):
        numbers = _numpy(column)
        return np.asarray(numbers[:-1] > numbers[1:])
    left, right = column.slice(0, len(column) - 1), column.slice(1)
    above = pc.greater(left, right)
    if column.null_count:
        above = pc.fill_null(above, pc.and_(pc.is_null(left), pc.is_valid(right)))
    return _numpy(above)
