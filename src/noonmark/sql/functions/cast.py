"""Casts: which exist, which can fail, and what they mean, as in PostgreSQL.

Law: ``cast(x, s, t)`` is the value of type t that PostgreSQL gives for x of type s, or an
`EvaluationError`. NULL is not asked. Numbers round: numerics half away from zero, floats to even.
Text of any length is cut to fit character(n) and varchar(n): an explicit cast says so.
Time zones are UTC.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from noonmark.errors import (
    DatetimeOutOfRange,
    EvaluationError,
    IntervalOutOfRange,
    InvalidArgument,
    InvalidDatetimeText,
    InvalidOffsetText,
    InvalidText,
    InvalidValue,
    NoSuchNumber,
    OutOfRange,
    Unsupported,
)
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.coded.bits import Bit, Varbit
from noonmark.rows.coded.network import Inet
from noonmark.rows.coded.ranges import NumMultirange
from noonmark.rows.identity import hashable
from noonmark.rows.jsonb import canonical
from noonmark.rows.pg.text import format_value, parse_value
from noonmark.sql.functions.coded_casts import CASTS, INFALLIBLE, address_text, bits_of_text
from noonmark.sql.functions.errors import NotHeldHere, RangeRefused, UntranslatableText
from noonmark.sql.functions.geometry.table import MADE
from noonmark.sql.functions.geometry.table import TABLE as SHAPES
from noonmark.sql.functions.jsonb import parse
from noonmark.sql.functions.number.fit import fit, quantize
from noonmark.sql.functions.time import instant as i
from noonmark.sql.functions.time.calendar import date_stamp

INTEGERS = (t.SmallInt, t.Integer, t.BigInt)
TEXTS = (t.Text, t.Varchar, t.Char)
FLOATS = (t.Real, t.Double)
NUMBERS = (*INTEGERS, t.Numeric, *FLOATS)

Meaning = Callable[[Any, t.SqlType, t.SqlType], Any]


def _to_text(value: Any, source: t.SqlType, target: t.SqlType) -> str:
    if isinstance(source, t.Boolean):
        text = "true" if value else "false"
    elif isinstance(source, Inet):
        text = address_text(value)
    elif isinstance(source, t.Char) and target != t.Char(None):
        text = value.rstrip(" ")
    else:
        text = value if isinstance(source, TEXTS) else format_value(value, source)
    length = getattr(target, "length", None)
    if length is None:
        return text
    return text[:length].ljust(length) if isinstance(target, t.Char) else text[:length]


def _from_text(value: str, source: t.SqlType, target: t.SqlType) -> Any:
    element = target.element if isinstance(target, t.Array) else None
    whole = None if element is None else _unsized(element)
    if whole is not None and whole != element:
        read = t.Array(whole)
        return cast(_from_text(value, source, read), read, target)
    try:
        return hashable(parse_value(value, target))
    except InvalidValue as error:
        raise _input_error(error, target) from None
    except Unsupported as error:
        raise NotHeldHere(error.message) from None


def _unsized(kind: t.SqlType) -> t.SqlType:
    """The type whose values are cut to be of this one."""
    match kind:
        case t.Coded():
            return kind.unsized
        case t.Varchar():
            return t.Varchar()
        case t.Char():
            return t.Char(None)
    return kind


#: What a value that cannot be read is when a query is evaluated.
_EVALUATION: dict[str, type[EvaluationError]] = {
    kind.sqlstate: kind
    for kind in (
        OutOfRange,
        DatetimeOutOfRange,
        InvalidDatetimeText,
        InvalidOffsetText,
        IntervalOutOfRange,
        InvalidArgument,
        UntranslatableText,
        NotHeldHere,
        RangeRefused,
    )
}


def _input_error(error: InvalidValue, target: t.SqlType) -> Exception:
    """PostgreSQL tells a text that is no number from a number that is too large."""
    message = error.message
    kind = _EVALUATION.get(error.sqlstate)
    if kind is not None:
        return kind(message, detail=error.detail)
    if "out of range" in message or "overflow" in message:
        target = getattr(target, "element", target)
        is_time = isinstance(target, t.Date | t.Time | t.Timestamp | t.TimestampTz | t.Interval)
        return DatetimeOutOfRange(message) if is_time else OutOfRange(message)
    return InvalidText(message, detail=error.detail)


def _number(value: Any, source: t.SqlType, target: t.SqlType) -> Any:
    if isinstance(source, FLOATS):
        return _from_float(value, source, target)
    if isinstance(target, FLOATS):
        return fit(_float(value, target), target)
    if isinstance(target, INTEGERS):
        whole = value if isinstance(source, INTEGERS) else _whole(value, target)
        return fit(whole, target)
    if isinstance(source, t.Numeric) and target == t.Numeric():
        return fit(value, target)
    return fit(Decimal(value), target)


def _float(value: Any, target: t.SqlType) -> float:
    """The float nearest to a number, which has one unless it is far too large or too small."""
    made = float(value)
    if not isinstance(value, Decimal) or not value.is_finite():
        return made
    if math.isinf(made) or (value and not made):
        shown = format_value(value, t.Numeric())
        raise OutOfRange(f'"{shown[:100]}" is out of range for type {target}')
    return made


def _whole(value: Decimal, target: t.SqlType) -> int:
    if not value.is_finite():
        shown = "NaN" if value.is_nan() else "infinity"
        raise NoSuchNumber(f"cannot convert {shown} to {target}")
    if value.adjusted() > 20:
        raise OutOfRange(f"{target} out of range")
    return int(quantize(Decimal(value), 0))


def _from_float(value: float, source: t.SqlType, target: t.SqlType) -> Any:
    if isinstance(target, FLOATS):
        return fit(value, target)
    if isinstance(target, t.Numeric):
        digits = 6 if isinstance(source, t.Real) else 15
        return fit(Decimal(f"{value:.{digits}g}"), target)
    if math.isnan(value) or math.isinf(value):
        raise OutOfRange(f"{target} out of range")
    return fit(round(value), target)


def _boolean_number(value: bool, _: t.SqlType, __: t.SqlType) -> int:
    return int(value)


def _number_boolean(value: int, _: t.SqlType, __: t.SqlType) -> bool:
    return value != 0


def _date_timestamp(value: i.Date, _: t.SqlType, target: t.SqlType) -> i.Stamp:
    return _to_zone(date_stamp(value), target)


def _to_zone(stamp: i.Stamp, target: t.SqlType) -> i.Stamp:
    if isinstance(stamp, v.FarTimestamp):
        return stamp
    return stamp.replace(tzinfo=dt.UTC if isinstance(target, t.TimestampTz) else None)


def _timestamps(value: i.Stamp, _: t.SqlType, target: t.SqlType) -> i.Stamp:
    return _to_zone(value, target)


def _micros(value: i.Stamp) -> int:
    return v.micros_of_timestamp(_to_zone(value, t.Timestamp()))


def _timestamp_date(value: i.Stamp, _: t.SqlType, __: t.SqlType) -> i.Date:
    if i.is_infinite(value):
        up = value == v.TIMESTAMP_INFINITY
        return v.DATE_INFINITY if up else v.DATE_NEG_INFINITY
    return i.date(_micros(value) // i.DAY)


def _timestamp_time(value: i.Stamp, _: t.SqlType, __: t.SqlType) -> Any:
    return None if i.is_infinite(value) else v.time_of(_micros(value) % i.DAY)


def _time_interval(value: Any, _: t.SqlType, __: t.SqlType) -> v.Interval:
    return v.Interval(0, 0, v.micros_of_time(value))


def _interval_time(value: v.Interval, _: t.SqlType, __: t.SqlType) -> Any:
    if i.is_infinite(value):
        raise DatetimeOutOfRange("cannot convert infinite interval to time")
    return v.time_of(value.micros % i.DAY)


def _jsonb_scalar(value: str, _: t.SqlType, target: t.SqlType) -> Any:
    data = parse(value)
    if data is None:
        return None
    wanted = bool if isinstance(target, t.Boolean) else Decimal
    if not isinstance(data, wanted):
        raise InvalidArgument(f"cannot cast jsonb value to type {target}")
    return data if wanted is bool else _number(data, t.Numeric(), target)


_BYTES = {t.SmallInt: 2, t.Integer: 4, t.BigInt: 8}


def _number_bytes(value: int, source: t.SqlType, _: t.SqlType) -> bytes:
    return value.to_bytes(_BYTES[type(source)], "big", signed=True)


def _bytes_number(value: bytes, _: t.SqlType, target: t.SqlType) -> int:
    """As many bytes as the type has, or fewer: the missing ones are zero."""
    width = _BYTES[type(target)]
    if len(value) > width:
        raise OutOfRange(f"{target} out of range")
    return int.from_bytes(value.rjust(width, b"\0"), "big", signed=True)


def _reshaped(kind: type[t.SqlType], made: type[t.SqlType]) -> Meaning:
    """A shape as another one, as the function of that name makes it."""
    own = next(each for each in SHAPES if each.id == f"{made.spelling}({kind.spelling})")
    return lambda value, *_: own.meaning(value)


def _find(source: t.SqlType, target: t.SqlType) -> Meaning | None:
    """The cast between two types that are neither arrays nor records."""
    a, b = type(source), type(target)
    if b in TEXTS:
        return _to_text
    if a in TEXTS:
        return bits_of_text if b in (Bit, Varbit) else _from_text
    if a in NUMBERS and b in NUMBERS:
        return _number
    return _PAIRS.get((a, b))


_PAIRS: dict[tuple[type[t.SqlType], type[t.SqlType]], Meaning] = {
    (t.Boolean, t.Integer): _boolean_number,
    (t.Integer, t.Boolean): _number_boolean,
    (t.Date, t.Timestamp): _date_timestamp,
    (t.Date, t.TimestampTz): _date_timestamp,
    (t.Timestamp, t.TimestampTz): _timestamps,
    (t.TimestampTz, t.Timestamp): _timestamps,
    (t.Timestamp, t.Date): _timestamp_date,
    (t.TimestampTz, t.Date): _timestamp_date,
    (t.Timestamp, t.Time): _timestamp_time,
    (t.TimestampTz, t.Time): _timestamp_time,
    (t.Time, t.Interval): _time_interval,
    (t.Interval, t.Time): _interval_time,
    **{(number, t.Bytea): _number_bytes for number in _BYTES},
    **{(t.Bytea, number): _bytes_number for number in _BYTES},
    (t.Jsonb, t.Json): lambda value, *_: value,
    (t.Json, t.Jsonb): lambda value, *_: canonical(value),
    **{(t.Jsonb, target): _jsonb_scalar for target in (t.Boolean, *NUMBERS)},
    **CASTS,
    **{(kind, made): _reshaped(kind, made) for kind, made, _ in MADE},
}


#: Casts that gave something else once (`Signature.edition`); of arrays, those of their elements.
EDITIONS: dict[tuple[type[t.SqlType], type[t.SqlType]], int] = {(t.Text, NumMultirange): 2}


def cast_edition(source: t.SqlType, target: t.SqlType) -> int:
    """The edition of a cast: raised by whoever changes what it gives for some value."""
    while isinstance(source, t.Array) and isinstance(target, t.Array):
        source, target = source.element, target.element
    return EDITIONS.get((type(source), type(target)), 1)


def cast_exists(source: t.SqlType, target: t.SqlType) -> bool:
    """Whether an explicit cast may be written."""
    sized = (*TEXTS, t.Numeric, Bit, Varbit)
    if source == target or (type(source) is type(target) and type(target) in sized):
        return True
    if isinstance(source, t.Array) and isinstance(target, t.Array):
        return cast_exists(source.element, target.element)
    if isinstance(source, t.Record) or isinstance(target, t.Record):
        return type(target) in TEXTS
    return _find(source, target) is not None


_SAFE = {
    (t.SmallInt, t.Integer),
    (t.SmallInt, t.BigInt),
    (t.Integer, t.BigInt),
    *((number, t.Double) for number in (*INTEGERS, *FLOATS)),
    *((number, t.Real) for number in INTEGERS),
    (t.Date, t.TimestampTz),
    (t.Timestamp, t.TimestampTz),
    (t.TimestampTz, t.Timestamp),
    (t.TimestampTz, t.Date),
    (t.TimestampTz, t.Time),
    (t.Timestamp, t.Date),
    (t.Timestamp, t.Time),
    (t.Time, t.Interval),
    (t.Boolean, t.Integer),
    (t.Integer, t.Boolean),
    *INFALLIBLE,
}


def cast_fails(source: t.SqlType, target: t.SqlType) -> bool:
    """Whether some value of the source has no form in the target."""
    if source == target or isinstance(target, TEXTS) or (type(source), type(target)) in _SAFE:
        return False
    if isinstance(source, t.Array) and isinstance(target, t.Array):
        return cast_fails(source.element, target.element)
    if isinstance(target, t.Numeric):
        return not _holds(target, source)
    # Only plain numeric has numbers that no double precision is near to.
    fixed = isinstance(source, t.Numeric) and not source.is_plain
    return not (fixed and isinstance(target, t.Double))


def _holds(target: t.Numeric, source: t.SqlType) -> bool:
    """Whether every value of an integer or numeric type has its whole digits in the target."""
    if target.is_plain:
        return isinstance(source, (*INTEGERS, *FLOATS, t.Numeric))
    if isinstance(source, t.Numeric) and source.is_plain:
        return False
    whole = target.stored_precision - target.stored_scale
    if isinstance(source, t.Numeric):
        return source.stored_precision - source.stored_scale < whole or (
            source.stored_scale <= target.stored_scale
            and source.stored_precision - source.stored_scale <= whole
        )
    return {t.SmallInt: 5, t.Integer: 10, t.BigInt: 19}.get(type(source), 99) <= whole


def cast(value: Any, source: t.SqlType, target: t.SqlType) -> Any:
    """The value, which is not NULL, as one of the target type."""
    if source == target:
        return value
    if isinstance(source, t.Array) and isinstance(target, t.Array):
        return tuple(
            None if item is None else cast(item, source.element, target.element) for item in value
        )
    if isinstance(target, TEXTS) and not isinstance(source, TEXTS):
        return _to_text(value, source, target)
    found = _find(source, target)
    assert found is not None, f"no cast from {source} to {target}"
    return found(value, source, target)
