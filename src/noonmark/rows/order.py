"""Equality and order of SQL values, as PostgreSQL has them.

Law: for values a, b of type t, neither NULL, ``sort_key(t)(a) < sort_key(t)(b)`` iff a < b in SQL,
and the keys are equal iff a = b. NaN equals itself and is above every number; text compares by code
point (collation C); blanks at the end of a character(n) do not matter; a month is 30 days and a day
24 hours; inside arrays and records NULL is above all.

Law (total): ``total_key(t)`` orders as `sort_key` does and also tells apart values that are equal
but not the same, such as 1 day and 24 hours. Both keys can be hashed.

jsonb has equality and no order here: PostgreSQL's order of documents serves nobody.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.label import place_of
from noonmark.rows.numeral import Numeral, encode, key_form, numeral, scale_of

Key = Callable[[Any], Any]


def is_ordered(sql_type: t.SqlType) -> bool:
    """Whether ORDER BY, <, min and max take the type."""
    match sql_type:
        case t.Jsonb() | t.Json():
            return False
        case t.Coded():
            return sql_type.ordered
        case t.Array(element):
            return is_ordered(element)
        case t.Record(fields):
            return all(is_ordered(field.type) for field in fields)
    return True


def has_equality(sql_type: t.SqlType) -> bool:
    """Whether =, DISTINCT, GROUP BY and keys take the type: json and some of bytes have none."""
    match sql_type:
        case t.Coded():
            return sql_type.equality
        case t.Array(element):
            return has_equality(element)
        case t.Record(fields):
            return all(has_equality(field.type) for field in fields)
    return not isinstance(sql_type, t.Json)


def sort_key(sql_type: t.SqlType) -> Key:
    """The key of a value that is not NULL."""
    match sql_type:
        case t.Array(element):
            inner = null_last(sort_key(element))
            return lambda value: tuple(inner(item) for item in value)
        case t.Record(fields):
            keys = [null_last(sort_key(field.type)) for field in fields]
            return lambda value: tuple(key(x) for key, x in zip(keys, value, strict=True))
        case t.Coded():
            return _same if sql_type.one_form else sql_type.key
    return _KEYS.get(type(sql_type), _same)


def total_key(sql_type: t.SqlType) -> Key:
    """The key of a value that is not NULL, equal only for the same value."""
    key = sort_key(sql_type)
    if isinstance(sql_type, t.Interval):
        return lambda value: (key(value), value.months, value.days, value.micros)
    if isinstance(sql_type, t.Jsonb | t.Coded):
        return lambda value: (key(value), value)
    if isinstance(sql_type, t.Numeric) and sql_type.is_plain:
        return lambda value: (key(value), scale_of(value))
    if isinstance(sql_type, t.Real | t.Double):
        return lambda value: (key(value), math.copysign(1.0, value))
    if isinstance(sql_type, t.Array):
        inner = null_last(total_key(sql_type.element))
        return lambda value: (key(value), tuple(map(inner, value)))
    if isinstance(sql_type, t.Record):
        parts = [null_last(total_key(field.type)) for field in sql_type.fields]
        return lambda value: (key(value), tuple(of(x) for of, x in zip(parts, value, strict=True)))
    return key


def key_bytes(sql_type: t.SqlType) -> Callable[[Any], bytes]:
    """The canonical form of a value that is not NULL: the same bytes iff equal in SQL.

    It does not depend on the length or the digits of the type: 1.0 and 1.00 have one, and so have
    blanks at the end of a character(2) and of a character(4). Its order means nothing.
    """
    match sql_type:
        case t.Numeric():
            return lambda value: key_form(encode(numeral(value)))
        case t.Array(element):
            inner = key_bytes(element)
            return lambda value: repr([x if x is None else inner(x) for x in value]).encode()
        case t.Record(fields):
            forms = [key_bytes(field.type) for field in fields]
            return lambda value: repr(
                [x if x is None else form(x) for form, x in zip(forms, value, strict=True)]
            ).encode()
    key = sort_key(sql_type)
    return lambda value: repr(key(value)).encode()


def null_last(key: Key) -> Key:
    """The key of a value that may be NULL, which comes last."""
    return lambda value: (1, None) if value is None else (0, key(value))


def row_key(types: tuple[t.SqlType, ...], of: Callable[[t.SqlType], Key] = sort_key) -> Key:
    """The key of a row: column by column, NULL last."""
    keys = [null_last(of(each)) for each in types]
    return lambda row: tuple(key(value) for key, value in zip(keys, row, strict=True))


def _same(value: Any) -> Any:
    return value


def _float_key(value: float) -> tuple[bool, float]:
    # A negative zero plus zero is zero, and a float of the plain kind.
    return (value != value, 0.0 if value != value else value + 0.0)  # noqa: PLR0124 - NaN


class _NotANumber:
    """NaN of numeric: equal to itself and above every number."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NotANumber)

    def __hash__(self) -> int:
        return 0

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return isinstance(other, _NotANumber)

    def __gt__(self, other: object) -> bool:
        return not isinstance(other, _NotANumber)

    def __ge__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        return "NaN"


_NAN = _NotANumber()


def _numeric_key(value: Decimal) -> Any:
    if type(value) is not Numeral:
        return value
    return _NAN if value.is_nan() else Decimal(value)


def equal_form(value: Any) -> Any:
    """What values that Python tells apart by more than SQL does have in common: numerals."""
    return _numeric_key(value) if type(value) is Numeral else value


def interval_micros(value: v.Interval) -> int:
    """The length of an interval for comparisons: 30 days a month, 24 hours a day."""
    return (value.months * 30 + value.days) * v.DAY_MICROS + value.micros


def _json_key(value: str) -> str:
    parsed = json.loads(value, parse_int=Decimal, parse_float=Decimal)
    return repr(_json_numbers(parsed))


def _json_numbers(node: Any) -> Any:
    """The document with numbers that are equal made the same: 1.0 and 1."""
    if isinstance(node, Decimal):
        return _digits(node)
    if isinstance(node, list):
        return [_json_numbers(item) for item in node]
    if isinstance(node, dict):
        return {key: _json_numbers(item) for key, item in node.items()}
    return (node,) if isinstance(node, str) else node


def _digits(number: Decimal) -> str:
    """Sign, digits without trailing zeros, and exponent: equal iff the numbers are."""
    if not number:
        return "0"
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits))
    kept = text.rstrip("0")
    assert isinstance(exponent, int)
    return f"{'-' if sign else ''}{kept.lstrip('0')}e{exponent + len(text) - len(kept)}"


def _timestamp_key(value: Any) -> int:
    if getattr(value, "tzinfo", None) is None:
        return v.micros_of_timestamp(value)
    return v.micros_of_timestamptz(value)


_KEYS: dict[type[t.SqlType], Key] = {
    t.Numeric: _numeric_key,
    t.Real: _float_key,
    t.Double: _float_key,
    t.Char: lambda value: value.rstrip(" "),
    t.Date: v.days_of,
    t.Time: v.micros_of_time,
    t.Timestamp: _timestamp_key,
    t.TimestampTz: _timestamp_key,
    t.Interval: interval_micros,
    t.Uuid: lambda value: value.bytes,
    t.Enum: place_of,
    t.Jsonb: _json_key,
}
