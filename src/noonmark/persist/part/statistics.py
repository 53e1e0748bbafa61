"""What a part says of its columns without being read: smallest, largest, how many NULLs.

A value is *physical*: an int (booleans, dates, times and timestamps too; decimals unscaled), a
float, a str or bytes. None is "not known": of a nested column, of a column that is all NULL, of a
decimal that needs more than 64 bits, of text that has no short upper bound.

Law (cover): every value v of a column that is not NULL has ``low <= v <= high`` for the bounds
that are known. Text and bytes are cut to `BOUND_BYTES`: the lower bound is a prefix, the upper
bound the next value after all that begin with the prefix. NaN is above every other float, as in
PostgreSQL, and has the physical value infinity.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Bound = Any  # int, float, str, bytes or None: a union that msgspec does not check for us
ColumnStatistics = tuple[Bound, Bound, int]

BOUND_BYTES = 32
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_SURROGATES = range(0xD800, 0xE000)


def physical(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The physical values of a column; NULL, and what has no physical value, is None."""
    comparable = _comparable(column)
    return (
        [None] * len(column) if comparable is None else [_value(v) for v in comparable.to_pylist()]
    )


def has_physical(kind: pa.DataType) -> bool:
    """Whether values of the type have physical values: of others, statistics say nothing."""
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind))


def column_statistics(column: pa.ChunkedArray) -> ColumnStatistics:
    """Bounds and NULL count of one column; text is not cut yet."""
    comparable = _comparable(column)
    if comparable is None or column.null_count == len(column):
        return (None, None, column.null_count)
    extremes = pc.min_max(comparable)
    low, high = (_value(extremes[end].as_py()) for end in ("min", "max"))
    return (low, high, column.null_count)


def combine(pieces: Sequence[tuple[ColumnStatistics, int]]) -> ColumnStatistics:
    """The statistics, cut, of columns laid end to end; each comes with its number of rows."""
    nulls = sum(statistics[2] for statistics, _ in pieces)
    bounded = [statistics for statistics, rows in pieces if statistics[2] < rows]
    if not bounded or any(low is None or high is None for low, high, _ in bounded):
        return (None, None, nulls)
    lows: list[Any] = [low for low, _, _ in bounded]
    highs: list[Any] = [high for _, high, _ in bounded]
    return (_at_or_below(min(lows)), _at_or_above(max(highs)), nulls)


def _comparable(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray | None:
    """The column in a type that Python holds whole: a timestamp may be beyond datetime's years."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8())
    if pa.types.is_date32(kind):
        return column.cast(pa.int32())
    if pa.types.is_time64(kind) or pa.types.is_timestamp(kind):
        return column.cast(pa.int64())
    if pa.types.is_floating(kind) and pc.any(pc.is_nan(column)).as_py():
        return pc.if_else(pc.is_nan(column), pa.scalar(math.inf, kind), column)
    return column if has_physical(kind) else None


def _value(value: Any) -> Any:
    """A decimal without its scale, which the type knows; everything else as it is."""
    if not isinstance(value, Decimal):
        return value
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits)))
    return -unscaled if sign else unscaled


def _at_or_below(value: Any) -> Bound:
    if isinstance(value, int):
        return value if _INT64_MIN <= value <= _INT64_MAX else None
    if isinstance(value, bytes):
        return value[:BOUND_BYTES]
    if isinstance(value, str):
        return _text_prefix(value)
    return float(value)


def _at_or_above(value: Any) -> Bound:
    if isinstance(value, bytes) and len(value) > BOUND_BYTES:
        return _next_bytes(value[:BOUND_BYTES])
    if isinstance(value, str) and len(prefix := _text_prefix(value)) < len(value):
        return _next_text(prefix)
    return _at_or_below(value)


def _text_prefix(value: str) -> str:
    return value.encode()[:BOUND_BYTES].decode(errors="ignore")


def _next_bytes(prefix: bytes) -> bytes | None:
    """The least value above all that begin with `prefix`."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _next_text(prefix: str) -> str | None:
    """The least text above all that begin with `prefix`; code points order as their UTF-8 does."""
    kept = prefix.rstrip(chr(sys.maxunicode))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)
