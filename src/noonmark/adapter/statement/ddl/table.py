"""CREATE TABLE, CREATE SCHEMA, ALTER TABLE ADD COLUMN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.item import TEMPORARY
from noonmark.adapter.catalog.privilege import with_defaults
from noonmark.adapter.catalog.type_names import TypeNames, remembering
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.planner import PLANNER
from noonmark.adapter.session.commit import creation
from noonmark.adapter.session.temporary import placed
from noonmark.adapter.session.transaction import current
from noonmark.adapter.statement.ddl.alter_table import retried, run_alter_table
from noonmark.adapter.statement.ddl.columns import DuplicateColumn, columns_of
from noonmark.adapter.statement.ddl.common import (
    Created,
    create,
    place,
    refuse_options,
    retain_ms,
    storage_parameters,
)
from noonmark.adapter.statement.ddl.constraints import constrained
from noonmark.adapter.statement.ddl.index import run_create_index
from noonmark.adapter.statement.ddl.like import copied_from
from noonmark.adapter.statement.ddl.sequence import serials
from noonmark.adapter.statement.handler import Handlers, alone
from noonmark.adapter.table.checks import named
from noonmark.adapter.table.generated import with_generated
from noonmark.adapter.weight import statement_weight
from noonmark.errors import (
    DuplicateObject,
    SchemaMismatch,
    Unsupported,
    UsageError,
    WrongObjectType,
)
from noonmark.persist.log import command as c
from noonmark.persist.log.state import schema_to_wire
from noonmark.rows.schema import Column
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


async def run_create_table(
    session: AdapterSession, statement: st.CreateTable, _: Sequence[Any]
) -> Outcome:
    """CREATE TABLE; one that is LIKE others is made with its indexes, in one commit."""
    if not statement.likes:
        return await _make(session, statement, {})
    return await retried(session, lambda: _make_like(session, statement))


async def _make_like(session: AdapterSession, statement: st.CreateTable) -> Outcome:
    copied = copied_from(session, statement)
    done = await _make(session, copied.statement, copied.comments)
    if not done.notices:  # of IF NOT EXISTS
        for index in copied.indexes:
            await run_create_index(session, index, ())
    return done


async def _make(
    session: AdapterSession, statement: st.CreateTable, comments: Mapping[str, str]
) -> Done:
    """An empty collection that sessions write."""
    options, told = storage_parameters(statement.options)
    refuse_options("a table", options, ("retain_history",))
    made = await placed(session, statement)

    def build(catalog: Catalog, number: int) -> Created:
        schema_name, name = place(catalog, made.name)
        definition: dict[str, Any] = {"text": session.text, "defaults": {}}
        schema = columns_of(statement.columns, statement.key)
        if statement.checks:
            types = TypeNames(session.access("SHOW", catalog))
            definition["checks"] = named(name, schema, statement.checks, (), types)
        if statement.on_commit_drop:
            definition["on_commit"] = "drop"
        item = Item(
            number,
            "table",
            schema_name,
            name,
            schema,
            statement.key,
            definition,
            owner=session.user,
            retain_ms=retain_ms(options),
            comments=dict(comments),
        )
        access = session.access("SHOW", catalog)
        item = with_generated(access, item, statement.columns, session.functions)
        item = constrained(session, catalog, item, statement.uniques, statement.foreigns)
        item, more = serials(session, catalog, item, statement.columns, number + 1)
        item = remembering(access, item)
        return Created((item, *more), lambda time: (creation(item, time),))

    async def make(catalog: Catalog, number: int) -> Created:
        # Conditions and expressions are planned where that disturbs nobody.
        return await PLANNER.run(statement_weight(session), build, catalog, number)

    done, _created = await create(session, "CREATE TABLE", made.name, statement.if_not_exists, make)
    return replace(done, notices=(*told, *done.notices))


async def run_add_column(
    session: AdapterSession, statement: st.AddColumn, values: Sequence[Any]
) -> Outcome:
    """ALTER TABLE ADD COLUMN; in a transaction the table is made anew."""
    transaction, domain = current(session), statement.column.domain
    plain = domain is None or (domain.default is None and not domain.is_constrained)
    if plain and (transaction is None or transaction.implicit):
        return await alone(_evolve)(session, statement, values)
    action = st.AddColumnAction(statement.column, (), statement.if_not_exists)
    return await run_alter_table(session, st.AlterTable(statement.name, (action,)), values)


async def _evolve(session: AdapterSession, statement: st.AddColumn, _: Sequence[Any]) -> Outcome:
    """The rows that are there have NULL in the column: nothing of them is written."""
    store, spec = session.database.store, statement.column
    async with store.turn:
        access = session.access("ALTER TABLE ADD COLUMN", store.catalog)
        item = access.named(statement.name.parts, statement.name.position)
        if item.kind != "table":
            raise WrongObjectType(f'"{item.name}" is not a table')
        access.check("object", item)
        if spec.name in item.schema and statement.if_not_exists:
            skipped = f'column "{spec.name}" of relation "{item.name}" already exists, skipping'
            return Done("ALTER TABLE", (Notice(skipped),))
        if spec.name in item.schema:
            raise DuplicateColumn(f'column "{spec.name}" of relation "{item.name}" already exists')
        try:
            column = Column(spec.name, spec.type, spec.nullable, spec.domain)
            schema = item.schema.extend([column])
        except SchemaMismatch as error:
            error.position = spec.position
            raise
        collection = session.database.client.state.collection(item.collection).id
        await store.change(
            [replace(item, schema=schema)],
            beside=lambda _: (c.Evolve(collection, schema_to_wire(schema)),),
        )
    return Done("ALTER TABLE")


class DuplicateSchema(DuplicateObject, id="duplicate_schema", sqlstate="42P06"):
    """A schema of that name exists."""


class ReservedName(UsageError, id="reserved_name", sqlstate="42939"):
    """A name that only the system gives."""


async def run_create_schema(
    session: AdapterSession, statement: st.CreateSchema, _: Sequence[Any]
) -> Outcome:
    """CREATE SCHEMA."""
    store, name = session.store, statement.name.last
    async with store.turn:
        session.access("CREATE SCHEMA", store.catalog).check("database", store.catalog.database)
        if name == TEMPORARY or name.startswith("pg_"):
            raise ReservedName(
                f'unacceptable schema name "{name}"',
                detail='The prefix "pg_" is reserved for system schemas.',
                position=statement.name.position,
            )
        if store.catalog.has_schema(name):
            if not statement.if_not_exists:
                raise DuplicateSchema(f'schema "{name}" already exists')
            return Done("CREATE SCHEMA", (Notice(f'schema "{name}" already exists, skipping'),))
        item = Item(store.catalog.next_number, "schema", "", name, owner=session.user)
        await store.change([with_defaults(store.catalog, item)])
    return Done("CREATE SCHEMA")


async def run_create_database(
    _: AdapterSession, statement: st.CreateDatabase, __: Sequence[Any]
) -> Outcome:
    """CREATE DATABASE: a location is one database."""
    raise Unsupported(
        "CREATE DATABASE is not supported",
        detail=f'A location is one database; "{statement.name}" needs a location of its own.',
        hint="Start another server with another --data, or use CREATE SCHEMA.",
    )


HANDLERS: Handlers = {
    st.CreateTable: run_create_table,
    st.AddColumn: run_add_column,
    st.CreateSchema: run_create_schema,
    st.CreateDatabase: run_create_database,
}
