"""Rows as bytes, for those who read what a sink writes: what an encoding is, and JSON.

Booleans, integers and finite floats are JSON's own; numeric is a text, because many readers would
round it; jsonb is the document itself; arrays are lists and records objects; every other value is
the text that PostgreSQL shows.

Law (read back): FORMAT JSON with the same columns reads the row that was written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

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


class Encoding(Protocol):
    """How keys, rows and changes of one sink become bytes. Pure."""

    def key(self, values: Sequence[Any]) -> bytes:
        """The values of the key's columns."""

    def value(self, row: Sequence[Any]) -> bytes:
        """A row."""

    def change(self, old: Sequence[Any] | None, new: Sequence[Any] | None, op: str) -> bytes:
        """What was and what is; `op` is c, u or d."""


@dataclass(frozen=True)
class JsonEncoding:
    """FORMAT JSON."""

    schema: Schema
    keys: tuple[str, ...] = ()

    def key(self, values: Sequence[Any]) -> bytes:
        """See `Encoding.key`: an object of the key's columns."""
        return _to_bytes(document(values, key_columns(self.schema, self.keys)))

    def value(self, row: Sequence[Any]) -> bytes:
        """See `Encoding.value`: an object."""
        return _to_bytes(document(row, self.schema.columns))

    def change(self, old: Sequence[Any] | None, new: Sequence[Any] | None, op: str) -> bytes:
        """See `Encoding.change`: an object of `before`, `after` and `op`."""
        shown = [None if row is None else document(row, self.schema.columns) for row in (old, new)]
        return _to_bytes({"before": shown[0], "after": shown[1], "op": op})


def key_columns(schema: Schema, key: Sequence[str]) -> list[Column]:
    """The columns of the key."""
    return [schema[name] for name in key]


def key_of(row: Sequence[Any], schema: Schema, key: Sequence[str]) -> tuple[Any, ...]:
    """The values of the key's columns."""
    return tuple(row[schema.index(name)] for name in key)


def _to_bytes(found: Any) -> bytes:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()
