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
from functools import cached_property
from typing import Any, Protocol

import msgspec

from noonmark.rows import types as t
from noonmark.rows.pg.text import format_value
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
            return float(value) if math.isfinite(value) else format_value(value, sql_type)
        case t.Jsonb() | t.Json():
            return msgspec.Raw(value.encode())  # its numbers have digits that floats have not
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

    @cached_property
    def _key_has_documents(self) -> bool:
        return any(_has_documents(column.type) for column in key_columns(self.schema, self.keys))

    def key(self, values: Sequence[Any]) -> bytes:
        """See `Encoding.key`: an object of the key's columns."""
        found = document(values, key_columns(self.schema, self.keys))
        if self._key_has_documents:
            return _to_bytes(found)
        # Floats as Python writes them: keys stay what they are in topics that have them.
        return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()

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


def _has_documents(sql_type: t.SqlType) -> bool:
    match sql_type:
        case t.Array(element):
            return _has_documents(element)
        case t.Record(fields):
            return any(_has_documents(field.type) for field in fields)
    return isinstance(sql_type, t.Jsonb | t.Json)


def _to_bytes(found: Any) -> bytes:
    return msgspec.json.encode(found)
