"""ALTER SOURCE ... {ADD | DROP | REFRESH} TABLE, and ALTER SOURCE ... REFRESH.

ADD and REFRESH read tables beside those that go on (`adapter.upstream.refresh`); the statement is
done when their relations show them. REFRESH of a source that has ended as a whole gives it another
slot, and reads all of its tables; of any other source, it reads them one after the other. A source
FROM KAFKA reads its topic anew (`adapter.upstream.renew`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Item
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.schedule.ended import error_now
from noonmark.adapter.statement.ddl.common import Created, check_free, place, require_create
from noonmark.adapter.statement.ddl.drop import doomed, removal_of
from noonmark.adapter.statement.handler import Handlers
from noonmark.adapter.upstream.connection import postgres_url
from noonmark.adapter.upstream.prepare import Leftover, upstream_name
from noonmark.adapter.upstream.refresh import Wanted, at_work, read_beside
from noonmark.adapter.upstream.renew import renew_topic
from noonmark.errors import (
    DependentObjects,
    NameTaken,
    NotYetComplete,
    UndefinedTable,
    Unsupported,
    UsageError,
    WrongObjectType,
)
from noonmark.rows.types import quote_name
from noonmark.source.contract import NO_OUTPUT
from noonmark.source.impl import postgres
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.adapter.schedule.sources import SourceWorker
    from noonmark.adapter.session.session import AdapterSession
    from noonmark.source.impl.postgres import Postgres

TAG = "ALTER SOURCE"
_LOOK_S = 0.05


async def run_source_tables(
    session: AdapterSession, statement: st.AlterSourceTables, _: Sequence[Any]
) -> Outcome:
    """ALTER SOURCE s {ADD | DROP | REFRESH} ..."""
    item = _source_item(session, statement)
    if item is None:
        return Done(TAG, (Notice(f'source "{statement.name}" does not exist, skipping'),))
    if item.definition["upstream"] == "kafka":
        await renew_topic(session.database, item)
        return Done(TAG)
    if statement.action == "drop":
        return await _drop(session, item, statement)
    if item.definition.get("pending"):
        raise UsageError(
            f'source "{item.name}" is being altered already', hint="Wait until that is done."
        )
    if statement.action == "add":
        return await _add(session, item, statement)
    return await _refresh(session, item, statement)


def _source_item(session: AdapterSession, statement: st.AlterSourceTables) -> Item | None:
    name = statement.name
    access = session.access("ALTER SET", session.database.catalog)
    if access.find(name.parts) is None and statement.if_exists:
        return None
    item = access.named(name.parts, name.position)
    if item.kind != "source":
        raise WrongObjectType(f'"{item.name}" is not a source', position=name.position)
    access.check("object", item)
    upstream = item.definition.get("upstream")
    if upstream == "kafka" and statement.action == "refresh":
        if statement.tables:
            raise Unsupported(
                "a topic is one table: REFRESH TABLE is not supported",
                hint=f"Run: ALTER SOURCE {quote_name(item.name)} REFRESH;",
                position=name.position,
            )
    elif upstream != "postgres":
        raise Unsupported(
            f"ALTER SOURCE ... {statement.action.upper()} is for sources FROM POSTGRES",
            detail=f'"{item.name}" is FROM {str(upstream).upper()}.',
            hint="Make another source beside it, and let its readers use that.",
            position=name.position,
        )
    return item


def _tables(item: Item) -> Postgres:
    return postgres.Postgres.from_plain("", dict(item.definition["source"]))


def _part(session: AdapterSession, item: Item, name: st.Name) -> Item:
    """The relation of a source that has that name."""
    parts = [p for p in session.database.catalog.parts_of(item.number) if p.kind == "subsource"]
    for part in parts:
        if (part.schema_name, part.name)[-len(name.parts) :] == tuple(name.parts[-2:]):
            return part
    raise UndefinedTable(
        f'"{name}" is no table of source "{item.name}"',
        hint=f"Its tables are {', '.join(part.name for part in parts)}.",
        position=name.position,
    )


async def _add(session: AdapterSession, item: Item, statement: st.AlterSourceTables) -> Outcome:
    catalog, source = session.database.catalog, _tables(item)
    read = {(t.schema_name, t.name) for t in source.tables if not t.retired}
    wanted: list[Wanted] = []
    for each in statement.tables:
        where = place(catalog, each.name)
        require_create(session, catalog, where[0], "CREATE SOURCE")
        upstream = upstream_name(each.upstream)
        if upstream in read or upstream in [other.upstream for other in wanted]:
            raise NameTaken(
                f'table {".".join(upstream)} is in source "{item.name}" already',
                position=each.upstream.position,
            )
        check_free(session, Created((Item(0, "subsource", *where),), lambda _: ()))
        wanted.append(Wanted(upstream, where))
    notices = await read_beside(session.database, item, wanted)
    await _done(session.database, item)
    return Done(TAG, tuple(map(Notice, notices)))


async def _refresh(session: AdapterSession, item: Item, statement: st.AlterSourceTables) -> Outcome:
    database = session.database
    parts = [p for p in database.catalog.parts_of(item.number) if p.kind == "subsource"]
    named = [_part(session, item, each.upstream) for each in statement.tables]
    worker = await at_work(database, item)
    if _has_ended(database, worker):
        if named and len(named) < len(parts):
            raise UsageError(
                f'source "{item.name}" has ended as a whole: one table alone cannot be refreshed',
                hint=f"Run: ALTER SOURCE {item.name} REFRESH;",
            )
        notices = await read_beside(
            database, item, [_wanted(item, part) for part in parts], new_slot=True
        )
        left = _leftover(database, item)
        await _done(database, item)
        told = [Notice(each) for each in notices]
        if (why := await left.remove()) is not None:
            told.append(Notice(why, severity="WARNING"))
        return Done(TAG, tuple(told))
    notices = ()
    for part in named or parts:
        now = database.catalog.by_number[item.number]
        notices += await read_beside(database, now, [_wanted(now, part)])
        await _done(database, now)
    return Done(TAG, tuple(map(Notice, notices)))


def _wanted(item: Item, part: Item) -> Wanted:
    table = _tables(item).tables[part.definition["output"]]
    return Wanted((table.schema_name, table.name), (part.schema_name, part.name), part)


def _has_ended(database: Database, worker: SourceWorker) -> bool:
    """Whether the source as a whole has ended, by what is bound."""
    ingestion = worker.ingestion
    assert ingestion is not None, "a source that is at work has begun"
    assert isinstance(ingestion.source, postgres.Postgres)
    if NO_OUTPUT in ingestion.source.ended(ingestion.remap.latest):
        return True
    # The slot may also have gone between a binding and its reading: then all tables say so.
    state = database.client.state
    found = [error_now(state, target.name) for target in ingestion.outputs]
    return len({each.message for each in found if each is not None}) == 1 and None not in found


def _leftover(database: Database, item: Item) -> Leftover:
    """The slot that the source had before."""
    catalog = database.catalog
    url = postgres_url(catalog, catalog.by_number[item.definition["connection"]])
    return Leftover(item.name, url, item.definition["source"]["slot"])


async def _done(database: Database, item: Item) -> None:
    """Return when nothing of a source is pending any more."""
    while True:
        now = database.catalog.by_number.get(item.number)
        if now is None or not now.definition.get("pending"):
            return
        if (why := database.work.why_not_switched(item.number)) is not None:
            raise NotYetComplete(
                f'the tables of source "{item.name}" are read, and cannot be shown yet',
                detail=why,
                hint="It is tried again; the source's status shows when it is done.",
            )
        await database.clock.sleep(_LOOK_S)


async def _drop(session: AdapterSession, item: Item, statement: st.AlterSourceTables) -> Outcome:
    """Take tables out of a source: their relations go, and the others go on."""
    # door: PostgreSQL's client: only who has such an object
    from noonmark.source.impl.postgres.restage import retired

    database, store = session.database, session.database.store
    async with store.turn:
        item = store.catalog.by_number[item.number]
        parts = [_part(session, item, each.upstream) for each in statement.tables]
        own = [p for p in store.catalog.parts_of(item.number) if p.kind == "subsource"]
        if len({part.number for part in parts}) == len(own):
            raise DependentObjects(
                f'cannot drop all tables of source "{item.name}"',
                hint=f"You can drop the source: DROP SOURCE {item.name};",
            )
        gone = doomed(store.catalog, parts, statement.cascade, within=item)
        source = retired(_tables(item), [part.definition["output"] for part in parts])
        kept = replace(item, definition={**item.definition, "source": source.to_plain()})
        commands = await removal_of(database, gone)
        numbers = [each.number for each in gone]
        await database.work.remove([item.number, *numbers])
        try:
            await store.change([kept], removed=numbers, beside=lambda _: commands)
        finally:
            await database.work.take_up([item.number, *numbers])
    return Done(TAG)


HANDLERS: Handlers = {st.AlterSourceTables: run_source_tables}
