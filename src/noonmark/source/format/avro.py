"""FORMAT AVRO: one datum per record, bare or behind Confluent's header.

The header is a zero byte and the number of the writer's schema, which a registry knows; it is asked
once for each number and process. Without a registry the schema that was written is also that of the
writer. Data of an older or newer writer is read as Avro resolves schemas.

A record's fields are columns by name; a union with null is a nullable column. What SQL has no type
for (maps, unions of several) is jsonb.

Law (total): a record that does not decode is a reason. A registry that does not answer is a stall,
because the record may yet be good.

Where it runs: executors.
"""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa

from noonmark.errors import ConfigError, InvalidValue, SourceStalled
from noonmark.rows import types as t
from noonmark.rows.jsonb import canonical
from noonmark.rows.schema import Column, Schema
from noonmark.source.format.convert import Parsed, Reasons, from_values, merge_reasons
from noonmark.source.format.registry import Registry

_HEADER = 5
_PLAIN: dict[str, t.SqlType] = {
    "boolean": t.Boolean(),
    "int": t.Integer(),
    "long": t.BigInt(),
    "float": t.Real(),
    "double": t.Double(),
    "bytes": t.Bytea(),
    "string": t.Text(),
    "enum": t.Text(),
    "fixed": t.Bytea(),
}
_LOGICAL: dict[str, t.SqlType] = {
    "date": t.Date(),
    "time-millis": t.Time(),
    "time-micros": t.Time(),
    "timestamp-millis": t.TimestampTz(),
    "timestamp-micros": t.TimestampTz(),
    "local-timestamp-millis": t.Timestamp(),
    "local-timestamp-micros": t.Timestamp(),
    "uuid": t.Uuid(),
}


@lru_cache(maxsize=1000)
def _known(registry: Registry, number: int) -> Any:
    return fastavro.parse_schema(json.loads(registry.schema_of(number)))


@dataclass(frozen=True)
class Avro:
    """See `noonmark.source.format.decode.Format`.

    Attributes:
        text: the schema that rows are read with, as JSON.
        schema: the columns, by default all of the schema's.
        registry: where the writers' schemas are.
        with_header: whether Confluent's header stands before each datum.
    """

    text: str
    schema: Schema
    registry: Registry | None = None
    with_header: bool = True
    header: bool = False

    @cached_property
    def _reader(self) -> Any:
        return fastavro.parse_schema(json.loads(self.text))

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    def parse(self, values: pa.Array) -> Parsed:
        """The columns of the records; `values` has no NULL."""
        reasons: Reasons = {}
        data = [self._datum(value, at, reasons) for at, value in enumerate(values.to_pylist())]
        single = len(self.schema) == 1 and not isinstance(self._named, Mapping)
        columns = []
        for column in self.schema.columns:
            items = data if single else [None if d is None else d.get(column.name) for d in data]
            array, more = from_values(items, column.type, _converter(column.type))
            merge_reasons(reasons, more, column.name)
            columns.append(array)
        return Parsed(columns, reasons)

    @cached_property
    def _named(self) -> Any:
        """A record's schema as a mapping; anything else is no record."""
        found = json.loads(self.text)
        return found if isinstance(found, dict) and found.get("type") == "record" else None

    def _datum(self, value: bytes, at: int, reasons: Reasons) -> Any:
        writer = self._reader
        try:
            if self.with_header:
                if len(value) < _HEADER or value[0] != 0:
                    raise InvalidValue("no Confluent header")
                if self.registry is not None:
                    writer = _known(self.registry, int.from_bytes(value[1:_HEADER]))
                value = value[_HEADER:]
            stream = io.BytesIO(value)
            found = fastavro.schemaless_reader(stream, writer, self._reader)
            if stream.read(1):
                raise InvalidValue("bytes are left over")
        except SourceStalled:
            raise
        except InvalidValue as error:
            reasons[at] = f"not Avro: {error.message}"
            return None
        except Exception as error:  # whatever bytes make the decoder do is the record's fault
            reasons[at] = f"not Avro of this schema: {type(error).__name__} {error}"[:500]
            return None
        return found


def avro(text: str, registry: Registry | None = None, *, with_header: bool = True) -> Avro:
    """The format of a schema, with all its columns."""
    return Avro(text, columns_of(text), registry, with_header)


def columns_of(text: str) -> Schema:
    """The columns of a schema: the fields of a record, or one for anything else.

    Raises:
        ConfigError: it is no Avro schema.
    """
    try:
        fastavro.parse_schema(json.loads(text))
        schema = json.loads(text)
    except Exception as error:
        raise ConfigError(f"not an Avro schema: {error}") from None
    names: dict[str, Any] = {}
    if isinstance(schema, dict) and schema.get("type") == "record":
        made = []
        for each in schema["fields"]:
            kind, nullable = _type(each["type"], names)
            made.append(Column(each["name"], kind, nullable))
        return Schema(tuple(made))
    kind, nullable = _type(schema, names)
    return Schema((Column("data", kind, nullable),))


def debezium_columns(text: str) -> Schema | None:
    """The columns of the row images in a Debezium envelope; None when it is none."""
    schema = json.loads(text)
    fields = {each["name"]: each["type"] for each in schema.get("fields", ())}
    for name in ("before", "after"):
        branches = fields.get(name)
        for branch in branches if isinstance(branches, list) else [branches]:
            if isinstance(branch, dict) and branch.get("type") == "record":
                return columns_of(json.dumps(branch))
    return None


def _type(schema: Any, names: dict[str, Any]) -> tuple[t.SqlType, bool]:
    """The SQL type of a schema, and whether it takes null."""
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        if len(others) == 1:
            return _type(others[0], names)[0], len(others) < len(schema)
        return t.Jsonb(), "null" in schema
    if isinstance(schema, str):
        if schema in names:
            return _type(names[schema], names)
        return _PLAIN.get(schema, t.Jsonb()), schema == "null"
    if "name" in schema:
        names[schema["name"]] = schema
    logical = schema.get("logicalType")
    if logical == "decimal":
        precision = schema["precision"]
        if precision > t.NUMERIC_PRECISION_MAX:
            return t.Numeric(), False
        return t.Numeric(precision, schema.get("scale", 0)), False
    if logical in _LOGICAL:
        return _LOGICAL[logical], False
    kind = schema["type"]
    if kind == "array":
        inner = _type(schema["items"], names)[0]
        return (t.Jsonb() if isinstance(inner, t.Array) else t.Array(inner)), False
    if kind == "record":
        fields = [t.Field(each["name"], _type(each["type"], names)[0]) for each in schema["fields"]]
        return (t.Record(tuple(fields)) if fields else t.Jsonb()), False
    return (
        _type(kind, names)
        if isinstance(kind, dict | list)
        else (_PLAIN.get(kind, t.Jsonb()), False)
    )


def _converter(sql_type: t.SqlType) -> Callable[[Any], Any]:
    return lambda item: from_avro(item, sql_type)


def from_avro(item: Any, sql_type: t.SqlType) -> Any:
    """The value of a decoded datum that is not null."""
    match sql_type:
        case t.Jsonb() | t.Json():
            return canonical([_plain(item)])[1:-1]
        case t.Array(element):
            return [None if each is None else from_avro(each, element) for each in item]
        case t.Record(fields):
            return tuple(
                None if (each := item.get(one.name)) is None else from_avro(each, one.type)
                for one in fields
            )
        case t.Timestamp() if isinstance(item, dt.datetime):
            return item.replace(tzinfo=None)
        case t.Uuid():
            return item if isinstance(item, UUID) else UUID(str(item))
    return item


def _plain(item: Any) -> Any:
    """A datum as JSON has it."""
    match item:
        case Mapping():
            return {str(key): _plain(value) for key, value in item.items()}
        case list() | tuple():
            return [_plain(each) for each in item]
        case bytes():
            return item.decode("latin-1")
        case Decimal() | UUID() | dt.datetime() | dt.date() | dt.time():
            return str(item)
    return item
