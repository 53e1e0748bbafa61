"""pg_column_size: how many bytes a value takes in PostgreSQL's form, uncompressed, by itself.

Types of one length have that. Others have a header of four bytes; numerics, documents and arrays
are laid out as PostgreSQL does, and what is left counts as it is sent. What a column takes here is
another number: values are stored together and compressed (`pg_relation_size`).
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from noonmark.rows import types as t
from noonmark.rows.pg.binary import encode
from noonmark.rows.pg.oid import type_size
from noonmark.sql.functions.function import Any_, Function

_HEADER, _ENTRY, _ARRAY, _TUPLE = 4, 4, 24, 24
#: Of a numeric: its first words in the binary form, and in the short and the long form of memory.
_SENT, _SHORT, _LONG = 8, 2, 4
_SHORT_WEIGHT, _SHORT_SCALE = 64, 63


def _aligned(at: int, to: int) -> int:
    return -(-at // to) * to


def _numeric(value: Decimal, kind: t.SqlType) -> int:
    raw = encode(value, kind)
    weight, scale = int.from_bytes(raw[2:4], "big", signed=True), int.from_bytes(raw[6:8], "big")
    is_special = raw[4] & 0x80
    fits = -_SHORT_WEIGHT <= weight < _SHORT_WEIGHT and scale <= _SHORT_SCALE
    return _HEADER + (_SHORT if fits or is_special else _LONG) + len(raw) - _SENT


def _document(node: Any, at: int) -> int:
    """Where a part of a jsonb ends that begins there."""
    if isinstance(node, str):
        return at + len(node.encode())
    if isinstance(node, Decimal):
        return _aligned(at, 4) + _numeric(node, t.Numeric())
    if isinstance(node, list):
        at = _aligned(at, 4) + _ENTRY * (1 + len(node))
        for each in node:
            at = _document(each, at)
    elif isinstance(node, dict):
        at = _aligned(at, 4) + _ENTRY * (1 + 2 * len(node)) + sum(len(k.encode()) for k in node)
        for each in node.values():
            at = _document(each, at)
    return at


def _array(items: tuple[Any, ...], element: t.SqlType) -> int:
    if not items:
        return _ARRAY - 8
    at = _ARRAY
    if None in items:
        at = _aligned(at + (len(items) + 7) // 8, 8)
    width = type_size(element)
    unit = width if width in (1, 2, 4, 8) else 1 if width > 0 else 4
    for each in items:
        if each is not None:
            at = _aligned(at, unit) + size_of(each, element)
    return _aligned(at, unit)


def size_of(value: Any, kind: t.SqlType) -> int:
    """The bytes of a value that is not NULL."""
    width = type_size(kind)
    if width > 0:
        return width
    match kind:
        case t.Numeric():
            return _numeric(value, kind)
        case t.Jsonb():
            node = json.loads(value, parse_int=Decimal, parse_float=Decimal)
            return _document(node if isinstance(node, list | dict) else [node], _HEADER)
        case t.Array(element):
            return _array(value, element)
        case t.Record(fields):
            pairs = zip(value, fields, strict=True)
            return _TUPLE + sum(size_of(x, field.type) for x, field in pairs if x is not None)
    return _HEADER + len(encode(value, kind))


TABLE = (
    Function(
        "pg_column_size",
        (Any_.ANY,),
        t.Integer(),
        lambda types, value: size_of(value, types[0]),
        typed=True,
    ),
)
