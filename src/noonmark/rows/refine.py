"""Values that their storage type alone does not make right.

Arrow's types are wider than SQL's: a string may be longer than its varchar(n), a NaN may have any
payload, an int64 is not always a time of day. `refine` takes an array of the storage type and gives
the same array with every value in its one canonical form, or raises `InvalidValue`. It returns the
array itself when there was nothing to do, and never loops in Python except over jsonb.

Law (idempotent): ``refine(refine(a, t), t)`` is equal to ``refine(a, t)``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.errors import InvalidValue
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.jsonb import canonical, check


@cache
def _one_nan(storage: pa.DataType) -> tuple[pa.Scalar, pa.Scalar]:
    """The one NaN, as a float and as its bits. Made late: Arrow's first scalar imports pandas."""
    if storage == pa.float32():
        return pa.scalar(float("nan"), storage), pa.scalar(0x7FC0_0000, pa.int32())
    return pa.scalar(float("nan"), storage), pa.scalar(0x7FF8_0000_0000_0000, pa.int64())


def refine(array: pa.Array, sql_type: t.SqlType) -> pa.Array:
    """The array with every value in canonical form."""
    if isinstance(sql_type, t.Coded):
        return _coded(array, sql_type)
    act = _ACTS.get(type(sql_type))
    return array if act is None else act(array, sql_type)


def _nan(array: pa.Array, _: t.SqlType) -> pa.Array:
    is_nan = pc.is_nan(array)
    if not pc.any(is_nan).as_py():
        return array
    nan, bits = _one_nan(array.type)
    odd = pc.and_(is_nan, pc.not_equal(array.view(bits.type), bits))
    return pc.if_else(is_nan, nan, array) if pc.any(odd).as_py() else array


def _text(array: pa.Array, sql_type: t.SqlType) -> pa.Array:
    if _has_nul(array):
        raise InvalidValue(f"a {sql_type} value has a NUL character, which SQL text cannot hold")
    return array


def _has_nul(array: pa.Array) -> bool:
    """Whether a value has a zero byte. One pass over the bytes; a second only on suspicion."""
    _, offsets, data = array.buffers()
    if data is None or len(array) == 0:
        return False
    ends = np.frombuffer(offsets, np.int32)[[array.offset, array.offset + len(array)]]
    used = np.frombuffer(data, np.uint8)[ends[0] : ends[1]]
    # Bytes under a NULL belong to no value, so the first pass may be wrong one way only.
    if used.size == 0 or used.min() != 0:
        return False
    return bool(pc.any(pc.match_substring(array, "\0")).as_py())


def _varchar(array: pa.Array, sql_type: t.Varchar) -> pa.Array:
    _text(array, sql_type)
    if sql_type.length is not None:
        _check_length(array, sql_type, sql_type.length)
    return array


def _check_length(array: pa.Array, sql_type: t.SqlType, length: int) -> None:
    longest = pc.max(pc.utf8_length(array)).as_py()
    if longest is not None and longest > length:
        raise InvalidValue(f"value too long for type {sql_type}: {longest} characters")


def _char(array: pa.Array, sql_type: t.Char) -> pa.Array:
    _text(array, sql_type)
    if sql_type.length is None:
        return array
    span = pc.min_max(pc.utf8_length(array))
    if span["min"].as_py() in (None, sql_type.length) and span["max"].as_py() in (
        None,
        sql_type.length,
    ):
        return array
    padded = pc.utf8_rpad(pc.utf8_rtrim(array, " "), sql_type.length)
    _check_length(padded, sql_type, sql_type.length)
    return padded


def _between(low: int, high: int, *infinities: int) -> Callable[[pa.Array, t.SqlType], pa.Array]:
    """A check that every value is in [low, high] or is one of the infinities."""

    def act(array: pa.Array, sql_type: t.SqlType) -> pa.Array:
        numbers = array if pa.types.is_integer(array.type) else array.view(_WIDTH[array.type.id])
        span = pc.min_max(numbers).as_py()
        if span["min"] is None or (low <= span["min"] and span["max"] <= high):
            return array
        inside = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
        for infinity in infinities:
            inside = pc.or_(inside, pc.equal(numbers, infinity))
        if not pc.all(inside).as_py():
            raise InvalidValue(f"a value is out of range for type {sql_type}")
        return array

    return act


_WIDTH = {pa.date32().id: pa.int32(), pa.timestamp("us").id: pa.int64()}


def _uuid(array: pa.Array, _: t.SqlType) -> pa.Array:
    span = pc.min_max(pc.binary_length(array)).as_py()
    if span not in ({"min": 16, "max": 16}, {"min": None, "max": None}):
        raise InvalidValue(f"a uuid has 16 bytes, not {span['min']} to {span['max']}")
    return array


def _enum(array: pa.Array, _: t.SqlType) -> pa.Array:
    first = pc.min(pc.find_substring(array, b"\0")).as_py()
    if first is not None and first < 1:
        raise InvalidValue("a value is not the stored form of an enum")
    return array


def _coded(array: pa.Array, sql_type: t.Coded) -> pa.Array:
    shortest = pc.min(pc.binary_length(array)).as_py()
    if shortest is not None and shortest < sql_type.bytes_min:
        raise InvalidValue(f"a value is not the stored form of {sql_type}")
    return array


def _jsonb(array: pa.Array, _: t.SqlType) -> pa.Array:
    texts = array.to_pylist()
    refined = [None if text is None else canonical(text) for text in texts]
    return array if refined == texts else pa.array(refined, pa.string())


def _json(array: pa.Array, _: t.SqlType) -> pa.Array:
    for text in array.to_pylist():
        if text is not None:
            check(text)
    return array


def _list(array: pa.Array, sql_type: t.Array) -> pa.Array:
    flat = array.flatten()
    refined = refine(flat, sql_type.element)
    return array if refined is flat else rebuild_list(array, refined, array.type)


def rebuild_list(array: pa.Array, flat: pa.Array, storage: pa.DataType) -> pa.Array:
    """A list array of the same shape as `array`, with other elements."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())
    return pa.ListArray.from_arrays(offsets, flat, type=storage, mask=array.is_null())


def _record(array: pa.Array, sql_type: t.Record) -> pa.Array:
    columns = array.flatten()
    refined = [
        refine(column, field.type) for column, field in zip(columns, sql_type.fields, strict=True)
    ]
    if all(new is old for new, old in zip(refined, columns, strict=True)):
        return array
    return pa.StructArray.from_arrays(refined, fields=list(array.type), mask=array.is_null())


def _numeral(array: pa.Array, sql_type: t.Numeric) -> pa.Array:
    if sql_type.is_plain:
        shortest = pc.min(pc.binary_length(array)).as_py()
        if shortest is not None and shortest < 5:
            raise InvalidValue("a value is not the stored form of a numeric")
    return array


_ACTS: dict[type[t.SqlType], Callable[[pa.Array, Any], pa.Array]] = {
    t.Real: _nan,
    t.Double: _nan,
    t.Numeric: _numeral,
    t.Text: _text,
    t.Varchar: _varchar,
    t.Char: _char,
    t.Date: _between(v.DAYS_MIN, v.DAYS_MAX, v.INT32_MIN, v.INT32_MAX),
    t.Time: _between(0, v.DAY_MICROS),
    t.Timestamp: _between(v.MICROS_MIN, v.MICROS_MAX, v.INT64_MIN, v.INT64_MAX),
    t.TimestampTz: _between(v.MICROS_MIN, v.MICROS_MAX, v.INT64_MIN, v.INT64_MAX),
    t.Uuid: _uuid,
    t.Enum: _enum,
    t.Jsonb: _jsonb,
    t.Json: _json,
    t.Array: _list,
    t.Record: _record,
}
