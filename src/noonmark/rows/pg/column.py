"""A stored column in PostgreSQL's wire formats, a whole column at a time where Arrow can do it.

Law (same bytes): ``encode_column(a, t, form)`` is the list of ``encode(v, t)`` for the values v of
a. A short cut is taken only where Arrow's own text is PostgreSQL's: years 1 to 9999 in UTC, and
decimals of a scale at which Arrow writes no exponent.
"""

from __future__ import annotations

import datetime as dt
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from noonmark.rows import types as t
from noonmark.rows.array import from_array
from noonmark.rows.pg import binary
from noonmark.rows.pg.text import format_value
from noonmark.rows.value import NEAR_DAYS, NEAR_MICROS

Format = Literal["text", "binary"]

_NO_EXPONENT_SCALE_MAX = 6


def encode_column(
    array: pa.Array | pa.ChunkedArray,
    sql_type: t.SqlType,
    form: Format = "text",
    zone: dt.tzinfo = dt.UTC,
) -> list[bytes | None]:
    """Every value of a stored column in the format; NULL is None."""
    if isinstance(array, pa.ChunkedArray):
        return [raw for part in array.chunks for raw in encode_column(part, sql_type, form, zone)]
    whole = _text(array, sql_type, zone) if form == "text" else _binary(array, sql_type)
    if whole is not None:
        return list(whole.cast(pa.binary()).to_pylist())
    values = from_array(array, sql_type)
    if form == "text":
        return [None if v is None else format_value(v, sql_type, zone).encode() for v in values]
    return [None if v is None else binary.encode(v, sql_type) for v in values]


def _text(array: pa.Array, sql_type: t.SqlType, zone: dt.tzinfo) -> pa.Array | None:
    """The column's text, or None when it takes a loop."""
    match sql_type:
        case t.Text() | t.Varchar() | t.Char() | t.Jsonb() | t.Json():
            return array
        case t.SmallInt() | t.Integer() | t.BigInt():
            return array.cast(pa.string())
        case t.Boolean():
            return pc.if_else(array, "t", "f")
        case t.Numeric(_, int(scale)) if scale <= _NO_EXPONENT_SCALE_MAX:
            return array.cast(pa.string())
        case t.Date() if _within(array.view(pa.int32()), NEAR_DAYS):
            return array.cast(pa.string())
        case t.Timestamp() if _within(array.view(pa.int64()), NEAR_MICROS):
            return _instants(array)
        case t.TimestampTz() if zone is dt.UTC and _within(array.view(pa.int64()), NEAR_MICROS):
            return pc.binary_join_element_wise(_instants(array.view(pa.timestamp("us"))), "+00", "")
    return None


def _within(numbers: pa.Array, span: tuple[int, int]) -> bool:
    found = pc.min_max(numbers).as_py()
    return found["min"] is None or (span[0] <= found["min"] and found["max"] <= span[1])


def _instants(array: pa.Array) -> pa.Array:
    """Arrow writes six digits after the second's point; PostgreSQL as many as there are."""
    return pc.utf8_rtrim(pc.utf8_rtrim(array.cast(pa.string()), "0"), ".")


def _binary(array: pa.Array, sql_type: t.SqlType) -> pa.Array | None:
    match sql_type:
        case t.Text() | t.Varchar() | t.Char() | t.Bytea() | t.Uuid() | t.Json():
            return array
        case t.Jsonb():
            return pc.binary_join_element_wise("\x01", array, "")
    return None
