"""CREATE SOURCE on a connection: what is asked of upstream, and made there, before it has a name.

Upstream is asked outside of the catalog's turn, because it may take its time. What was made there
(a replication slot) is unmade again when the statement fails; a source that is dropped takes its
slot with it.

`open_source` is the way back: from an item, at a restart and for a read with real-time recency.

Clients of Kafka and PostgreSQL are imported when they are used: a server starts without them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.schedule.definitions import source_of
from noonmark.adapter.statement.ddl.common import refuse_options
from noonmark.adapter.upstream.connection import connection_of, kafka_options, postgres_url
from noonmark.adapter.upstream.topic import topic_definition
from noonmark.errors import InvalidValue, NoonmarkError, Unsupported
from noonmark.peer import GRACE_S, Peer, ask
from noonmark.rows.schema import Schema
from noonmark.source.contract import Source
from noonmark.source.impl import kafka, postgres
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.adapter.session.session import AdapterSession
    from noonmark.source.impl.kafka import StartFrom

LOG = logging.getLogger("noonmark.work")

_KAFKA_OPTIONS = ("topic", "start_offset", "start_timestamp", "group_id_prefix")


@dataclass(frozen=True)
class Prepared:
    """A source that upstream is ready for.

    Attributes:
        source: the source itself, with what it holds of upstream.
        definition: what its item remembers of it, as plain data.
        needs: the numbers of the connections that it needs.
        tables: for each output, what upstream calls it and how it is to be called here.
    """

    source: Source
    definition: Mapping[str, Any]
    needs: tuple[int, ...]
    tables: tuple[tuple[int, st.Name], ...] = ()

    async def abandon(self) -> None:
        """Unmake what was made upstream: the statement failed."""
        if self.definition["upstream"] == "postgres":
            source = self.source
            assert isinstance(source, postgres.Postgres)
            unmaking = partial(postgres.unmake, source)
            try:
                await ask("slot", source.slot, unmaking, seconds=GRACE_S)
            except NoonmarkError as error:  # the statement has an error of its own to tell
                LOG.warning('replication slot "%s" is still upstream: %s', source.slot, error)


async def prepare(session: AdapterSession, statement: st.CreateSource) -> Prepared | None:
    """Ask upstream; None for what has none."""
    upstream = statement.upstream
    if isinstance(upstream, st.Postgres):
        return await _postgres(session, statement, upstream)
    if isinstance(upstream, st.Kafka):
        return await _kafka(session, statement, upstream)
    return None


async def _postgres(
    session: AdapterSession, statement: st.CreateSource, upstream: st.Postgres
) -> Prepared:
    refuse_options("POSTGRES", upstream.options, ("publication",))
    publication = upstream.options.get("publication")
    if not isinstance(publication, str):
        raise InvalidValue("a source FROM POSTGRES needs PUBLICATION 'name'")
    if statement.format or statement.columns or statement.include or statement.envelope:
        raise Unsupported("tables of PostgreSQL have columns of their own: no FORMAT or ENVELOPE")
    if statement.tables is None:
        raise InvalidValue(
            "a source FROM POSTGRES has tables", hint="Say FOR ALL TABLES, or FOR TABLES (...)."
        )
    access = session.access("CREATE SOURCE")
    connection = connection_of(access, upstream.connection, "postgres")
    slot = f"noonmark_{session.database.clock.fresh_id()}"
    wanted = None
    if statement.tables != "all":
        wanted = [upstream_name(each.upstream) for each in statement.tables]
    url = postgres_url(session.catalog, connection)
    source = await postgres.create(url, publication, slot, wanted)
    if wanted is None:
        names = [st.Name((table.name,)) for table in source.tables]
    else:
        assert statement.tables != "all"
        names = [each.name for each in statement.tables]
    definition = {
        "upstream": "postgres",
        "connection": connection.number,
        "source": source.to_plain(),
    }
    return Prepared(source, definition, (connection.number,), tuple(enumerate(names)))


def upstream_name(name: st.Name) -> tuple[str, str]:
    """The schema and the name of a table upstream."""
    return (name.parts[-2] if len(name.parts) > 1 else "public", name.last)


async def _kafka(
    session: AdapterSession, statement: st.CreateSource, upstream: st.Kafka
) -> Prepared:
    refuse_options("KAFKA", upstream.options, _KAFKA_OPTIONS)
    topic = upstream.options.get("topic")
    if not isinstance(topic, str):
        raise InvalidValue("a source FROM KAFKA needs TOPIC 'name'")
    if statement.tables is not None:
        raise Unsupported("a topic is one table: FOR TABLES is not supported")
    access = session.access("CREATE SOURCE")
    connection = connection_of(access, upstream.connection, "kafka")
    clock = session.database.clock
    prefix = upstream.options.get("group_id_prefix", "noonmark-")
    options = kafka_options(session.catalog, connection)
    start = _start(upstream.options, clock.now_ms())
    source = await kafka.create(options, topic, f"{prefix}{clock.fresh_id()}", start)
    definition = {
        "upstream": "kafka",
        "connection": connection.number,
        "source": source.to_plain(),
        **await topic_definition(access, statement, topic),
    }
    formats = (definition["format"], definition["key_format"] or {})
    registries = tuple(each["registry"] for each in formats if "registry" in each)
    return Prepared(source, definition, (connection.number, *registries))


def _start(options: Mapping[str, Any], now_ms: int) -> StartFrom:
    given = options.get("start_offset")
    offsets = given if isinstance(given, list | tuple) else () if given is None else (given,)
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in offsets):
        raise InvalidValue("START OFFSET takes numbers, one for each partition from 0 on")
    timestamp = options.get("start_timestamp")
    if timestamp is not None and not isinstance(timestamp, int):
        raise InvalidValue("START TIMESTAMP takes milliseconds; a negative number counts from now")
    if timestamp is not None and timestamp < 0:
        timestamp += now_ms
    return kafka.StartFrom(dict(enumerate(offsets)), timestamp)


def open_source(database: Database, item: Item) -> Source:
    """The source of an item.

    Raises:
        ConfigError: a secret of its connection cannot be opened here.
    """
    definition, catalog = item.definition, database.catalog
    kind = definition["upstream"]
    if kind == "postgres":
        connection = catalog.by_number[definition["connection"]]
        url = postgres_url(catalog, connection)
        return postgres.Postgres.from_plain(url, dict(definition["source"]))
    if kind == "kafka":
        options = kafka_options(catalog, catalog.by_number[definition["connection"]])
        return kafka.Kafka.from_plain(options, dict(definition["source"]))
    columns = Schema.from_wire(definition.get("columns", ()))
    return source_of(definition, columns, database.files)


@dataclass(frozen=True)
class Leftover:
    """What a source has upstream that goes with it."""

    source: str
    url: str
    slot: str

    async def remove(self) -> str | None:
        """Remove it; why that could not be at once, in a sentence, if it could not.

        Then it is tried again for a while, as long as the process lives.
        """
        peer = Peer("slot", self.slot)
        removing = partial(postgres.drop_slot_now, self.url, self.slot)
        try:
            await peer.call(removing, seconds=GRACE_S)
        except NoonmarkError as error:
            peer.leave(partial(postgres.drop_slot_later, self.url, self.slot))
            return (
                f'replication slot "{self.slot}" of source "{self.source}" is still upstream, '
                f"and keeps the log there: {error.message}"
            )
        peer.leave()
        return None


def leftovers(catalog: Catalog, doomed: list[Item]) -> list[Leftover]:
    """What dropping these items leaves upstream; asked before they are dropped."""
    found = []
    for item in doomed:
        if item.kind == "source" and item.definition.get("upstream") == "postgres":
            connection = catalog.by_number[item.definition["connection"]]
            try:
                url = postgres_url(catalog, connection)
            except NoonmarkError:
                url = ""
            found.append(Leftover(item.name, url, item.definition["source"]["slot"]))
    return found
