"""CREATE SINK: from a statement to an item, and from an item to what writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.run.ddl_common import place, refuse_options
from noonmark.adapter.upstream.connection import connection_of, kafka_options
from noonmark.errors import InvalidValue, UndefinedColumn, Unsupported, WrongObjectType
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.adapter.session import AdapterSession
    from noonmark.sink.run import Sink

_OPTIONS = ("topic", "progress_topic")


def sink_item(
    session: AdapterSession, catalog: Catalog, number: int, statement: st.CreateSink
) -> Item:
    """The item of a sink.

    Raises:
        InvalidValue: something that it needs is not there.
        WrongObjectType: what it reads is not kept.
    """
    refuse_options("KAFKA", statement.options, _OPTIONS)
    schema_name, name = place(catalog, statement.name)
    connection = connection_of(catalog, statement.connection, "kafka")
    read = catalog.resolve(statement.source.parts, statement.source.position)
    if not read.is_stored or read.kind == "index":
        raise WrongObjectType(
            f'"{read.name}" is not kept, and cannot be written to a sink',
            hint="Tables, sources and materialized views can.",
            position=statement.source.position,
        )
    topic = statement.options.get("topic")
    if not isinstance(topic, str):
        raise InvalidValue("a sink INTO KAFKA needs TOPIC 'name'")
    if statement.format is not None and statement.format.kind != "json":
        raise Unsupported(f"FORMAT {statement.format.kind.upper()} of a sink is not supported")
    if statement.envelope is None:
        raise InvalidValue("a sink needs an ENVELOPE", hint="UPSERT or DEBEZIUM.")
    if statement.envelope == "upsert" and not statement.key:
        raise InvalidValue("ENVELOPE UPSERT needs a key", hint="Say KEY (column, ...).")
    for column in statement.key:
        if column not in read.schema:
            raise UndefinedColumn(f'column "{column}" does not exist')
    definition: dict[str, Any] = {
        "text": session.text,
        "id": f"noonmark-sink-{session.database.clock.fresh_id()}",
        "connection": connection.number,
        "read": read.number,
        "topic": topic,
        "progress_topic": statement.options.get("progress_topic", "_noonmark_progress"),
        "key": list(statement.key),
        "envelope": statement.envelope.upper(),
    }
    return Item(
        number, "sink", schema_name, name, definition=definition,
        needs=(read.number, connection.number), owner=session.user,
    )  # fmt: skip


def open_sink(database: Database, item: Item) -> Sink:
    """What writes a sink's item."""
    from noonmark.sink.envelope import Envelope, Kind
    from noonmark.sink.kafka import Writer
    from noonmark.sink.run import Sink

    catalog, known = database.catalog, item.definition
    read = catalog.by_number[known["read"]]
    options = kafka_options(catalog, catalog.by_number[known["connection"]])
    envelope = Envelope(cast(Kind, known["envelope"]), read.schema, tuple(known["key"]))
    writer = Writer(options, known["topic"], known["progress_topic"], known["id"])
    return Sink(database.client, read.collection, envelope, writer, database.clock)
