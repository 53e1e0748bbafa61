"""Rows as Avro, behind Confluent's header, for those who read what a sink writes.

    boolean, integers, floats, text, bytea, arrays and records are Avro's own
    numeric(p,s)                decimal of these digits
    numeric                     string, with the digits that each value has
    date, time                  date, time-micros
    timestamp, timestamptz      local-timestamp-micros, timestamp-micros
    uuid                        string with logical type uuid
    anything else               string: the text that PostgreSQL shows; jsonb its document

A column that may be NULL is a union with null. Under DEBEZIUM the value is an envelope of `before`,
`after` and `op`.

Law (read back): FORMAT AVRO with the schema that was registered reads the row that was written, if
its times lie between the years 1 and 9999: others are written, and few can read them.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import fastavro

from noonmark.errors import InvalidValue
from noonmark.rows import types as t
from noonmark.rows.pg.text import format_value
from noonmark.rows.schema import Column, Schema
from noonmark.rows.value import DAY_MICROS, EndOfDay, FarDate, FarTimestamp
from noonmark.sink.encode import key_columns

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PLAIN: dict[type[t.SqlType], Any] = {
    t.Boolean: "boolean",
    t.SmallInt: "int",
    t.Integer: "int",
    t.BigInt: "long",
    t.Real: "float",
    t.Double: "double",
    t.Bytea: "bytes",
    t.Date: {"type": "int", "logicalType": "date"},
    t.Time: {"type": "long", "logicalType": "time-micros"},
    t.Timestamp: {"type": "long", "logicalType": "local-timestamp-micros"},
    t.TimestampTz: {"type": "long", "logicalType": "timestamp-micros"},
    t.Uuid: {"type": "string", "logicalType": "uuid"},
}
_TEXTS = (t.Text, t.Varchar, t.Char, t.Numeric, t.Jsonb, t.Json)


def record_schema(columns: Sequence[Column], name: str) -> dict[str, Any]:
    """The Avro schema of rows.

    Raises:
        InvalidValue: a column has a name that Avro does not take.
    """
    fields = []
    for column in columns:
        if not _NAME.match(column.name):
            raise InvalidValue(
                f'column "{column.name}" cannot be a field of Avro',
                detail="Names are letters, digits and underscores, and begin with no digit.",
                hint="Give it another name in a view, or use FORMAT JSON.",
            )
        kind = _type(column.type, f"{name}_{column.name}")
        fields.append({"name": column.name, "type": ["null", kind] if column.nullable else kind})
    return {"type": "record", "name": name, "fields": fields}


def envelope_schema(columns: Sequence[Column]) -> dict[str, Any]:
    """The Avro schema of changes: the row that was, and the row that is."""
    row = record_schema(columns, "row")
    fields = [
        {"name": "before", "type": ["null", row]},
        {"name": "after", "type": ["null", "row"]},
        {"name": "op", "type": "string"},
    ]
    return {"type": "record", "name": "envelope", "fields": fields}


def _type(sql_type: t.SqlType, path: str) -> Any:
    match sql_type:
        case t.Numeric(precision=None):
            return "string"
        case t.Numeric():
            digits = {"precision": sql_type.stored_precision, "scale": sql_type.stored_scale}
            return {"type": "bytes", "logicalType": "decimal", **digits}
        case t.Array(element):
            return {"type": "array", "items": ["null", _type(element, path)]}
        case t.Record(fields):
            columns = [Column(each.name, each.type) for each in fields]
            return record_schema(columns, path)
    return _PLAIN.get(type(sql_type), "string")


def _value(value: Any, sql_type: t.SqlType) -> Any:
    match sql_type:
        case _ if value is None:
            return None
        case t.Array(element):
            return [_value(each, element) for each in value]
        case t.Record(fields):
            pairs = zip(fields, value, strict=True)
            return {one.name: _value(each, one.type) for one, each in pairs}
    if isinstance(value, FarDate):
        return value.days
    if isinstance(value, FarTimestamp):
        return value.micros
    if isinstance(value, EndOfDay):
        return DAY_MICROS
    own = type(sql_type) in _PLAIN or (isinstance(sql_type, _TEXTS) and not t.is_plain(sql_type))
    return value if own else format_value(value, sql_type)


@dataclass(frozen=True)
class AvroEncoding:
    """See `noonmark.sink.encode.Encoding`; the numbers are those of the registered schemas."""

    schema: Schema
    keys: tuple[str, ...]
    is_debezium: bool
    key_number: int = 0
    value_number: int = 0

    @property
    def key_schema(self) -> str | None:
        """What the key is registered as; None without one."""
        if not self.keys:
            return None
        return json.dumps(record_schema(key_columns(self.schema, self.keys), "row"))

    @property
    def value_schema(self) -> str:
        """What the value is registered as."""
        columns = self.schema.columns
        made = envelope_schema(columns) if self.is_debezium else record_schema(columns, "envelope")
        return json.dumps(made)

    @cached_property
    def _key(self) -> Any:
        return fastavro.parse_schema(json.loads(self.key_schema or "null"))

    @cached_property
    def _parsed(self) -> Any:
        return fastavro.parse_schema(json.loads(self.value_schema))

    def key(self, values: Sequence[Any]) -> bytes:
        """The key's columns as a datum."""
        columns = key_columns(self.schema, self.keys)
        return _datum(self._key, self.key_number, _record(values, columns))

    def value(self, row: Sequence[Any]) -> bytes:
        """A row as a datum."""
        return _datum(self._parsed, self.value_number, _record(row, self.schema.columns))

    def change(self, old: Sequence[Any] | None, new: Sequence[Any] | None, op: str) -> bytes:
        """A change as a datum."""
        images = [None if row is None else _record(row, self.schema.columns) for row in (old, new)]
        change = {"before": images[0], "after": images[1], "op": op}
        return _datum(self._parsed, self.value_number, change)


def _record(row: Sequence[Any], columns: Sequence[Column]) -> dict[str, Any]:
    return {c.name: _value(value, c.type) for c, value in zip(columns, row, strict=True)}


def _datum(schema: Any, number: int, found: dict[str, Any]) -> bytes:
    out = io.BytesIO(b"\0" + number.to_bytes(4))
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, schema, found)
    return out.getvalue()
