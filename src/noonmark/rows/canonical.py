"""One value for all that are equal in SQL: what a key is shown as outside.

Law: for values a, b of one type, neither NULL, ``canonical(t)(a)`` is equal to a in SQL, and
``canonical(t)(a)`` is stored as the same bits as ``canonical(t)(b)`` iff a = b in SQL.

Of numbers it is the one with the fewest digits, of intervals the one with the most months and then
the most days.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from noonmark.rows import jsonb
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.identity import one_float
from noonmark.rows.numeral import equal_range
from noonmark.rows.order import interval_micros

Canonical = Callable[[Any], Any]


def canonical(sql_type: t.SqlType) -> Canonical:
    """What makes the one of a value that is not NULL."""
    match sql_type:
        case t.Real() | t.Double():
            return lambda value: one_float(value + 0.0)  # -0 plus 0 is 0
        case t.Numeric() if sql_type.is_plain:
            return lambda value: equal_range(value)[0]
        case t.Interval():
            return _interval
        case t.Coded():
            return sql_type.plainest
        case t.Jsonb():
            return _document
        case t.Array(element):
            inner = or_null(canonical(element))
            return lambda value: tuple(map(inner, value))
        case t.Record(fields):
            parts = [or_null(canonical(field.type)) for field in fields]
            return lambda value: tuple(of(x) for of, x in zip(parts, value, strict=True))
    return lambda value: value


def or_null(of: Canonical) -> Canonical:
    """The same for a value that may be NULL, which is itself."""
    return lambda value: None if value is None else of(value)


def _interval(value: v.Interval) -> v.Interval:
    months, rest = _whole(interval_micros(value), 30 * v.DAY_MICROS)
    days, rest = _whole(rest, v.DAY_MICROS)
    return v.Interval(months, days, rest)


def _whole(micros: int, unit: int) -> tuple[int, int]:
    """How many units there are, as far as a field can hold them, and the rest."""
    count = abs(micros) // unit * (1 if micros >= 0 else -1)
    count = max(v.INT32_MIN, min(v.INT32_MAX, count))
    return count, micros - count * unit


def _document(value: str) -> str:
    tree = json.loads(value, parse_int=Decimal, parse_float=Decimal)
    return jsonb.canonical([_short(tree)])[1:-1]  # a bare string would be taken for text of JSON


def _short(node: Any) -> Any:
    """The document with as few digits as each number can have."""
    if isinstance(node, Decimal):
        return equal_range(node)[0]
    if isinstance(node, list):
        return list(map(_short, node))
    return {key: _short(item) for key, item in node.items()} if isinstance(node, dict) else node
