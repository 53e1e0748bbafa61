"""Make any Arrow table one of the storage schema, or say why it is not.

Law (lossless): every value of ``conform(table, schema)`` is the value that `table` had, in the
storage type and canonical form; if one would change its meaning, the call raises `SchemaMismatch`
that names the column, what was expected and what was found, or `InvalidValue`.
Law (idempotent): a conforming table is returned as it is: the same object.

What is taken for what: integers of any width by value; decimals and integers for numeric; float32,
float64 and integers for floats when exact; every string layout for text and jsonb, every binary
layout for bytea and uuid; text for enums; timestamps of any unit when exact (with a zone only for
timestamptz, without only for timestamp); time32/time64 for time; month_day_nano for interval; every
list layout
for arrays; structs for records by field name; dictionaries and extension types by what they stand
for; the null type for anything. Nothing else: not text for numbers, not numbers for text.

Columns are matched by name. A column of the schema that the table lacks is NULL if it may be; a
column of the table that the schema lacks is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from noonmark.errors import InvalidValue, SchemaMismatch
from noonmark.rows import types as t
from noonmark.rows.numeral import encode, numeral
from noonmark.rows.refine import rebuild_list, refine
from noonmark.rows.schema import Column, Schema
from noonmark.rows.storage import INTERVAL_STRUCT, arrow_schema, arrow_type


class _NoFit(Exception):
    """No lossless way from the found type or values to the storage type."""


def conform(table: pa.Table, schema: Schema) -> pa.Table:
    """The table in the storage schema; the same object when it already conforms."""
    expected = arrow_schema(schema)
    _check_names(table.column_names, schema)
    same = table.schema.equals(expected)
    columns, given = [], dict(zip(table.column_names, table.columns, strict=True))
    for column in schema.columns:
        found = given.get(column.name)
        if found is not None:
            fitted = _fit(found, column)
        else:
            fitted = pa.nulls(table.num_rows, arrow_type(column.type))
        if fitted.null_count and not column.nullable:
            raise SchemaMismatch(
                f'null value in column "{column.name}" violates its NOT NULL',
                detail=f"{fitted.null_count} of {table.num_rows} rows are NULL.",
                column=column.name,
            )
        same = same and fitted is found
        columns.append(fitted)
    return table if same else pa.Table.from_arrays(columns, schema=expected)


def _check_names(found: list[str], schema: Schema) -> None:
    if tuple(found) == schema.names:
        return
    for at, name in enumerate(found):
        if name not in schema or name in found[:at]:
            raise SchemaMismatch(
                f'column "{name}" is not expected' + (" twice" if name in schema else ""),
                detail=f"Expected {schema}; found columns {', '.join(found)}.",
                hint="Leave it out, or evolve the collection first.",
                column=name,
            )
    for column in schema.columns:
        if not column.nullable and column.name not in found:
            raise SchemaMismatch(
                f'column "{column.name}" is missing and may not be NULL',
                detail=f"Expected {schema}; found columns {', '.join(found)}.",
                column=column.name,
            )


def _fit(found: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    """The column in storage form; the same object when nothing had to change."""
    storage = arrow_type(column.type)
    try:
        chunks = found.chunks
        fitted = [refine(_cast(chunk, column.type), column.type) for chunk in chunks]
    except (_NoFit, pa.ArrowException) as error:
        raise SchemaMismatch(
            f'column "{column.name}" is of type {column.type} but the data is {found.type}',
            detail=f"Expected {storage}, or a type that casts to it without loss. {error}".strip(),
            hint="Cast it before writing it.",
            column=column.name,
            expected=str(storage),
            found=str(found.type),
        ) from None
    except InvalidValue as error:
        raise InvalidValue(
            f'column "{column.name}": {error.message}',
            detail=error.detail,
            hint=error.hint,
            column=column.name,
        ) from None
    if found.type == storage and all(a is b for a, b in zip(fitted, chunks, strict=True)):
        return found
    return pa.chunked_array(fitted, storage)


def _cast(array: pa.Array, sql_type: t.SqlType) -> pa.Array:
    storage = arrow_type(sql_type)
    if array.type == storage:
        return array
    if isinstance(array, pa.ExtensionArray):
        return _cast(array.storage, sql_type)
    if pa.types.is_dictionary(array.type):
        return _cast(array.dictionary_decode(), sql_type)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), storage)
    if isinstance(sql_type, t.Coded):
        return _coded(array, sql_type)
    return _CASTS[type(sql_type)](array, sql_type)


def _family(*members: Callable[[pa.DataType], bool]) -> Callable[[pa.Array, t.SqlType], pa.Array]:
    """A cast from any type of the family, checked by Arrow value by value."""

    def cast(array: pa.Array, sql_type: t.SqlType) -> pa.Array:
        if not any(member(array.type) for member in members):
            raise _NoFit
        return array.cast(arrow_type(sql_type))

    return cast


def _float(array: pa.Array, sql_type: t.SqlType) -> pa.Array:
    if pa.types.is_integer(array.type):
        return array.cast(arrow_type(sql_type))
    if not pa.types.is_floating(array.type):
        raise _NoFit
    fitted = array.cast(arrow_type(sql_type))
    # Arrow does not check this one: a float64 loses digits in float32 without a word.
    same = pc.or_(pc.equal(fitted.cast(array.type), array), pc.is_nan(array))
    if pc.all(same).as_py() is False:
        raise _NoFit("A value is not exact in 32 bits.")
    return fitted


def _numeric(array: pa.Array, sql_type: t.Numeric) -> pa.Array:
    if sql_type.is_plain:
        return as_numerals(array)
    if pa.types.is_integer(array.type):
        array = array.cast(pa.decimal128(20, 0))
    elif not pa.types.is_decimal(array.type):
        raise _NoFit
    return array.cast(arrow_type(sql_type))


def as_numerals(array: pa.Array) -> pa.Array:
    """Decimals at the scale of their type, and integers, as plain numeric."""
    if not (pa.types.is_integer(array.type) or pa.types.is_decimal(array.type)):
        raise _NoFit
    numbers = array.to_pylist()
    return pa.array([None if x is None else encode(numeral(x)) for x in numbers], pa.binary())


def _time(array: pa.Array, _: t.SqlType) -> pa.Array:
    if not pa.types.is_time(array.type):
        raise _NoFit
    return array.cast(pa.time64("us")).view(pa.int64())


def _timestamp(array: pa.Array, sql_type: t.SqlType) -> pa.Array:
    storage = arrow_type(sql_type)
    if not pa.types.is_timestamp(array.type) or (array.type.tz is None) != (storage.tz is None):
        raise _NoFit
    return array.cast(storage)


def _interval(array: pa.Array, _: t.SqlType) -> pa.Array:
    if pa.types.is_struct(array.type):
        return _struct(array, _INTERVAL)
    if array.type != pa.month_day_nano_interval():
        raise _NoFit
    parts = array.to_pylist()
    if any(part is not None and part.nanoseconds % 1000 for part in parts):
        raise _NoFit("An interval is finer than a microsecond.")
    rows = [
        None if part is None else (part.months, part.days, part.nanoseconds // 1000)
        for part in parts
    ]
    columns = [
        pa.array([None if row is None else row[at] for row in rows], field.type)
        for at, field in enumerate(INTERVAL_STRUCT)
    ]
    return pa.StructArray.from_arrays(columns, fields=list(INTERVAL_STRUCT), mask=array.is_null())


_INTERVAL = t.Record(
    (t.Field("months", t.Integer()), t.Field("days", t.Integer()), t.Field("micros", t.BigInt()))
)


def _list(array: pa.Array, sql_type: t.Array) -> pa.Array:
    kind = array.type
    if not (
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    ):
        raise _NoFit
    # Taken apart, not cast: Arrow's cast from a list view with NULLs in it loses elements.
    return rebuild_list(array, _cast(array.flatten(), sql_type.element), arrow_type(sql_type))


def _struct(array: pa.Array, sql_type: t.Record) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise _NoFit
    names = [field.name for field in array.type]
    if sorted(names) != sorted(field.name for field in sql_type.fields):
        raise _NoFit(f"Its fields are {', '.join(names)}.")
    columns = dict(zip(names, array.flatten(), strict=True))
    return pa.StructArray.from_arrays(
        [_cast(columns[field.name], field.type) for field in sql_type.fields],
        fields=list(arrow_type(sql_type)),
        mask=array.is_null(),
    )


_STRING = _family(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BINARY = _family(
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_binary_view,
)
_INTEGER = _family(pa.types.is_integer)


def _enum(array: pa.Array, sql_type: t.Enum) -> pa.Array:
    """Stored labels, or texts: those of the type."""
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        return _BINARY(array, sql_type)
    if not sql_type.labels:
        raise _NoFit("Only the server knows the labels of an enum: write it with SQL.")
    texts = _STRING(array.cast(pa.string()), t.Text()).to_pylist()
    return pa.array([None if x is None else sql_type.label(x).stored for x in texts], pa.binary())


def _coded(array: pa.Array, sql_type: t.Coded) -> pa.Array:
    """Stored values, or texts."""
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return _BINARY(array, sql_type)
    texts = array.to_pylist()
    return pa.array([None if x is None else sql_type.parse(x) for x in texts], pa.binary())


_CASTS: dict[type[t.SqlType], Callable[[pa.Array, Any], pa.Array]] = {
    t.Boolean: _family(pa.types.is_boolean),
    t.SmallInt: _INTEGER,
    t.Integer: _INTEGER,
    t.BigInt: _INTEGER,
    t.Real: _float,
    t.Double: _float,
    t.Numeric: _numeric,
    t.Text: _STRING,
    t.Varchar: _STRING,
    t.Char: _STRING,
    t.Bytea: _BINARY,
    t.Date: _family(pa.types.is_date),
    t.Time: _time,
    t.Timestamp: _timestamp,
    t.TimestampTz: _timestamp,
    t.Interval: _interval,
    t.Uuid: _BINARY,
    t.Enum: _enum,
    t.Jsonb: _STRING,
    t.Json: _STRING,
    t.Array: _list,
    t.Record: _struct,
}
