"""CREATE SINK: from a statement to an item, and from an item to what writes it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.statement.ddl.common import place, refuse_options
from noonmark.adapter.upstream.connection import (
    connection_of,
    kafka_options,
    registry_named,
    registry_of,
)
from noonmark.errors import (
    InvalidValue,
    UndefinedColumn,
    UndefinedObject,
    Unsupported,
    WrongObjectType,
)
from noonmark.peer import Peer, ask
from noonmark.rows.schema import Schema
from noonmark.sink.encode import JsonEncoding
from noonmark.sink.envelope import Envelope, Kind
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.adapter.session.session import AdapterSession
    from noonmark.sink.encode import Encoding
    from noonmark.sink.run import Sink

_OPTIONS = ("topic", "progress_topic")


async def sink_definition(session: AdapterSession, statement: st.CreateSink) -> dict[str, Any]:
    """What a sink remembers. Its schemas are registered here, outside of the catalog's turn.

    Raises:
        InvalidValue: something that it needs is not there, or a registry refuses its schema.
        WrongObjectType: what it reads is not kept.
    """
    catalog = session.catalog
    refuse_options("KAFKA", statement.options, _OPTIONS)
    access = session.access("CREATE SINK", catalog)
    connection = connection_of(access, statement.connection, "kafka")
    read = access.named(statement.source.parts, statement.source.position)
    if not read.is_stored or read.kind == "index":
        raise WrongObjectType(
            f'"{read.name}" is not kept, and cannot be written to a sink',
            hint="Tables, sources and materialized views can.",
            position=statement.source.position,
        )
    access.check("relation", read)
    topic = statement.options.get("topic")
    if not isinstance(topic, str):
        raise InvalidValue("a sink INTO KAFKA needs TOPIC 'name'")
    if statement.envelope is None:
        raise InvalidValue("a sink needs an ENVELOPE", hint="UPSERT or DEBEZIUM.")
    if statement.envelope == "upsert" and not statement.key:
        raise InvalidValue("ENVELOPE UPSERT needs a key", hint="Say KEY (column, ...).")
    for column in statement.key:
        if column not in read.schema:
            raise UndefinedColumn(f'column "{column}" does not exist')
    return {
        "text": session.text,
        "id": f"noonmark-sink-{session.database.clock.fresh_id()}",
        "connection": connection.number,
        "read": read.number,
        "topic": topic,
        "progress_topic": statement.options.get("progress_topic", "_noonmark_progress"),
        "key": list(statement.key),
        "envelope": statement.envelope.upper(),
        "format": await _format(access, statement, read.schema, topic),
    }


async def _format(
    access: Access, statement: st.CreateSink, schema: Schema, topic: str
) -> dict[str, Any]:
    written = statement.format
    if written is None or written.kind == "json":
        return {"kind": "json"}
    if written.kind != "avro":
        raise Unsupported(
            f"FORMAT {written.kind.upper()} of a sink is not supported", hint="JSON and AVRO are."
        )
    registry_item = registry_named(access, written)
    if registry_item is None:
        raise InvalidValue(
            "FORMAT AVRO of a sink needs a schema registry",
            hint="Say USING CONFLUENT SCHEMA REGISTRY CONNECTION c.",
        )
    from noonmark.sink.avro import AvroEncoding  # door: Avro: only who reads or writes it

    registry = registry_of(access.catalog, registry_item)
    encoding = AvroEncoding(schema, statement.key, statement.envelope == "debezium")

    async def register(part: str, text: str) -> int:
        asking = partial(registry.register, f"{topic}-{part}", text)
        return await ask("statement", "on a registry", asking)

    value_number = await register("value", encoding.value_schema)
    key_number = 0
    if encoding.key_schema is not None:
        key_number = await register("key", encoding.key_schema)
    numbers = {"key_number": key_number, "value_number": value_number}
    return {"kind": "avro", "registry": registry_item.number, **numbers}


def sink_item(
    session: AdapterSession,
    catalog: Catalog,
    number: int,
    statement: st.CreateSink,
    definition: dict[str, Any],
) -> Item:
    """The item of a sink, if what it needs is still there."""
    registry = definition["format"].get("registry")
    needs = (definition["read"], definition["connection"], *([registry] if registry else []))
    for each in needs:
        if each not in catalog.by_number:
            raise UndefinedObject("what the sink needs was dropped meanwhile")
    return Item(
        number, "sink", *place(catalog, statement.name), definition=definition, needs=needs,
        owner=session.user,
    )  # fmt: skip


def open_sink(database: Database, item: Item) -> Sink:
    """What writes a sink's item."""
    from noonmark.sink.kafka import Writer  # door: Kafka's client: only who has such an object
    from noonmark.sink.run import Sink  # door: Kafka's client: only who has such an object

    catalog, known = database.catalog, item.definition
    read = catalog.by_number[known["read"]]
    options = kafka_options(catalog, catalog.by_number[known["connection"]])
    key = tuple(known["key"])
    encoding = _encoding(read.schema, key, known)
    envelope = Envelope(cast(Kind, known["envelope"]), read.schema, key, encoding)
    writer = Writer(options, known["topic"], known["progress_topic"], known["id"])
    peer = Peer("sink", f'"{item.name}"', database.clock)
    return Sink(database.client, read.collection, envelope, writer, database.clock, peer)


def _encoding(schema: Schema, key: tuple[str, ...], known: Mapping[str, Any]) -> Encoding:
    """How a sink writes; one that was made before there was a choice writes JSON."""
    form = known.get("format", {"kind": "json"})
    if form["kind"] == "json":
        return JsonEncoding(schema, key)
    from noonmark.sink.avro import AvroEncoding  # door: Avro: only who reads or writes it

    is_debezium = known["envelope"] == "DEBEZIUM"
    return AvroEncoding(schema, key, is_debezium, form["key_number"], form["value_number"])
