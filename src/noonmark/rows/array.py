"""Python values to Arrow storage and back.

Law (round trip): ``from_array(to_array(values, t), t) == values`` for values in the form that
`noonmark.rows.value` gives them (NaN compared as equal to NaN). What a type cannot hold raises
`InvalidValue`; nothing is rounded or cut in silence. The one exception is real: a Python float is
rounded to the nearest 32-bit float, as PostgreSQL does, and refused when that would be infinite.

Numbers, text and bytes go through Arrow as a whole; only the types that Python's own cannot hold
take a loop.
"""

from __future__ import annotations

import decimal
import uuid
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.errors import InvalidValue, NoonmarkError, SchemaMismatch
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.jsonb import canonical
from noonmark.rows.label import Label
from noonmark.rows.numeral import Numeral, decode, encode, numeral
from noonmark.rows.refine import refine
from noonmark.rows.schema import Schema
from noonmark.rows.storage import INTERVAL_STRUCT, arrow_schema, arrow_type

_FAILURES = (pa.ArrowException, ValueError, TypeError, OverflowError, AttributeError)


def to_array(values: Sequence[Any], sql_type: t.SqlType) -> pa.Array:
    """The values as an Arrow array of the storage type; None is NULL."""
    try:
        return refine(_build(values, sql_type), sql_type)
    except NoonmarkError:
        raise
    except _FAILURES as error:
        raise InvalidValue(
            f"value {_culprit(values, sql_type)} does not fit type {sql_type}", detail=str(error)
        ) from None


def _culprit(values: Sequence[Any], sql_type: t.SqlType) -> str:
    """The first value that alone fails as well: found only when there is an error to explain."""
    for value in values:
        try:
            _build([value], sql_type)
        except (*_FAILURES, NoonmarkError):
            return repr(value)[:100]
    return "of a mixed sequence"


def _build(values: Sequence[Any], sql_type: t.SqlType) -> pa.Array:
    match sql_type:
        case t.Array(element):
            return _build_list(values, element, arrow_type(sql_type))
        case t.Record(fields):
            return _build_struct(values, fields, arrow_type(sql_type))
        case t.Interval():
            return _build_interval(values)
        case t.Boolean():
            _only(values, bool, sql_type)
        case t.SmallInt() | t.Integer() | t.BigInt():
            _only(values, (int, np.integer), sql_type)
        case t.Text() | t.Varchar() | t.Char():
            _only(values, str, sql_type)
        case t.Bytea():
            _only(values, (bytes, bytearray, memoryview), sql_type)
        case t.Real():
            return _build_real(values)
        case t.Coded():
            _only(values, (bytes, str), sql_type)
            values = [sql_type.parse(x) if isinstance(x, str) else x for x in values]
        case t.Enum():
            _only(values, str, sql_type)
            values = [None if value is None else sql_type.label(value).stored for value in values]
    store = _store_numeral if t.is_plain(sql_type) else _STORE.get(type(sql_type))
    if store is not None:
        values = [None if value is None else store(value) for value in values]
    storage = arrow_type(sql_type)
    if pa.types.is_temporal(storage):
        width = pa.int32() if pa.types.is_date32(storage) else pa.int64()
        return pa.array(values, width).view(storage)
    return pa.array(values, storage)


def _only(values: Sequence[Any], kind: Any, sql_type: t.SqlType) -> None:
    """Arrow takes 1.0 and True for 1, and bytes for text; SQL does not."""
    for seen in set(map(type, values)) - {type(None)}:
        if not issubclass(seen, kind) or (kind is not bool and issubclass(seen, bool)):
            raise InvalidValue(f"a Python {seen.__name__} is no value of type {sql_type}")


def _build_real(values: Sequence[Any]) -> pa.Array:
    wide = pa.array(values, pa.float64())
    narrow = wide.cast(pa.float32())
    before, after = (array.to_numpy(zero_copy_only=False) for array in (wide, narrow))
    lost = np.isinf(after) & ~np.isinf(before)
    if lost.any():
        raise InvalidValue(f"{before[lost.argmax()]} is out of range for type real")
    return narrow


def _build_interval(values: Sequence[Any]) -> pa.Array:
    parts = [None if value is None else v.interval_of(value) for value in values]
    columns = [
        pa.array([None if p is None else getattr(p, f.name) for p in parts], f.type)
        for f in INTERVAL_STRUCT
    ]
    return pa.StructArray.from_arrays(columns, fields=list(INTERVAL_STRUCT), mask=_mask(values))


def _build_list(values: Sequence[Any], element: t.SqlType, storage: pa.DataType) -> pa.Array:
    for value in values:
        if value is not None and not isinstance(value, list | tuple):
            raise InvalidValue(f"{value!r} is not a list")
    flat = list(chain.from_iterable(value for value in values if value is not None))
    ends = np.cumsum([0, *(0 if value is None else len(value) for value in values)])
    offsets = pa.array(ends, pa.int32())
    return pa.ListArray.from_arrays(
        offsets, _build(flat, element), type=storage, mask=_mask(values)
    )


def _build_struct(
    values: Sequence[Any], fields: tuple[t.Field, ...], storage: pa.DataType
) -> pa.Array:
    for value in values:
        if value is not None and (not isinstance(value, tuple) or len(value) != len(fields)):
            raise InvalidValue(f"{value!r} is not a tuple of {len(fields)} fields")
    columns = [
        _build([None if value is None else value[at] for value in values], field.type)
        for at, field in enumerate(fields)
    ]
    return pa.StructArray.from_arrays(columns, fields=list(storage), mask=_mask(values))


def _mask(values: Sequence[Any]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())


def _store_uuid(value: Any) -> bytes:
    return value.bytes if isinstance(value, uuid.UUID) else uuid.UUID(value).bytes


def _store_jsonb(value: Any) -> str:
    # Text is left for `refine` to make canonical, so that it is parsed once.
    return value if isinstance(value, str) else canonical(value)


def _store_numeral(value: Any) -> bytes:
    return encode(value if type(value) is Numeral else numeral(_exact(value)))


def _store_numeric(value: Any) -> decimal.Decimal:
    number = _exact(value)
    if not number.is_finite():
        raise InvalidValue(
            f"a numeric with a precision cannot hold {number}",
            hint="Use numeric without a precision, or double precision.",
        )
    return number


def _exact(value: Any) -> decimal.Decimal:
    if isinstance(value, bool | float):
        raise InvalidValue(f"{value!r} is not an exact decimal", hint="Pass a Decimal.")
    return decimal.Decimal(value)


_STORE: dict[type[t.SqlType], Callable[[Any], Any]] = {
    t.Numeric: _store_numeric,
    t.Date: v.days_of,
    t.Time: v.micros_of_time,
    t.Timestamp: v.micros_of_timestamp,
    t.TimestampTz: v.micros_of_timestamptz,
    t.Uuid: _store_uuid,
    t.Jsonb: _store_jsonb,
}


def from_array(array: pa.Array | pa.ChunkedArray, sql_type: t.SqlType) -> list[Any]:
    """The Python values of an array of the storage type."""
    if isinstance(array, pa.ChunkedArray):
        return list(chain.from_iterable(from_array(chunk, sql_type) for chunk in array.chunks))
    match sql_type:
        case t.Array(element):
            flat = from_array(array.flatten(), element)
            ends = np.cumsum(pc.fill_null(array.value_lengths(), 0)).tolist()
            starts = [0, *ends]
            valid = array.is_valid().to_pylist()
            return [
                flat[a:b] if ok else None for a, b, ok in zip(starts, ends, valid, strict=False)
            ]
        case t.Record(fields):
            columns = [
                from_array(column, field.type)
                for column, field in zip(array.flatten(), fields, strict=True)
            ]
            return _masked(list(zip(*columns, strict=True)), array)
        case t.Interval():
            columns = [pc.fill_null(column, 0).to_pylist() for column in array.flatten()]
            return _masked([v.Interval(*parts) for parts in zip(*columns, strict=True)], array)
    load = _LOAD.get(type(sql_type))
    if load is None:
        return list(array.to_pylist())
    if isinstance(sql_type, t.Numeric) and (sql_type.is_plain or sql_type.trimmed):
        load = decode if sql_type.is_plain else plain_decimal
    return [None if value is None else load(value) for value in _raw(array)]


def _masked(values: list[Any], array: pa.Array) -> list[Any]:
    if not array.null_count:
        return values
    valid = array.is_valid().to_pylist()
    return [value if ok else None for value, ok in zip(values, valid, strict=True)]


def _raw(array: pa.Array) -> list[Any]:
    """Days and microseconds as integers: Python's datetime would refuse the far ones."""
    if pa.types.is_date32(array.type):
        array = array.view(pa.int32())
    elif pa.types.is_timestamp(array.type):
        array = array.view(pa.int64())
    return list(array.to_pylist())


def plain_decimal(number: decimal.Decimal) -> decimal.Decimal:
    """The number of `OLD_NUMERIC`: no trailing zeros after the point, no exponent.

    >>> plain_decimal(decimal.Decimal("1.500")), plain_decimal(decimal.Decimal("1E+2"))
    (Decimal('1.5'), Decimal('100'))
    """
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return decimal.Decimal(text if number else "0")


_LOAD: dict[type[t.SqlType], Callable[[Any], Any]] = {
    t.Numeric: lambda number: number,
    t.Date: v.date_of,
    t.Time: v.time_of,
    t.Timestamp: v.timestamp_of,
    t.TimestampTz: v.timestamptz_of,
    t.Uuid: lambda raw: uuid.UUID(bytes=raw),
    t.Enum: Label.of,
}


def to_table(rows: Sequence[tuple[Any, ...]], schema: Schema) -> pa.Table:
    """Rows, as tuples in the order of the schema, as a table of the storage schema."""
    for row in rows:
        if len(row) != len(schema):
            raise SchemaMismatch(f"a row has {len(row)} values, the schema {len(schema)}: {schema}")
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = []
    for column, values in zip(schema.columns, columns, strict=True):
        array = to_array(values, column.type)
        if array.null_count and not column.nullable:
            raise SchemaMismatch(
                f'null value in column "{column.name}" violates its NOT NULL', column=column.name
            )
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def from_table(table: pa.Table, schema: Schema) -> list[tuple[Any, ...]]:
    """The rows of a table of the storage schema, as tuples."""
    columns = [from_array(table.column(c.name), c.type) for c in schema.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def stored(array: pa.Array, kind: t.SqlType) -> pa.Array:
    """A column that may have come from Spark, as it is stored."""
    storage = arrow_type(kind)
    return array if array.type == storage else to_array(from_array(array, kind), kind)
