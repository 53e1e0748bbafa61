"""Rows and parameters in the formats of the protocol.

Law (same bytes): the value of a DataRow is what `rows.postgres` encodes for that value, its type
and its format. The encoder of a result is built once per prepared statement; a row is then one call
per column, and a chunk of rows is one run of bytes.
"""

from __future__ import annotations

import datetime as dt
import struct
import uuid
import zoneinfo
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from noonmark.adapter.contract import Field
from noonmark.errors import InvalidBytes, InvalidValue, ProtocolViolation
from noonmark.rows import types as t
from noonmark.rows.pg.binary import encode as encode_binary
from noonmark.rows.pg.oid import FIRST_OID, oid, type_of, type_size, typmod
from noonmark.rows.pg.text import format_value
from noonmark.rows.postgres import decode_binary, decode_text
from noonmark.serve.beside import CHARACTERS_MAX, beside, is_long
from noonmark.serve.pgwire.reply import cstring, frame

TEXT, BINARY = 0, 1
NULL = b"\xff\xff\xff\xff"

#: A value on the wire: its length, then its bytes.
Framed = Callable[[Any], bytes]

_LENGTH = struct.Struct(">i")
_ROW = struct.Struct(">ciH")
_UNKNOWN_OIDS = frozenset({0, 705})
#: Types of PostgreSQL's catalog, as drivers state them, and what their values are here.
_OF_THE_CATALOG: dict[int, t.SqlType] = {
    18: t.Text("char"),
    19: t.Text("name"),
    26: t.Integer("oid"),
    28: t.Integer("xid"),
    1003: t.Array(t.Text("name")),
    1028: t.Array(t.Integer("oid")),
}
_SHORT = tuple(_LENGTH.pack(length) for length in range(256))


def time_zone(name: str | None) -> dt.tzinfo:
    """The session's time zone; UTC when its name says nothing here."""
    if name is None or name.upper() in ("UTC", "GMT", "ETC/UTC", "ZULU"):
        return dt.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return dt.UTC


def parameter_type(type_oid: int) -> t.SqlType | None:
    """The type that a client states for a parameter; None when it leaves it open.

    One of the types that somebody made is open, too: the place where it stands says which.
    """
    if type_oid in _UNKNOWN_OIDS or type_oid >= FIRST_OID:
        return None
    return _OF_THE_CATALOG.get(type_oid) or type_of(type_oid)


RESULTS = "result formats but query has {} columns"
PARAMETERS = "parameter formats but {} parameters"


def spread(formats: Sequence[int], count: int, what: str = RESULTS) -> tuple[int, ...]:
    """One format per column: none given = text, one given = for all."""
    if not formats:
        return (TEXT,) * count
    for form in formats:
        if form not in (TEXT, BINARY):
            raise InvalidBytes(f"unsupported format code: {form}")
    if len(formats) == count:
        return tuple(formats)
    if len(formats) > 1:
        raise ProtocolViolation(f"bind message has {len(formats)} {what.format(count)}")
    return (formats[0],) * count


def row_description(fields: Sequence[Field], formats: Sequence[int]) -> bytes:
    """The columns of a result; they belong to no table."""
    parts = [struct.pack(">H", len(fields))]
    for field, form in zip(fields, formats, strict=True):
        numbers = (0, 0, oid(field.type), type_size(field.type), typmod(field.type), form)
        parts.append(cstring(field.name) + struct.pack(">IhIhih", *numbers))
    return frame(b"T", b"".join(parts))


#: What a client sends of these is taken as it is.
_TAKEN = (t.Text, t.Varchar, t.Bytea)


def are_long(values: Sequence[bytes | None], types: Sequence[t.SqlType]) -> bool:
    """Whether it takes long to decode parameters."""
    pairs = zip(values, types, strict=False)
    apart = (raw for raw, kind in pairs if raw is not None and not isinstance(kind, _TAKEN))
    return sum(map(len, apart)) > CHARACTERS_MAX


def decode_parameters(
    values: Sequence[bytes | None],
    types: Sequence[t.SqlType],
    formats: Sequence[int],
    zone: dt.tzinfo,
    name: str = "",
) -> tuple[Any, ...]:
    """The values of a Bind message to the statement of a name."""
    if len(formats) > 1 and len(formats) != len(values):
        spread(formats, len(values), PARAMETERS)
    if len(values) != len(types):
        raise ProtocolViolation(
            f"bind message supplies {len(values)} parameters, "
            f'but prepared statement "{name}" requires {len(types)}'
        )
    forms = spread(formats, len(types), PARAMETERS)
    return tuple(
        _decode(number, raw, sql_type, form, zone)
        for number, (raw, sql_type, form) in enumerate(zip(values, types, forms, strict=True), 1)
    )


def _decode(number: int, raw: bytes | None, sql_type: t.SqlType, form: int, zone: dt.tzinfo) -> Any:
    try:
        if form == BINARY:
            return decode_binary(raw, sql_type)
        return decode_text(raw, sql_type, zone)
    except InvalidValue as error:
        where = f"Parameter ${number} is of type {sql_type}."
        detail = f"{error.detail} {where}" if error.detail else where
        raise type(error)(error.message, detail=detail, hint=error.hint) from None


class RowEncoder:
    """Rows of one result as DataRow messages."""

    __slots__ = ("_apart", "_columns", "_count")

    def __init__(
        self, sql_types: Sequence[t.SqlType], formats: Sequence[int], zone: dt.tzinfo
    ) -> None:
        pairs = zip(sql_types, formats, strict=True)
        self._columns = [framed(sql_type, form, zone) for sql_type, form in pairs]
        self._count = len(self._columns)
        shorts = (_short(*each) for each in zip(sql_types, formats, strict=True))
        #: The columns whose values are taken apart.
        self._apart = [at for at, short in enumerate(shorts) if short is None]

    def is_long(self, rows: Sequence[tuple[Any, ...]]) -> bool:
        """Whether it takes long to encode them."""
        apart = self._apart
        return bool(apart) and is_long(row[at] for row in rows for at in apart)

    async def encoded(self, rows: Sequence[tuple[Any, ...]]) -> bytes:
        """`encode`, beside the loop if that takes long."""
        return await beside(partial(self.encode, rows)) if self.is_long(rows) else self.encode(rows)

    def encode(self, rows: Sequence[tuple[Any, ...]]) -> bytes:
        """The messages of some rows, one after the other."""
        columns, count = self._columns, self._count
        head, parts = _ROW.pack, []
        for row in rows:
            body = b"".join(
                [
                    NULL if value is None else encode(value)
                    for encode, value in zip(columns, row, strict=True)
                ]
            )
            parts.append(head(b"D", len(body) + 6, count))
            parts.append(body)
        return b"".join(parts)


def framed(sql_type: t.SqlType, form: int, zone: dt.tzinfo) -> Framed:
    """How a value of the type goes on the wire."""
    if short := _short(sql_type, form):
        return short
    if form == BINARY:
        return lambda value: _frame(encode_binary(value, sql_type))
    return lambda value: _frame(format_value(value, sql_type, zone).encode())


def _short(sql_type: t.SqlType, form: int) -> Framed | None:
    """The short way of a type that has one."""
    if form == BINARY:
        told = sql_type.told if isinstance(sql_type, t.BigInt | t.Text) else ""
        apart = told == "oid" or told.startswith("reg")
        return None if apart else _BINARY.get(type(sql_type))
    return _TEXT.get(type(sql_type))


def _frame(raw: bytes) -> bytes:
    length = len(raw)
    return (_SHORT[length] if length < 256 else _LENGTH.pack(length)) + raw


def _frame_text(value: str) -> bytes:
    return _frame(value.encode())


def _frame_integer(value: int) -> bytes:
    return _frame(b"%d" % value)


def _fixed(code: str, size: int) -> Framed:
    """Length and number in one step."""
    pack = struct.Struct(">i" + code).pack
    return lambda value: pack(size, value)


def _frame_uuid(value: uuid.UUID) -> bytes:
    return _SHORT[16] + value.bytes


# The short ways are those types whose encoding needs no parameter of the type.
_TEXT: dict[type[t.SqlType], Framed] = {
    t.Boolean: lambda value: b"\0\0\0\1t" if value else b"\0\0\0\1f",
    t.SmallInt: _frame_integer,
    t.Integer: _frame_integer,
    t.BigInt: _frame_integer,
    t.Text: _frame_text,
    t.Varchar: _frame_text,
    t.Char: _frame_text,
}
_BINARY: dict[type[t.SqlType], Framed] = {
    t.Boolean: lambda value: b"\0\0\0\1\1" if value else b"\0\0\0\1\0",
    t.SmallInt: _fixed("h", 2),
    t.Integer: _fixed("i", 4),
    t.BigInt: _fixed("q", 8),
    t.Text: _frame_text,
    t.Varchar: _frame_text,
    t.Char: _frame_text,
    t.Bytea: _frame,
    t.Uuid: _frame_uuid,
}
