"""CREATE INDEX: a copy of a relation, kept current and sorted by some of its columns.

The copy is a maintained collection: a look-up by those columns opens only the pages that can hold
them, however large the relation is. An index on a view keeps the view's rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from noonmark.adapter.aside import spark_modules
from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.session.commit import staged_client
from noonmark.adapter.statement.ddl.alter_table import check_unique, retried
from noonmark.adapter.statement.ddl.columns import check_key
from noonmark.adapter.statement.ddl.common import Created, create, refuse_options, retain_ms
from noonmark.adapter.statement.ddl.constraints import with_unique
from noonmark.adapter.statement.ddl.view import maintained
from noonmark.adapter.statement.handler import Handlers
from noonmark.adapter.table.constraints import uniques_of
from noonmark.errors import NameTaken, UndefinedColumn, Unsupported, WrongObjectType
from noonmark.persist.log import command as c
from noonmark.rows import types as t
from noonmark.rows.types import quote_name
from noonmark.sql.plan.row import name_of
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


async def run_create_index(
    session: AdapterSession, statement: st.CreateIndex, _: Sequence[Any]
) -> Outcome:
    """CREATE [DEFAULT] INDEX."""
    refuse_options("an index", statement.options, ("retain_history",))
    database = session.database
    on = _target(session, statement)
    columns = _columns(on, statement)
    if statement.unique:
        return await retried(session, partial(_unique, session, statement, columns))
    name = _free_name(session.catalog, on, columns, default=not statement.expressions)
    if statement.name is not None:  # an index is in the schema of what it is on
        name = st.Name((on.schema_name, statement.name.last), statement.name.position)

    async def make(catalog: Catalog, number: int) -> Created:
        item = Item(
            number,
            "index",
            on.schema_name,
            name.last,
            on.schema,
            columns,
            {
                "text": session.text,
                "on": on.number,
                "query": f"SELECT * FROM {quote_name(on.name)}",
                "names": {on.name: [on.number, len(on.schema)]},
            },
            needs=(on.number,),
            owner=session.user,
            retain_ms=retain_ms(statement.options),
        )
        await spark_modules()
        view = maintained(session, catalog, item, await staged_client(session))

        def beside(_: int) -> Iterable[c.AnyCommand]:
            return view.creation()

        return Created((item,), beside)

    done, created = await create(session, "CREATE INDEX", name, statement.if_not_exists, make)
    if created is not None and session.store is database.store:
        await database.work.add_view(created.items[0])
    return done


async def _unique(
    session: AdapterSession, statement: st.CreateIndex, columns: tuple[str, ...]
) -> Outcome:
    """CREATE UNIQUE INDEX: no two rows of the table have the same values there."""
    store = session.store
    async with store.turn:
        access = session.access("CREATE INDEX", store.catalog)
        item = access.resolve("relation", statement.on.parts, statement.on.position)
        if item.kind != "table":
            raise Unsupported(f"a unique index on {item} is not supported")
        name = None if statement.name is None else statement.name.last
        if statement.if_not_exists and name in {each.name for each in uniques_of(item)}:
            told = f'relation "{name}" already exists, skipping'
            return Done("CREATE INDEX", (Notice(told, sqlstate=NameTaken.sqlstate),))
        written = st.UniqueText(
            columns, name, statement.nulls_distinct, position=statement.on.position
        )
        made = with_unique(store.catalog, item, written, is_constraint=False)
        await check_unique(session, made)
        await store.change([made])
    return Done("CREATE INDEX")


def _target(session: AdapterSession, statement: st.CreateIndex) -> Item:
    access = session.access("CREATE INDEX")
    item = access.named(statement.on.parts, statement.on.position)
    if not item.is_relation or item.is_virtual or not item.schema.columns:
        raise WrongObjectType(f"cannot create an index on {item}", position=statement.on.position)
    access.check("relation", item)
    return item


def _columns(on: Item, statement: st.CreateIndex) -> tuple[str, ...]:
    """The columns of the index; of a default index those that the relation is told apart by."""
    names = []
    for each in statement.expressions:
        if not isinstance(each.tree, exp.Column) or each.tree.table:
            raise Unsupported(
                "an index on an expression is not supported",
                hint="Give the expression a name in a view, and index that column.",
                position=each.position,
            )
        name = name_of(each.tree.this)
        if name not in on.schema:
            raise UndefinedColumn(f'column "{name}" does not exist', position=each.position)
        if name not in names:
            names.append(name)
    columns = tuple(names) or on.key or on.schema.names
    for name in columns:
        check_key(name, on.schema[name].type)
        if isinstance(on.schema[name].type, t.Array | t.Record):
            raise Unsupported(
                f'column "{name}" of type {on.schema[name].type} cannot be in an index'
            )
    return columns


def _free_name(catalog: Catalog, on: Item, columns: tuple[str, ...], *, default: bool) -> st.Name:
    """A name for an index that was given none."""
    stem = f"{on.name}_primary_idx" if default else f"{on.name}_{'_'.join(columns)}_idx"
    number, name = 1, stem
    while (on.schema_name, name) in catalog.by_name:
        number, name = number + 1, f"{stem}{number}"
    return st.Name((on.schema_name, name))


HANDLERS: Handlers = {st.CreateIndex: run_create_index}
