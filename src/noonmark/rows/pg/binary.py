"""Values in PostgreSQL's binary format.

Law (agreement): ``encode(v, t)`` is what PostgreSQL sends for v, and ``decode`` is its inverse.
Numbers are big-endian; dates and times count from 2000-01-01; a numeric is digits to base 10,000.
Bytes that are no value of the type raise `InvalidValue`: a decoder never guesses.
"""

from __future__ import annotations

import decimal
import math
import struct
import uuid
from collections.abc import Callable
from typing import Any

from noonmark.errors import InvalidValue, Unsupported
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.jsonb import canonical, check
from noonmark.rows.pg.oid import oid, same_wire
from noonmark.rows.pg.text import fit_numeric, format_numeric, not_utf8, parse_value

EPOCH_DAYS = 10_957
EPOCH_MICROS = EPOCH_DAYS * v.DAY_MICROS
_INT2, _INT4, _INT8 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_UINT4 = struct.Struct(">I")  # an oid has no sign
_FLOAT4, _FLOAT8 = struct.Struct(">f"), struct.Struct(">d")
_INTERVAL, _NUMERIC = struct.Struct(">qii"), struct.Struct(">hhHH")
_JSONB_VERSION = b"\x01"
_NEGATIVE = 0x4000
_ODD_SIGNS = {"NaN": 0xC000, "Infinity": 0xD000, "-Infinity": 0xF000}
#: What PostgreSQL sends for the scale of an infinity, which has none.
_INFINITE_SCALE = 0x20


def encode(value: Any, sql_type: t.SqlType) -> bytes:
    """The bytes of a value that is not NULL."""
    match sql_type:
        case t.Coded():
            return sql_type.send(value)
        case t.Numeric():
            return _encode_numeric(format_numeric(value, sql_type))
        case t.BigInt(told=told) if told:
            return _UINT4.pack(value)
        case t.Text(told=told) if told.startswith("reg"):
            # PostgreSQL sends the number: a name in its place would be read as one.
            hint = "Cast it to text or to oid, or ask for text."
            raise Unsupported(f"{told} in binary form is not supported", hint=hint)
        case t.Array(element):
            return _encode_array(value, element)
        case t.Record(fields):
            items = [
                struct.pack(">I", oid(field.type)) + _framed(item, field.type)
                for item, field in zip(value, fields, strict=True)
            ]
            return _INT4.pack(len(items)) + b"".join(items)
    return _ENCODE[type(sql_type)](value)


def decode(raw: bytes, sql_type: t.SqlType) -> Any:
    """The value that the bytes stand for."""
    try:
        match sql_type:
            case t.Coded():
                return sql_type.receive(bytes(raw))
            case t.Numeric():
                return fit_numeric(_decode_numeric(raw), sql_type)
            case t.Varchar() | t.Char():
                return parse_value(raw.decode(), sql_type)
            case t.Enum():
                return sql_type.label(raw.decode())
            case t.Array(element):
                return _decode_array(raw, element)
            case t.Record(fields):
                return _decode_record(raw, fields)
        return _DECODE[type(sql_type)](raw)
    except UnicodeDecodeError as error:
        raise not_utf8(error) from None
    except (struct.error, IndexError, ValueError) as error:
        raise InvalidValue(
            f"invalid binary data for type {sql_type}: {raw[:32].hex()}", detail=str(error)
        ) from None


def _framed(item: Any, sql_type: t.SqlType) -> bytes:
    if item is None:
        return _INT4.pack(-1)
    raw = encode(item, sql_type)
    return _INT4.pack(len(raw)) + raw


def _encode_array(items: list[Any], element: t.SqlType) -> bytes:
    head = struct.pack(">iiI", 1 if items else 0, int(None in items), oid(element))
    if not items:
        return head
    return head + struct.pack(">ii", len(items), 1) + b"".join(_framed(i, element) for i in items)


class _Reader:
    """A cursor that refuses to read past the end or to stop before it."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def take(self, count: int) -> bytes:
        end = self.at + count
        if count < 0 or end > len(self.raw):
            raise ValueError("the data ends too early")
        piece, self.at = self.raw[self.at : end], end
        return piece

    def unpack(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def framed(self, sql_type: t.SqlType) -> Any:
        (length,) = self.unpack(">i")
        return None if length == -1 else decode(self.take(length), sql_type)

    def done(self) -> None:
        if self.at != len(self.raw):
            raise ValueError("there is more data than the value has")


def _decode_array(raw: bytes, element: t.SqlType) -> list[Any]:
    reader = _Reader(raw)
    dimensions, _, element_oid = reader.unpack(">iiI")
    if not same_wire(element_oid, element):
        raise InvalidValue(f"array elements have type oid {element_oid}, not {element}")
    if dimensions == 0:
        reader.done()
        return []
    count, lower = reader.unpack(">ii")
    if dimensions != 1 or lower != 1:
        raise Unsupported("an array of more than one dimension, or one that does not start at 1")
    items = [reader.framed(element) for _ in range(count)]
    reader.done()
    return items


def _decode_record(raw: bytes, fields: tuple[t.Field, ...]) -> tuple[Any, ...]:
    reader = _Reader(raw)
    (count,) = reader.unpack(">i")
    if count != len(fields):
        raise InvalidValue(f"a record has {count} fields, not {len(fields)}")
    items = []
    for field in fields:
        (field_oid,) = reader.unpack(">I")
        if not same_wire(field_oid, field.type):
            raise InvalidValue(f"field {field.name} has type oid {field_oid}, not {field.type}")
        items.append(reader.framed(field.type))
    reader.done()
    return tuple(items)


def _one_nan(number: float) -> float:
    """NaN has many bit patterns and one meaning."""
    return math.nan if math.isnan(number) else number


def _encode_numeric(text: str) -> bytes:
    if text in _ODD_SIGNS:
        return _NUMERIC.pack(0, 0, _ODD_SIGNS[text], 0 if text == "NaN" else _INFINITE_SCALE)
    sign = _NEGATIVE if text.startswith("-") else 0
    whole, _, fraction = text.lstrip("-").partition(".")
    whole = whole.lstrip("0")
    whole = whole.zfill(-(-len(whole) // 4) * 4)
    padded = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    digits = [int((whole + padded)[at : at + 4]) for at in range(0, len(whole + padded), 4)]
    weight = len(whole) // 4 - 1
    while digits and digits[0] == 0:
        digits.pop(0)
        weight -= 1
    while digits and digits[-1] == 0:
        digits.pop()
    if not digits:
        weight, sign = 0, 0
    head = _NUMERIC.pack(len(digits), weight, sign, len(fraction))
    return head + struct.pack(f">{len(digits)}h", *digits)


def _decode_numeric(raw: bytes) -> decimal.Decimal:
    count, weight, sign, scale = _NUMERIC.unpack_from(raw)
    for text, odd in _ODD_SIGNS.items():
        if sign == odd:
            return decimal.Decimal(text)
    if sign not in (0, _NEGATIVE):
        raise ValueError(f"{sign:#x} is no sign of a numeric")
    digits = struct.unpack(f">{count}h", raw[_NUMERIC.size :])
    if any(not 0 <= digit < 10_000 for digit in digits):
        raise ValueError("a digit is not below 10000")
    text = "".join(f"{digit:04d}" for digit in digits) or "0"
    exact = decimal.Decimal(f"{'-' if sign else ''}{text}E{4 * (weight - count + 1)}")
    # PostgreSQL drops digits beyond the display scale as well.
    cut = decimal.Context(prec=200_000, rounding=decimal.ROUND_DOWN)
    return exact.quantize(decimal.Decimal(1).scaleb(-scale), context=cut)


def _encode_day(value: Any) -> bytes:
    days = v.days_of(value)
    return _INT4.pack(days if days in (v.INT32_MIN, v.INT32_MAX) else days - EPOCH_DAYS)


def _decode_day(raw: bytes) -> Any:
    (days,) = _INT4.unpack(raw)
    return v.date_of(days if days in (v.INT32_MIN, v.INT32_MAX) else days + EPOCH_DAYS)


def _encode_instant(micros: int) -> bytes:
    return _INT8.pack(micros if micros in (v.INT64_MIN, v.INT64_MAX) else micros - EPOCH_MICROS)


def _decode_instant(raw: bytes) -> int:
    micros: int = _INT8.unpack(raw)[0]
    if micros in (v.INT64_MIN, v.INT64_MAX):
        return micros
    return micros + EPOCH_MICROS if micros + EPOCH_MICROS <= v.MICROS_MAX else v.INT64_MAX + 1


def _encode_interval(value: Any) -> bytes:
    interval = v.interval_of(value)
    return _INTERVAL.pack(interval.micros, interval.days, interval.months)


def _decode_interval(raw: bytes) -> v.Interval:
    micros, days, months = _INTERVAL.unpack(raw)
    return v.Interval(months, days, micros)


def _decode_boolean(raw: bytes) -> bool:
    if raw not in (b"\0", b"\1"):
        raise ValueError("not a boolean")
    return raw == b"\1"


def _decode_text(raw: bytes) -> Any:
    return parse_value(raw.decode(), t.Text())


def _decode_jsonb(raw: bytes) -> str:
    if raw[:1] != _JSONB_VERSION:
        raise ValueError("unknown version of jsonb")
    return canonical(raw[1:].decode())


_ENCODE: dict[type[t.SqlType], Callable[[Any], bytes]] = {
    t.Boolean: lambda value: b"\1" if value else b"\0",
    t.SmallInt: _INT2.pack,
    t.Integer: _INT4.pack,
    t.BigInt: _INT8.pack,
    t.Real: lambda value: _FLOAT4.pack(_one_nan(value)),
    t.Double: lambda value: _FLOAT8.pack(_one_nan(value)),
    t.Text: str.encode,
    t.Varchar: str.encode,
    t.Char: str.encode,
    t.Bytea: bytes,
    t.Date: _encode_day,
    t.Time: lambda value: _INT8.pack(v.micros_of_time(value)),
    t.Timestamp: lambda value: _encode_instant(v.micros_of_timestamp(value)),
    t.TimestampTz: lambda value: _encode_instant(v.micros_of_timestamptz(value)),
    t.Interval: _encode_interval,
    t.Uuid: lambda value: value.bytes,
    t.Json: str.encode,
    t.Enum: str.encode,
    t.Jsonb: lambda value: _JSONB_VERSION + canonical(value).encode(),
}

_DECODE: dict[type[t.SqlType], Callable[[bytes], Any]] = {
    t.Boolean: _decode_boolean,
    t.SmallInt: lambda raw: _INT2.unpack(raw)[0],
    t.Integer: lambda raw: _INT4.unpack(raw)[0],
    t.BigInt: lambda raw: _INT8.unpack(raw)[0],
    t.Real: lambda raw: _one_nan(_FLOAT4.unpack(raw)[0]),
    t.Double: lambda raw: _one_nan(_FLOAT8.unpack(raw)[0]),
    t.Text: _decode_text,
    t.Bytea: bytes,
    t.Date: _decode_day,
    t.Time: lambda raw: v.time_of(_INT8.unpack(raw)[0]),
    t.Timestamp: lambda raw: v.timestamp_of(_decode_instant(raw)),
    t.TimestampTz: lambda raw: v.timestamptz_of(_decode_instant(raw)),
    t.Interval: _decode_interval,
    t.Uuid: lambda raw: uuid.UUID(bytes=bytes(raw)),
    t.Jsonb: _decode_jsonb,
    t.Json: lambda raw: check(_decode_text(raw)),
}
