"""CREATE TABLE AS and SELECT INTO: a table, and the rows of a query in it, in one commit.

Law: the rows are those of the query at the time of the commit, as of INSERT ... SELECT. So what
cannot be known to be unchanged at that time (a source) cannot be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.contract import Done, Outcome
from noonmark.adapter.names import with_columns
from noonmark.adapter.planner import PLANNER
from noonmark.adapter.session.commit import creation
from noonmark.adapter.session.temporary import placed
from noonmark.adapter.statement.ddl.alter_table import retried
from noonmark.adapter.statement.ddl.common import Created, create, place, refuse_options, retain_ms
from noonmark.adapter.statement.ddl.path import in_path
from noonmark.adapter.statement.dml.columns import inserted
from noonmark.adapter.statement.dml.insert import InsertPlan
from noonmark.adapter.statement.dml.plan import Planning, Source, bound_values
from noonmark.adapter.statement.dml.write import insert
from noonmark.adapter.statement.handler import Described, Describers, Handlers
from noonmark.adapter.weight import weight_of
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import SqlType
from noonmark.sql.ir.relation import Project
from noonmark.sql.ir.scalar import column
from noonmark.sql.parse import Query
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: How often the statement is run again when others wrote in between.


@dataclass(frozen=True)
class Typed(st.Statement):
    """One that was prepared: the types of its parameters are known."""

    statement: st.CreateTableAs
    types: tuple[SqlType, ...]


def _planned(
    session: AdapterSession, statement: st.CreateTableAs, types: Sequence[SqlType | None]
) -> tuple[Schema, Source, tuple[SqlType, ...]]:
    """The columns of the table, and what is read."""
    planning = Planning(session, "INSERT", types)
    relation = planning.query(statement.query.tree).output()
    names = relation.schema.names
    named = with_columns(Query(relation, names, relation, ()), statement.columns).relation
    schema = Schema(tuple(_column(each) for each in named.schema))
    all_ = tuple(column(at, each) for at, each in enumerate(named.schema))
    source = planning.read(Project(named, all_, schema.names), statement.query.position)
    return schema, source, planning.statement.parameter_types()


def _column(column: Column) -> Column:
    """A column of a query, as one of a table."""
    return Column(column.name, column.type, domain=column.domain)


async def _plan(
    session: AdapterSession, statement: st.CreateTableAs, types: Sequence[SqlType | None]
) -> tuple[Schema, Source, tuple[SqlType, ...]]:
    weight = weight_of(session.catalog, statement.query.text)
    return await PLANNER.run(weight, _planned, session, statement, types)


async def describe(
    session: AdapterSession, statement: st.CreateTableAs | Typed, types: Sequence[SqlType | None]
) -> Described:
    """Its parameters; it gives no rows."""
    inner = statement.statement if isinstance(statement, Typed) else statement
    _, _, found = await _plan(session, inner, types)
    return Described(found, None, Typed(inner, found))


async def run(
    session: AdapterSession, statement: st.CreateTableAs | Typed, values: Sequence[Any]
) -> Outcome:
    """Make the table with its rows; by itself, again where others wrote in between."""
    types = statement.types if isinstance(statement, Typed) else ()
    inner = statement.statement if isinstance(statement, Typed) else statement
    inner = in_path(session, inner)
    return await retried(session, lambda: _make(session, inner, types, values))


async def _make(
    session: AdapterSession,
    statement: st.CreateTableAs,
    types: Sequence[SqlType | None],
    values: Sequence[Any],
) -> Outcome:
    refuse_options("a table", statement.options, ("retain_history",))
    # Before the table is there: its own name may be that of what is read.
    schema, source, parameters = await _plan(session, statement, types)
    made = await placed(session, statement)

    async def make(catalog: Catalog, number: int) -> Created:
        schema_name, name = place(catalog, made.name)
        definition: dict[str, Any] = {"text": session.text, "defaults": {}}
        if statement.on_commit_drop:
            definition["on_commit"] = "drop"
        retain = retain_ms(statement.options)
        item = Item(number, "table", schema_name, name, schema, (), definition,
                    owner=session.user, retain_ms=retain)  # fmt: skip
        return Created((item,), lambda time: (creation(item, time),))

    done, created = await create(session, "CREATE TABLE", made.name, statement.if_not_exists, make)
    if created is None or not statement.with_data:
        return replace(done, tag="CREATE TABLE AS")
    item = session.catalog.by_number[created.items[0].number]
    plan = InsertPlan(session.catalog, item, parameters, (), source, None, None)
    given = bound_values(values)
    count = await inserted(session, plan, given)
    if count is None:
        count = len(await insert(session, plan, given))
    return Done(f"SELECT {count}", done.notices)


HANDLERS: Handlers = {st.CreateTableAs: run, Typed: run}
DESCRIBERS: Describers = dict.fromkeys((st.CreateTableAs, Typed), describe)
