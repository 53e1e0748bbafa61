"""Values in PostgreSQL's text format.

Law (agreement): ``format_value(v, t)`` is the text that PostgreSQL prints for v; ``parse_value``
reads that text back to v, and the other common spellings that PostgreSQL takes, with the same
meaning. What it does not take, and a value that the type cannot hold, raise `InvalidValue`.

NULL has no text of its own: outside arrays and records it is the absence of a value, None here.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
import uuid
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from noonmark.errors import InvalidBytes, InvalidValue, NumberTooLarge
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.array import plain_decimal
from noonmark.rows.jsonb import canonical, check
from noonmark.rows.numeral import NO_PRECISION, format_numeral, numeral, scale_of
from noonmark.rows.pg.floats import format_double, format_real, parse_double, parse_real
from noonmark.rows.pg.intervals import format_interval, parse_interval
from noonmark.rows.pg.nested import join_array, join_record, split_array, split_record
from noonmark.rows.pg.times import (
    format_date,
    format_time,
    format_timestamp,
    format_timestamptz,
    parse_date,
    parse_time,
    parse_timestamp,
    parse_timestamptz,
)

_INTEGER = re.compile(r"[+-]?(\d+(_\d+)*|0[xX](_?[0-9a-fA-F])+|0[oO](_?[0-7])+|0[bB](_?[01])+)")
_LEADING = re.compile(r"[+-]?(\d+)\d", re.ASCII)
_DIGITS = r"\d+(?:_\d+)*"
_NUMERIC = re.compile(
    rf"[+-]?(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:e[+-]?{_DIGITS})?",
    re.ASCII | re.IGNORECASE,
)
_ODD_NUMERIC = {
    "nan": "NaN",
    **{f"{sign}{word}": "Infinity" for sign in ("", "+") for word in ("infinity", "inf")},
    **{f"-{word}": "-Infinity" for word in ("infinity", "inf")},
}
_HEX = r"(?:[0-9a-f]{4}-?){7}[0-9a-f]{4}"
_UUID = re.compile(rf"({_HEX})|\{{({_HEX})\}}", re.IGNORECASE)
_SPACES = " \t\n\r\v\f"
_BITS = {t.SmallInt: 16, t.Integer: 32, t.BigInt: 64}
_NO_EXPONENT = 6
# Wide enough for every digit that numeric may have: rounding must happen once, at the scale.
_WIDE = decimal.Context(prec=150_000, rounding=decimal.ROUND_HALF_UP)


def format_value(value: Any, sql_type: t.SqlType, zone: dt.tzinfo = dt.UTC) -> str:
    """The text of a value that is not NULL."""
    match sql_type:
        case t.TimestampTz():
            return format_timestamptz(value, zone)
        case t.Numeric():
            return format_numeric(value, sql_type)
        case t.Coded():
            return sql_type.show(value, zone)
        case t.Vector(element):
            return " ".join(format_value(item, element, zone) for item in value)
        case t.Array(element):
            return join_array(
                (None if item is None else format_value(item, element, zone) for item in value),
                _delimiter(element),
            )
        case t.Record(fields):
            return join_record(
                None if item is None else format_value(item, field.type, zone)
                for item, field in zip(value, fields, strict=True)
            )
    return _FORMAT[type(sql_type)](value)


def formatter(sql_type: t.SqlType, zone: dt.tzinfo = dt.UTC) -> Callable[[Any], str]:
    """`format_value` for one type: what is to be done is found out once, for many values."""
    match sql_type:
        case t.Numeric() if not sql_type.is_plain and not sql_type.trimmed:
            return _scaled(sql_type.stored_scale)
        case t.TimestampTz():
            return partial(format_timestamptz, zone=zone)
    plain = _FORMAT.get(type(sql_type))
    is_plain = plain is not None and not isinstance(sql_type, t.Coded)
    return plain if plain and is_plain else partial(format_value, sql_type=sql_type, zone=zone)


def _delimiter(element: t.SqlType) -> str:
    """What stands between the items of an array of the type."""
    return element.delimiter if isinstance(element, t.Coded) else ","


def parse_value(text: str, sql_type: t.SqlType, zone: dt.tzinfo = dt.UTC) -> Any:
    """The value that `text` stands for."""
    match sql_type:
        case t.Coded():
            return sql_type.parse(text, zone)
        case t.SmallInt() | t.Integer() | t.BigInt():
            return _parse_integer(text, sql_type)
        case t.Numeric():
            return _parse_numeric(text, sql_type)
        case t.Varchar(length) if length is not None:
            return _cut(text, length, sql_type)
        case t.Char(int(length)):
            return _cut(text, length, sql_type).ljust(length)
        case t.TimestampTz():
            return parse_timestamptz(text, zone)
        case t.Enum():
            return sql_type.label(text)
        case t.Array(element):
            return [
                None if item is None else parse_value(item, element, zone)
                for item in split_array(text, _delimiter(element))
            ]
        case t.Record(fields):
            return _parse_record(text, fields, zone)
    return _PARSE[type(sql_type)](text)


def _parse_record(text: str, fields: tuple[t.Field, ...], zone: dt.tzinfo) -> tuple[Any, ...]:
    items = split_record(text)
    if len(items) != len(fields):
        raise InvalidValue(f'record literal "{text}" has {len(items)} fields, not {len(fields)}')
    return tuple(
        None if item is None else parse_value(item, field.type, zone)
        for item, field in zip(items, fields, strict=True)
    )


def format_numeric(value: decimal.Decimal | int, sql_type: t.Numeric) -> str:
    """The text of a numeric, with the digits of its scale."""
    number = decimal.Decimal(value)
    if sql_type.is_plain:
        return format_numeral(number)
    if sql_type.trimmed:
        return format(plain_decimal(number), "f")
    unit = _unit(sql_type.stored_scale)
    if not number.same_quantum(unit):
        number = number.quantize(unit, context=_WIDE)
    return format(number, "f")


def _scaled(scale: int) -> Callable[[decimal.Decimal | int], str]:
    """`format_numeric` for numbers that are stored with so many digits after the point."""
    unit = _unit(scale)

    def show(value: decimal.Decimal | int) -> str:
        number = value if type(value) is decimal.Decimal else decimal.Decimal(value)
        if not number.same_quantum(unit):
            return format(number.quantize(unit, context=_WIDE), "f")
        # Python writes an exponent only where there are more digits than that.
        return str(number) if scale <= _NO_EXPONENT else format(number, "f")

    return show


@cache
def _unit(scale: int) -> decimal.Decimal:
    return decimal.Decimal(1).scaleb(-scale)


def _parse_integer(text: str, sql_type: t.SqlType) -> int:
    word = text.strip(_SPACES)
    limit = 1 << (_BITS[type(sql_type)] - 1)
    if not word.isascii() or not _INTEGER.fullmatch(word):
        head = _LEADING.match(word)
        if head is not None and int(head[1][:100]) > limit // 10:
            # PostgreSQL sees that before it sees what follows the digits.
            raise NumberTooLarge(f'value "{text}" is out of range for type {sql_type}')
        raise _invalid(text, sql_type)
    # Longer texts than this cannot be in range, and Python refuses to convert very long ones.
    decimal_ = word.lstrip("+-").replace("_", "").isdigit()
    number = int(word, 10 if decimal_ else 0) if len(word) < 1000 else 1 << 64
    if not -limit <= number < limit:
        raise NumberTooLarge(f'value "{text}" is out of range for type {sql_type}')
    return number


def _parse_numeric(text: str, sql_type: t.Numeric) -> decimal.Decimal:
    word = text.strip(_SPACES)
    if _NUMERIC.fullmatch(word):
        return fit_numeric(decimal.Decimal(_far(word.replace("_", ""))), sql_type)
    if word.isascii() and _INTEGER.fullmatch(word) and len(word) < 1000:
        return fit_numeric(decimal.Decimal(int(word, 0)), sql_type)  # in another base
    odd = _ODD_NUMERIC.get(word.lower())
    if odd is None:
        raise _invalid(text, sql_type)
    return fit_numeric(decimal.Decimal(odd), sql_type)


def _far(text: str) -> str:
    """The text; an exponent that no context takes is one that no numeric has."""
    digits, mark, exponent = text.lower().partition("e")
    return f"{digits}e{'-' * ('-' in exponent)}9999999" if mark and len(exponent) > 9 else text


def fit_numeric(number: decimal.Decimal, sql_type: t.Numeric) -> decimal.Decimal:
    """The number at the scale of the type, rounded half away from zero; plain keeps its own."""
    if sql_type.is_plain:
        return numeral(number)
    if number.is_nan():
        raise v.NotHeld(f"NaN of type {sql_type} is not supported", hint=NO_PRECISION)
    if not number.is_finite():
        raise InvalidValue(
            f"numeric field overflow: {sql_type} cannot hold {format_numeral(number)}",
            hint=NO_PRECISION,
        )
    # Far exponents first: written out, they would fill the memory.
    if number and number.adjusted() > t.NUMERIC_PRECISION_MAX:
        raise InvalidValue(f"numeric field overflow: {number:.6g} does not fit {sql_type}")
    if number and sql_type.trimmed and scale_of(plain_decimal(number)) > sql_type.stored_scale:
        raise InvalidValue(
            f"numeric field overflow: {number:.6g} has more than {sql_type.scale} digits after "
            "the point",
            hint="The column was made before numeric had more: make a new one and copy the rows.",
        )
    if not number or number.adjusted() < -2 * t.NUMERIC_PRECISION_MAX:
        number = decimal.Decimal(0)
    number = number.quantize(decimal.Decimal(1).scaleb(-sql_type.stored_scale), context=_WIDE)
    if number and number.adjusted() >= sql_type.stored_precision - sql_type.stored_scale:
        raise InvalidValue(f"numeric field overflow: {number:f} does not fit {sql_type}")
    number = number if number else abs(number)  # there is no negative zero
    return plain_decimal(number) if sql_type.trimmed else number


def _cut(text: str, length: int, sql_type: t.SqlType) -> str:
    """SQL lets blanks, and only blanks, fall off the end."""
    if text[length:].strip(" "):
        raise InvalidValue(f"value too long for type {sql_type}: {len(text)} characters")
    return _parse_text(text[:length])


def _invalid(text: str, sql_type: t.SqlType) -> InvalidValue:
    return InvalidValue(f'invalid input syntax for type {sql_type}: "{text[:100]}"')


def _parse_boolean(text: str) -> bool:
    word = text.strip().lower()
    for value, names in ((True, ("true", "yes")), (False, ("false", "no"))):
        if word and any(name.startswith(word) for name in names):
            return value
    if word in ("on", "1"):
        return True
    if word in ("of", "off", "0"):
        return False
    raise _invalid(text, t.Boolean())


_ESCAPED_BYTE = re.compile(rb"\\(\\|[0-3][0-7]{2})?")


def _parse_bytea(text: str) -> bytes:
    if text.startswith("\\x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            raise InvalidBytes(f'invalid hexadecimal data: "{text[:100]}"') from None

    def unescape(match: re.Match[bytes]) -> bytes:
        if match[1] is None:
            raise _invalid(text, t.Bytea())
        return match[1] if match[1] == b"\\" else bytes([int(match[1], 8)])

    return _ESCAPED_BYTE.sub(unescape, text.encode())


def _parse_uuid(text: str) -> uuid.UUID:
    match = _UUID.fullmatch(text)
    if match is None:
        raise _invalid(text, t.Uuid())
    return uuid.UUID((match[1] or match[2]).replace("-", ""))


class NotInEncoding(InvalidValue, id="not_in_encoding", sqlstate="22021"):
    """Bytes that are no text of the encoding, or a NUL."""


def not_utf8(error: UnicodeDecodeError) -> NotInEncoding:
    """The error of bytes that are not UTF-8."""
    byte = error.object[error.start]
    return NotInEncoding(f'invalid byte sequence for encoding "UTF8": 0x{byte:02x}')


def _parse_text(text: str) -> str:
    if "\0" in text:
        raise NotInEncoding('invalid byte sequence for encoding "UTF8": 0x00')
    return text


_FORMAT: dict[type[t.SqlType], Callable[[Any], str]] = {
    t.Boolean: lambda value: "t" if value else "f",
    t.SmallInt: str,
    t.Integer: str,
    t.BigInt: str,
    t.Real: format_real,
    t.Double: format_double,
    t.Text: str,
    t.Varchar: str,
    t.Char: str,
    t.Bytea: lambda value: "\\x" + bytes(value).hex(),
    t.Date: format_date,
    t.Time: format_time,
    t.Timestamp: format_timestamp,
    t.Interval: lambda value: format_interval(v.interval_of(value)),
    t.Uuid: str,
    t.Jsonb: canonical,
    t.Json: str,
    t.Enum: str,
}

_PARSE: dict[type[t.SqlType], Callable[[str], Any]] = {
    t.Boolean: _parse_boolean,
    t.Real: parse_real,
    t.Double: parse_double,
    t.Text: _parse_text,
    t.Varchar: _parse_text,
    t.Char: _parse_text,
    t.Bytea: _parse_bytea,
    t.Date: parse_date,
    t.Time: parse_time,
    t.Timestamp: parse_timestamp,
    t.Interval: parse_interval,
    t.Uuid: _parse_uuid,
    t.Jsonb: canonical,
    t.Json: check,
}
