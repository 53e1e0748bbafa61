"""Texts to values of a SQL type, a column at a time.

Law (exact): the value of each text is `parse_value` of it, or it is bad with that error's message.
Law (quick): where Arrow's own cast is used it gives the same values. It is used only for texts that
both read alike; what Arrow takes and PostgreSQL does not, or takes otherwise, goes the exact way.

A bad text is NULL in the column and has its reason in a dict by place: the caller decides what
becomes of the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from noonmark.errors import InvalidValue, NoonmarkError
from noonmark.rows import types as t
from noonmark.rows.arrow import arrow_type, to_array
from noonmark.rows.pg.text import parse_value
from noonmark.rows.refine import refine

Reasons = dict[int, str]


class Parsed(NamedTuple):
    """Columns of equal length, and why some places have no row."""

    columns: list[pa.Array]
    reasons: Reasons


# 0001-01-01: Arrow has a year 0, which PostgreSQL writes as 1 BC.
_FIRST_DAY = -719_162
_DAY_MICROS = 86_400_000_000
# Smaller numbers than these may have lost digits, or all of them.
_TINY = {pa.float32(): 1.2e-38, pa.float64(): 1e-300}
_ZERO = r"^-?(0+\.?0*|\.0+)$"


def from_texts(texts: pa.Array, sql_type: t.SqlType) -> tuple[pa.Array, Reasons]:
    """The column of the texts; NULL stays NULL."""
    quick = _quick(texts, sql_type)
    if quick is not None:
        return quick, {}
    return from_values(texts.to_pylist(), sql_type, lambda text: parse_value(text, sql_type))


def from_values(
    items: Sequence[Any], sql_type: t.SqlType, convert: Callable[[Any], Any]
) -> tuple[pa.Array, Reasons]:
    """The column of ``convert(item)`` for each item that is not None."""
    values: list[Any] = []
    reasons: Reasons = {}
    for at, item in enumerate(items):
        try:
            values.append(None if item is None else convert(item))
        except NoonmarkError as error:
            values.append(None)
            reasons[at] = error.message
    try:
        return to_array(values, sql_type), reasons
    except NoonmarkError:
        # A value that parses and cannot be stored: rare, so it may cost a second look at each.
        for at, value in enumerate(values):
            try:
                to_array([value], sql_type)
            except NoonmarkError as error:
                values[at] = None
                reasons[at] = error.message
        return to_array(values, sql_type), reasons


def _quick(texts: pa.Array, sql_type: t.SqlType) -> pa.Array | None:
    """The whole column by Arrow, or None where that could differ from the exact way."""
    act = _QUICK.get(type(sql_type))
    if act is None:
        return None
    try:
        array = act(texts, sql_type)
        return None if array is None else refine(array, sql_type)
    except (pa.ArrowException, NoonmarkError):
        return None


def _text(texts: pa.Array, _: t.SqlType) -> pa.Array:
    return texts


def _varchar(texts: pa.Array, sql_type: t.Varchar) -> pa.Array | None:
    longest = pc.max(pc.utf8_length(texts)).as_py() or 0
    return texts if sql_type.length is None or longest <= sql_type.length else None


def _cast(texts: pa.Array, sql_type: t.SqlType) -> pa.Array:
    return texts.cast(arrow_type(sql_type))


def _integer(texts: pa.Array, sql_type: t.SqlType) -> pa.Array | None:
    # Arrow reads 0x10 as 16.
    if pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
        return None
    return _cast(texts, sql_type)


def _decimal(texts: pa.Array, sql_type: t.Numeric) -> pa.Array | None:
    if sql_type.is_plain:
        return _numerals(texts)
    # Arrow wraps around, without a word, where there are more digits than the type has room for.
    room = sql_type.stored_precision - sql_type.stored_scale
    if pc.any(pc.match_substring_regex(texts, rf"[eE]|^[^.]*\d{{{room + 1}}}")).as_py():
        return None
    return _cast(texts, sql_type)


def _numerals(texts: pa.Array) -> pa.Array | None:
    try:
        return to_array(
            [None if x is None else parse_value(x, t.Numeric()) for x in texts.to_pylist()],
            t.Numeric(),
        )
    except InvalidValue:
        return None


def _float(texts: pa.Array, sql_type: t.SqlType) -> pa.Array | None:
    numbers = _cast(texts, sql_type)
    if not pc.all(pc.is_finite(numbers)).as_py() and len(numbers) > numbers.null_count:
        return None
    tiny = tiny_places(numbers)
    if len(tiny) and not pc.all(pc.match_substring_regex(texts.take(tiny), _ZERO)).as_py():
        return None
    return numbers


def tiny_places(numbers: pa.Array) -> pa.Array:
    """Where a float is so small that the text may have said another number."""
    small = pc.less(pc.abs(numbers), pa.scalar(_TINY[numbers.type], numbers.type))
    return pc.indices_nonzero(pc.fill_null(small, False))


def _date(texts: pa.Array, sql_type: t.SqlType) -> pa.Array | None:
    if _lengths(texts) != (10, 10):
        return None
    return _from_year_one(_cast(texts, sql_type), pa.int32(), _FIRST_DAY)


def _timestamp(texts: pa.Array, sql_type: t.SqlType) -> pa.Array | None:
    # Shorter ones than "2020-01-01 00:00" have half a time of day, which PostgreSQL refuses.
    shortest, _ = _lengths(texts)
    if shortest is None or shortest < 16:
        return None
    return _from_year_one(_cast(texts, sql_type), pa.int64(), _FIRST_DAY * _DAY_MICROS)


def _lengths(texts: pa.Array) -> tuple[int | None, int | None]:
    span = pc.min_max(pc.binary_length(texts)).as_py()
    return span["min"], span["max"]


def _from_year_one(array: pa.Array, width: pa.DataType, first: int) -> pa.Array | None:
    earliest = pc.min(array.view(width)).as_py()
    return array if earliest is None or earliest >= first else None


_QUICK: dict[type[t.SqlType], Callable[[pa.Array, Any], pa.Array | None]] = {
    t.Boolean: _cast,
    t.SmallInt: _integer,
    t.Integer: _integer,
    t.BigInt: _integer,
    t.Real: _float,
    t.Double: _float,
    t.Numeric: _decimal,
    t.Text: _text,
    t.Varchar: _varchar,
    t.Date: _date,
    t.Timestamp: _timestamp,
    t.TimestampTz: _timestamp,
}


def in_blocks(
    values: pa.Array,
    quick: Callable[[pa.Array], list[pa.Array] | None],
    exact: Callable[[pa.Array], Parsed],
) -> Parsed:
    """All values, the quick way in blocks; one that it cannot take is cut until few are left.

    So one bad record costs the exact way for its neighbours, not for the batch.
    """
    pieces: list[Parsed] = []
    starts: list[int] = []
    stack = [(at, min(_BLOCK, len(values) - at)) for at in range(0, len(values), _BLOCK)][::-1]
    while stack:
        start, count = stack.pop()
        block = values.slice(start, count)
        columns = quick(block)
        if columns is None and count > _EXACT:
            step = max(_EXACT, count // _CUT)
            parts = [
                (at, min(step, start + count - at)) for at in range(start, start + count, step)
            ]
            stack += reversed(parts)
            continue
        pieces.append(exact(block) if columns is None else Parsed(columns, {}))
        starts.append(start)
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return exact(values)  # no values: no piece
    columns = [pa.concat_arrays(parts) for parts in zip(*(p.columns for p in pieces), strict=True)]
    reasons = {
        start + at: reason
        for start, piece in zip(starts, pieces, strict=True)
        for at, reason in piece.reasons.items()
    }
    return Parsed(columns, reasons)


_BLOCK, _CUT, _EXACT = 16_384, 8, 64


def merge_reasons(into: Reasons, more: Reasons, column: str) -> None:
    """The first reason of a row stands; it names the column."""
    for at, reason in more.items():
        into.setdefault(at, f'column "{column}": {reason}')


def as_text(values: pa.Array) -> pa.Array | None:
    """Bytes as text, without a copy of the bytes; None when some are not UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return None


def joined(texts: pa.Array) -> bytes:
    """The texts, each with a line break behind it."""
    lines = pc.binary_join_element_wise(texts, pa.scalar(""), pa.scalar("\n"))
    _, offsets, data = lines.buffers()
    end = pa.Array.from_buffers(pa.int32(), len(lines) + 1, [None, offsets])[-1].as_py()
    return bytes(data.slice(0, end)) if end else b""


def decode_each(values: pa.Array) -> tuple[list[str | None], Reasons]:
    """Bytes as text one by one, with the reason where they are not UTF-8."""
    texts: list[str | None] = []
    reasons: Reasons = {}
    for at, value in enumerate(values.to_pylist()):
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError as error:
            texts.append(None)
            reasons[at] = f"not UTF-8 at byte {error.start}"
    return texts, reasons
