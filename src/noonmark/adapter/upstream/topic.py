"""A source over a topic: its formats, and how columns are shared out between key and value.

With KEY FORMAT (or INCLUDE KEY) the columns of PRIMARY KEY are read from the record's key, and all
others from its value; without PRIMARY KEY the key is one column, called "key" or as INCLUDE KEY
says. Under UPSERT without KEY FORMAT the columns of PRIMARY KEY are read from the value.

FORMAT AVRO brings its columns with its schema, which is fixed when the source is made. With a
registry the subjects are ``<topic>-value`` and, where there is one, ``<topic>-key``; a field that
both have is read from the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from noonmark.adapter.catalog import Catalog
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.schedule.definitions import format_of
from noonmark.adapter.statement.ddl.columns import columns_of
from noonmark.adapter.upstream.connection import registry_named, registry_of
from noonmark.errors import InvalidValue, Unsupported
from noonmark.ingest.feed import Feed, raw
from noonmark.peer import ask
from noonmark.rows import types as t
from noonmark.rows.schema import Column, Schema
from noonmark.source.contract import Source
from noonmark.source.format.decode import Format
from noonmark.source.format.include import Include
from noonmark.source.format.json import Json
from noonmark.sql.statement import statement as st

_KEY_TYPES: dict[str, t.SqlType] = {"json": t.Jsonb(), "bytes": t.Bytea()}
_UPSERT_NEEDS = "Say KEY FORMAT ... VALUE FORMAT ..., or give the columns a PRIMARY KEY."


async def topic_definition(
    access: Access, statement: st.CreateSource, topic: str
) -> dict[str, Any]:
    """What a source over a topic remembers of its format."""
    if statement.format is None:
        raise InvalidValue(
            "a source FROM KAFKA needs a FORMAT", hint="FORMAT JSON, AVRO, CSV, TEXT or BYTES."
        )
    if statement.format.kind == "avro" and (statement.columns or statement.key):
        raise Unsupported("FORMAT AVRO has the columns of its schema: it takes none")
    key_name = next((name for what, name, *_ in statement.include if what == "key"), None)
    key_format = await _key_format_of(access, statement, topic, key_name)
    if statement.envelope == "upsert" and key_format is None and not statement.key:
        raise InvalidValue("ENVELOPE UPSERT needs a key", hint=_UPSERT_NEEDS)
    columns = columns_of(statement.columns or (), statement.key)
    key: tuple[Column, ...] = ()
    if key_format is not None and key_format["kind"] != "avro":
        key, columns = _shared_out(statement.key, columns, key_format["kind"], key_name)
    return {
        "format": await _format(access, statement.format, f"{topic}-value"),
        "key_format": key_format,
        "columns": columns.to_wire(),
        "key_columns": Schema(key).to_wire(),
        "include": [list(each) for each in statement.include if each[0] != "key"],
        "envelope": (statement.envelope or "none").upper(),
        "key": list(statement.key),
    }


async def _key_format_of(
    access: Access, statement: st.CreateSource, topic: str, key_name: str | None
) -> dict[str, Any] | None:
    """The format of the key: as written, or that of the value where one is wanted."""
    value = statement.format
    assert value is not None
    if statement.key_format is not None:
        return await _format(access, statement.key_format, f"{topic}-key")
    by_registry = value.kind == "avro" and "connection" in value.options
    if by_registry and (key_name is not None or statement.envelope == "upsert"):
        return await _format(access, value, f"{topic}-key")
    if key_name is None:
        return None
    return {"kind": "text" if value.kind in ("csv", "avro") else value.kind}


def _shared_out(
    names: tuple[str, ...], columns: Schema, kind: str, key_name: str | None
) -> tuple[tuple[Column, ...], Schema]:
    if not names:
        key_type = _KEY_TYPES.get(kind, t.Text())
        return (Column(key_name or "key", key_type, nullable=False),), columns
    key = tuple(columns[name] for name in names)
    return key, Schema(tuple(each for each in columns.columns if each.name not in names))


async def _format(access: Access, written: st.Format, subject: str) -> dict[str, Any]:
    if written.kind != "avro":
        return {"kind": written.kind, **written.options}
    if isinstance(written.options.get("schema"), str):
        header = bool(written.options.get("confluent_wire_format", True))
        return {"kind": "avro", "schema": written.options["schema"], "header": header}
    found = registry_named(access, written)
    if found is None:
        raise InvalidValue(
            "FORMAT AVRO needs a schema",
            hint="USING SCHEMA '...', or USING CONFLUENT SCHEMA REGISTRY CONNECTION c.",
        )
    registry = registry_of(access.catalog, found)
    schema = await ask("statement", "on a registry", partial(registry.latest, subject))
    return {"kind": "avro", "schema": schema, "header": True, "registry": found.number}


def topic_feed(
    catalog: Catalog, source: Source, collection: str, definition: Mapping[str, Any]
) -> Feed:
    """The feed of a topic: formats of key and value, INCLUDE and envelope."""
    key_format = definition["key_format"]
    envelope = definition["envelope"]
    value = _format_of(catalog, definition["format"], Schema.from_wire(definition["columns"]))
    if definition["format"]["kind"] == "avro" and envelope == "DEBEZIUM":
        value = _image(value)
    key_columns = Schema.from_wire(definition["key_columns"])
    key = None if key_format is None else _key_format(catalog, key_format, key_columns)
    if key is not None and definition["format"]["kind"] == "avro":
        value = _without(value, key.schema.names)
    return raw(
        source,
        0,
        collection,
        value,
        key_format=key,
        include=tuple(Include(*each) for each in definition["include"]),
        envelope=envelope,
        key=tuple(definition["key"]),
    )


def _key_format(catalog: Catalog, definition: Mapping[str, Any], columns: Schema) -> Format:
    """The format of a key; one jsonb column is the whole document, whatever its name."""
    if definition["kind"] == "json" and [str(c.type) for c in columns.columns] == ["jsonb"]:
        return Json(columns, whole=True)
    return _format_of(catalog, definition, columns)


def _format_of(catalog: Catalog, definition: Mapping[str, Any], columns: Schema) -> Format:
    if definition["kind"] != "avro":
        return format_of(definition, columns)
    from noonmark.source.format.avro import avro  # door: Avro: only who reads or writes it

    number = definition.get("registry")
    registry = None if number is None else registry_of(catalog, catalog.by_number[number])
    return avro(definition["schema"], registry, with_header=definition["header"])


def _without(value: Format, names: tuple[str, ...]) -> Format:
    """The format without the columns that the key has: they are read there."""
    from noonmark.source.format.avro import Avro  # door: Avro: only who reads or writes it

    assert isinstance(value, Avro)
    kept = tuple(each for each in value.schema.columns if each.name not in names)
    return replace(value, schema=Schema(kept))


def _image(value: Format) -> Format:
    """The format of an envelope, over the columns of its images."""
    # door: Avro: only who reads or writes it
    from noonmark.source.format.avro import Avro, debezium_columns

    assert isinstance(value, Avro)
    columns = debezium_columns(value.text)
    if columns is None:
        raise InvalidValue("the schema is no Debezium envelope: it has no before and after")
    return replace(value, schema=columns)
