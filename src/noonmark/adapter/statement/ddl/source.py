"""CREATE SOURCE and ALTER SOURCE.

A source is several items that live and go together: itself, its subsources where it has several
outputs, its progress (the remap) and its errors. All their collections begin at one time, in the
commit that names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from noonmark.adapter.aside import cancellable
from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.catalog import name_taken
from noonmark.adapter.catalog.privilege import is_superuser
from noonmark.adapter.catalog.rights import require_role
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.schedule.definitions import file_feed, source_of
from noonmark.adapter.schedule.generators import generator
from noonmark.adapter.session.commit import creation
from noonmark.adapter.statement.ddl.columns import columns_of
from noonmark.adapter.statement.ddl.common import (
    Created,
    create,
    place,
    refuse_options,
    require_place,
    retain_ms,
)
from noonmark.adapter.statement.handler import Handlers
from noonmark.adapter.upstream.prepare import Prepared, prepare
from noonmark.adapter.upstream.topic import topic_feed
from noonmark.adapter.upstream.webhook import (
    is_open,
    webhook_definition,
    webhook_needs,
    webhook_schema,
)
from noonmark.errors import (
    InvalidValue,
    NameTaken,
    RefusedHere,
    SerializationFailure,
    UndefinedColumn,
    Unsupported,
    WrongObjectType,
)
from noonmark.persist.log import command as c
from noonmark.remap.rows import REMAP_SCHEMA
from noonmark.rows.schema import Schema
from noonmark.source.contract import ERRORS_SCHEMA, Output, Source
from noonmark.source.impl.files import Files
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession
    from noonmark.source.impl.postgres import Postgres

_OPTIONS = ("active", "retain_history")


async def run_create_source(
    session: AdapterSession, statement: st.CreateSource, _: Sequence[Any]
) -> Outcome:
    """CREATE SOURCE."""
    refuse_options("a source", statement.options, _OPTIONS)
    if isinstance(statement.upstream, st.Webhook):
        return await _create_webhook(session, statement)
    if statement.check is not None:
        raise Unsupported(
            "only a source FROM WEBHOOK has a CHECK", position=statement.check.condition.position
        )
    require_place(session, "CREATE SOURCE", statement.name)
    prepared = await cancellable(_prepared(session, statement))

    async def make(catalog: Catalog, number: int) -> Created:
        items = _items(session, catalog, number, statement, prepared)

        def beside(time: int) -> Iterable[c.AnyCommand]:
            return [creation(item, time) for item in items if item.is_stored]

        return Created(items, beside)

    created = None
    try:
        done, created = await create(
            session, "CREATE SOURCE", statement.name, statement.if_not_exists, make
        )
    finally:
        if created is None and prepared is not None:
            await prepared.abandon()
    if created is not None:
        source = None if prepared is None else prepared.source
        await session.database.work.add_source(created.items[0], source)
    return done


async def _prepared(session: AdapterSession, statement: st.CreateSource) -> Prepared | None:
    """What upstream is asked for, unless the name is taken anyway."""
    taken = session.catalog.by_name.get(place(session.catalog, statement.name))
    if taken is None:
        return await prepare(session, statement)
    if not statement.if_not_exists:
        raise name_taken(replace(taken, kind="source"))
    return None


_OPEN = Notice(
    "everybody who reaches this server may post to the webhook",
    hint="Say what must hold, CHECK (...); CHECK (true) takes every post on purpose.",
)


async def _create_webhook(session: AdapterSession, statement: st.CreateSource) -> Outcome:
    """A source that is written as a table is: one collection, and nothing beside it."""

    async def make(catalog: Catalog, number: int) -> Created:
        access = session.access("CREATE SOURCE", catalog)
        definition = {"text": session.text, **webhook_definition(access, statement)}
        item = Item(
            number,
            "source",
            *place(catalog, statement.name),
            webhook_schema(definition),
            definition=definition,
            needs=webhook_needs(definition),
            owner=session.user,
            retain_ms=retain_ms(statement.options),
        )
        return Created((item,), lambda time: [creation(item, time)])

    done, _ = await create(session, "CREATE SOURCE", statement.name, statement.if_not_exists, make)
    if is_open(statement):
        done = replace(done, notices=(*done.notices, _OPEN))
    return done


def _items(
    session: AdapterSession,
    catalog: Catalog,
    number: int,
    statement: st.CreateSource,
    prepared: Prepared | None,
) -> tuple[Item, ...]:
    """The source and everything that belongs to it."""
    schema_name, name = place(catalog, statement.name)
    active = statement.options.get("active", True)
    if not isinstance(active, bool):
        raise InvalidValue("ACTIVE takes true or false")
    if prepared is None and not isinstance(statement.upstream, st.Generator | st.Files):
        # It was there when upstream was to be asked, and is gone by now.
        raise SerializationFailure(
            f'"{name}" was dropped while this statement was under way', hint="Run it again."
        )
    known = _definition(session, statement, prepared)
    definition = {"text": session.text, "active": active, **known}
    source = _source(session, definition) if prepared is None else prepared.source
    if definition["upstream"] == "generator" and len(source.outputs) > 1:
        statement = replace(statement, tables=statement.tables or "all")
    item = Item(
        number,
        "source",
        schema_name,
        name,
        definition=definition,
        needs=() if prepared is None else prepared.needs,
        owner=session.user,
        retain_ms=retain_ms(statement.options),
    )
    item = replace(item, **_own_rows(catalog, source, item, statement))
    if definition["upstream"] == "postgres" and prepared is not None:
        parts = _tables(catalog, cast("Postgres", source), item, prepared.tables)
    else:
        parts = _subsources(catalog, source, item, statement)
    progress = statement.progress or st.Name((f"{name}_remap",))
    in_progress = place(catalog, _beside(item, progress))
    first = number + 1 + len(parts)
    remap = Item(first, "progress", *in_progress, REMAP_SCHEMA, ("partition",))
    errors = Item(first + 1, "errors", schema_name, f"{name}_errors", ERRORS_SCHEMA, ("key",))
    return (item, *parts, _part(item, remap), _part(item, errors))


def _beside(source: Item, name: st.Name) -> st.Name:
    """The name of what belongs to a source: in the source's schema, unless it says another."""
    return name if len(name.parts) > 1 else replace(name, parts=(source.schema_name, name.last))


def _part(source: Item, item: Item) -> Item:
    """An item that belongs to a source."""
    return replace(item, part_of=source.number, owner=source.owner, retain_ms=source.retain_ms)


def _tables(
    catalog: Catalog, source: Postgres, item: Item, names: Iterable[tuple[int, st.Name]]
) -> tuple[Item, ...]:
    """The subsources of a publication."""
    made = []
    for output, name in names:
        table = source.tables[output]
        where = place(catalog, _beside(item, name))
        number = item.number + 1 + output
        part = Item(
            number, "subsource", *where, table.schema, table.key, definition={"output": output}
        )
        made.append(_part(item, part))
    return tuple(made)


def _definition(
    session: AdapterSession, statement: st.CreateSource, prepared: Prepared | None
) -> dict[str, Any]:
    """What the source remembers of its upstream, as plain data."""
    upstream = statement.upstream
    if prepared is not None:
        return dict(prepared.definition)
    if isinstance(upstream, st.Generator):
        _refuse_format(statement)
        now_ms = session.database.clock.now_ms()
        generator(upstream.kind, upstream.options, now_ms)  # refuses what cannot be
        return {
            "upstream": "generator",
            "kind": upstream.kind,
            "options": dict(upstream.options),
            "start_ms": now_ms,
        }
    assert isinstance(upstream, st.Files)
    _check_files(session)
    refuse_options("FILES", upstream.options, ())
    if statement.format is None:
        raise InvalidValue(
            "a source of FILES needs a FORMAT", hint="FORMAT JSON, CSV, TEXT, BYTES or PARQUET."
        )
    if any(each[0] not in ("partition", "offset", "timestamp") for each in statement.include):
        raise Unsupported("FILES have neither keys nor headers")
    if statement.key_format is not None:
        raise Unsupported("FILES have no keys: FORMAT KEY ... VALUE ... is not supported")
    columns = columns_of(statement.columns or (), statement.key)
    return {
        "upstream": "files",
        "pattern": upstream.pattern,
        "format": {"kind": statement.format.kind, **statement.format.options},
        "columns": columns.to_wire(),
        "include": [list(each) for each in statement.include],
        "envelope": (statement.envelope or "none").upper(),
        "key": list(statement.key),
    }


def _refuse_format(statement: st.CreateSource) -> None:
    if statement.columns or statement.format or statement.include:
        raise Unsupported("a LOAD GENERATOR has columns of its own: it takes none, and no FORMAT")
    if statement.envelope not in (None, "none"):
        raise Unsupported("a LOAD GENERATOR takes no ENVELOPE")


def _source(session: AdapterSession, definition: dict[str, Any]) -> Source:
    columns = Schema.from_wire(definition.get("columns", ()))
    source = source_of(definition, columns, session.database.files)
    if isinstance(source, Files):
        source.check()  # refuses what may not be read before anybody waits for it
    return source


def _check_files(session: AdapterSession) -> None:
    """Who may have the server read files: superusers, and members of a role below the roots."""
    require_role(session.catalog, session.user, "CREATE SOURCE FROM FILES")
    if not is_superuser(session.catalog, session.user) and session.database.files.roots is None:
        raise RefusedHere(
            "the operator of the server has not said which files may be read",
            hint="--files-root lists the places; until then only superusers read files.",
        )


def _own_rows(
    catalog: Catalog, source: Source, item: Item, statement: st.CreateSource
) -> dict[str, Any]:
    """Columns and key of the source's own collection; nothing where subsources have the rows."""
    if item.definition["upstream"] == "postgres":
        return {}
    if item.definition["upstream"] == "kafka":
        feed = topic_feed(catalog, source, item.name, item.definition)
        return {"schema": feed.schema, "key": feed.key}
    if item.definition["upstream"] == "files":
        if statement.tables is not None:
            raise Unsupported("FILES are one table: FOR TABLES is not supported")
        feed = file_feed(source, item.name, item.definition)
        return {"schema": feed.schema, "key": feed.key}
    if len(source.outputs) > 1:
        return {}
    if statement.tables is not None:
        raise InvalidValue(
            f"{item.definition['kind'].upper()} is one table: FOR TABLES is not for it"
        )
    (output,) = source.outputs
    assert output.schema is not None, "a generator has columns"
    return {"schema": output.schema, "key": output.key}


def _subsources(
    catalog: Catalog, source: Source, item: Item, statement: st.CreateSource
) -> tuple[Item, ...]:
    if statement.tables is None:
        return ()
    wanted = _wanted(catalog, source, item, statement)
    made = []
    for at, (output, schema_name, name) in enumerate(wanted):
        found: Output = source.outputs[output]
        assert found.schema is not None, "a generator has columns"
        number = item.number + 1 + at
        subsource = Item(
            number, "subsource", schema_name, name, found.schema, found.key, {"output": output}
        )
        made.append(_part(item, subsource))
    return tuple(made)


def _wanted(
    catalog: Catalog, source: Source, item: Item, statement: st.CreateSource
) -> list[tuple[int, str, str]]:
    """Which outputs become which relations: (output, schema, name)."""
    outputs = {output.name: at for at, output in enumerate(source.outputs)}
    if statement.tables == "all":
        return [(at, item.schema_name, name) for name, at in outputs.items()]
    assert isinstance(statement.tables, tuple)
    made: list[tuple[int, str, str]] = []
    for each in statement.tables:
        if each.upstream.last not in outputs:
            raise UndefinedColumn(
                f'"{each.upstream}" is no table of the source',
                hint=f"Its tables are {', '.join(outputs)}.",
                position=each.upstream.position,
            )
        if outputs[each.upstream.last] in [at for at, _, _ in made]:
            raise NameTaken(f'table "{each.upstream}" specified more than once')
        where = place(catalog, _beside(item, each.name))
        made.append((outputs[each.upstream.last], *where))
    return made


async def run_alter_source(
    session: AdapterSession, statement: st.AlterSource, _: Sequence[Any]
) -> Outcome:
    """ALTER ... SET (ACTIVE = ..., RETAIN HISTORY = ...), and RESET."""
    tag = f"ALTER {statement.kind.replace('-', ' ').upper()}"
    known = _OPTIONS if statement.kind == "source" else _OPTIONS[1:]
    refuse_options(f"a {statement.kind}", statement.set, known)
    refuse_options(f"a {statement.kind}", dict.fromkeys(statement.reset), known)
    store = session.database.store
    async with store.turn:
        access = session.access("ALTER SET", store.catalog)
        item = access.find(statement.name.parts)
        if item is None and statement.if_exists:
            return Done(tag)
        item = access.named(statement.name.parts, statement.name.position)
        if item.kind != statement.kind:
            raise WrongObjectType(f'"{item.name}" is not a {statement.kind.replace("-", " ")}')
        access.check("object", item)
        changed = _altered(item, statement)
        parts = [
            replace(part, retain_ms=changed.retain_ms)
            for part in store.catalog.parts_of(item.number)
        ]
        await store.change([changed, *parts])
        await session.database.work.altered(changed)
    return Done(tag)


def _altered(item: Item, statement: st.AlterSource) -> Item:
    kept = item.retain_ms
    if "retain_history" in statement.set:
        kept = retain_ms(statement.set)
    elif "retain_history" in statement.reset:
        kept = None
    active = item.definition.get("active", True)
    if "active" in statement.set:
        active = statement.set["active"]
        if not isinstance(active, bool):
            raise InvalidValue("ACTIVE takes true or false")
    elif "active" in statement.reset:
        active = True
    definition = dict(item.definition)
    if item.kind == "source":
        definition["active"] = active
    return replace(item, retain_ms=kept, definition=definition)


HANDLERS: Handlers = {
    st.CreateSource: run_create_source,
    st.AlterSource: run_alter_source,
}
