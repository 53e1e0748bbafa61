"""Rows as JSON documents, for those who read what a sink writes.

Booleans, integers and finite floats are JSON's own; numeric is a text, because many readers would
round it; jsonb is the document itself; arrays are lists and records objects; every other value is
the text that PostgreSQL shows.

Law (read back): FORMAT JSON with the same columns reads the row that was written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from noonmark.rows import types as t
from noonmark.rows.pgtext import format_value
from noonmark.rows.schema import Column, Schema

_OWN = (t.Boolean, t.SmallInt, t.Integer, t.BigInt, t.Text, t.Varchar, t.Char)


def document(row: Sequence[Any], columns: Sequence[Column]) -> dict[str, Any]:
    """A row as an object."""
    return {
        column.name: plain(value, column.type) for column, value in zip(columns, row, strict=True)
    }


def plain(value: Any, sql_type: t.SqlType) -> Any:
    """A value as JSON has it."""
    match sql_type:
        case _ if value is None or isinstance(sql_type, _OWN):
            return value
        case t.Real() | t.Double():
            return value if math.isfinite(value) else format_value(value, sql_type)
        case t.Jsonb():
            return json.loads(value)
        case t.Array(element):
            return [plain(each, element) for each in value]
        case t.Record(fields):
            return {
                one.name: plain(each, one.type) for one, each in zip(fields, value, strict=True)
            }
    return format_value(value, sql_type)


def key_of(row: Sequence[Any], schema: Schema, key: Sequence[str]) -> tuple[Any, ...]:
    """The values of the key's columns."""
    return tuple(row[schema.index(name)] for name in key)


def to_bytes(found: Any) -> bytes:
    """The document as it is written."""
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()
