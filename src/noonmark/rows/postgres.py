"""Rows as PostgreSQL's protocol carries them: the front door.

`oid`, `type_size` and `typmod` describe a column; `type_of` reads such a description.
`encode_text`, `decode_text`, `encode_binary` and `decode_binary` take one value; `encode_column`
takes a whole stored column to the wire at once.

Law (round trip): decoding what was encoded gives the value; the bytes are those that PostgreSQL
itself sends, with DateStyle ISO, IntervalStyle postgres, bytea_output hex, extra_float_digits 1 and
client_encoding UTF8. NULL is None on both sides: the protocol writes it as a length of -1.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from noonmark.rows import types as t
from noonmark.rows.pg import binary
from noonmark.rows.pg.column import Format, encode_column
from noonmark.rows.pg.oid import oid, type_of, type_size, typmod
from noonmark.rows.pg.text import format_value, not_utf8, parse_value

__all__ = [
    "Format",
    "decode_binary",
    "decode_text",
    "encode_binary",
    "encode_column",
    "encode_text",
    "oid",
    "type_of",
    "type_size",
    "typmod",
]


def encode_text(value: Any, sql_type: t.SqlType, zone: dt.tzinfo = dt.UTC) -> bytes | None:
    """The value in text format; an instant is written in `zone`."""
    return None if value is None else format_value(value, sql_type, zone).encode()


def decode_text(raw: bytes | None, sql_type: t.SqlType, zone: dt.tzinfo = dt.UTC) -> Any:
    """The value of bytes in text format; an instant without an offset is read in `zone`."""
    if raw is None:
        return None
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise not_utf8(error) from None
    return parse_value(text, sql_type, zone)


def encode_binary(value: Any, sql_type: t.SqlType) -> bytes | None:
    """The value in binary format."""
    return None if value is None else binary.encode(value, sql_type)


def decode_binary(raw: bytes | None, sql_type: t.SqlType) -> Any:
    """The value of bytes in binary format."""
    return None if raw is None else binary.decode(raw, sql_type)
