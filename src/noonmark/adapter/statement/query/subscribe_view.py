"""SUBSCRIBE to a query that is too large to be asked again at every change: it is maintained.

The query becomes a materialized view of its own, in a schema that is not listed. It begins at the
time of the subscription and goes with it: when that ends, is cancelled, or its client is gone.
What a process that was killed left of such views is dropped when the next one starts.

Law: the changes of the view are those of the query (`compute.view`), so a subscription gives the
same updates whether its query is asked again or maintained; after progress p a new one AS OF p - 1
goes on exactly there, with a view of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from noonmark.adapter.aside import spark_modules, to_its_end
from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.item import TEMPORARY
from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.peek.mirrors import row_count
from noonmark.adapter.peek.planning import PlannedQuery
from noonmark.adapter.planner import PLANNER
from noonmark.adapter.schedule.definitions import view_definition
from noonmark.adapter.statement.ddl.drop import removal_of
from noonmark.adapter.statement.ddl.view import check_maintained, view_item
from noonmark.adapter.subscribe.follow import ROWS_MAX, is_linear
from noonmark.adapter.weight import weight_of
from noonmark.errors import NoonmarkError, ReadOnly, Unsupported
from noonmark.rows.pg.text import format_value
from noonmark.rows.types import Array, Enum, SqlType
from noonmark.sql.ir.asked import Now, asked
from noonmark.sql.ir.relation import Scan, distinct_names
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.adapter.session.session import AdapterSession


def is_maintained(session: AdapterSession, plan: PlannedQuery) -> bool:
    """Whether a subscription to a query needs a view of its own."""
    if plan.peek.system or is_linear(plan.peek):
        return False
    state = session.database.client.state
    return sum(row_count(state.collection(name)) for name in plan.peek.collections) > ROWS_MAX


async def begin_view(
    session: AdapterSession,
    query: st.QueryText,
    plan: PlannedQuery,
    values: Sequence[Any],
    time: int,
) -> Item:
    """Begin to maintain a subscription's query from a time on.

    Raises:
        Unsupported: it cannot be maintained; says why.
    """
    if session.database.read_only:
        raise ReadOnly(
            "cannot execute SUBSCRIBE to a query this large in a read-only server",
            detail="It needs a view of its own, which somebody has to write.",
            hint="Subscribe to a materialized view of it, or connect to the writer.",
        )
    query = _with_values(session.catalog, query, plan.parameters, values)
    return await to_its_end(_begin(session, query, plan, time))


async def _begin(
    session: AdapterSession, query: st.QueryText, plan: PlannedQuery, time: int
) -> Item:
    await spark_modules()
    # door: Spark's modules: a server starts without them
    from noonmark.compute.view.view import View

    database = session.database
    async with database.store.turn:
        catalog = database.catalog
        names = distinct_names([field.name for field in plan.fields])
        made = st.CreateMaterializedView(st.Name(("subscription",)), query, tuple(names))
        number = catalog.next_number
        weight = weight_of(catalog, query.text)
        item = await PLANNER.run(
            weight, view_item, session, catalog, number, made, "materialized-view"
        )
        item = replace(item, schema_name=TEMPORARY, name=f"subscription_{number}")
        definition = await PLANNER.run(weight, view_definition, catalog, item)
        if asked(definition.relation) - {Now}:
            raise Unsupported(
                "SUBSCRIBE to a large query with the session's own functions is not supported",
                hint="Write their values instead of them.",
            )
        view = View(database.client, database.started_spark, definition)
        await asyncio.to_thread(check_maintained, view, strict=False)
        await database.store.change([item], beside=lambda _: view.creation(time))
        await database.work.add_view(item)
    return item


def _with_values(
    catalog: Catalog, query: st.QueryText, types: Sequence[SqlType], values: Sequence[Any]
) -> st.QueryText:
    """The query with the values of its parameters written in their places."""
    if not values:
        return query

    def written(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Parameter):
            return node
        at = int(node.this.name) - 1
        value, kind = values[at], types[at]
        literal: exp.Expr = exp.null()
        if value is not None:
            literal = exp.Literal.string(format_value(value, kind))
        return exp.Cast(this=literal, to=_spelled(catalog, kind))

    tree = query.tree.copy().transform(written)
    return st.QueryText(tree.sql(dialect="postgres"), query.position, tree)


def _spelled(catalog: Catalog, kind: SqlType) -> exp.DataType:
    """A type as the text of the view has it, where a type of a user has its schema."""
    if isinstance(kind, Enum):
        item = catalog.by_number[kind.number]
        names = (exp.to_identifier(each, quoted=True) for each in (item.schema_name, item.name))
        schema, name = names
        dot = exp.Dot(this=schema, expression=name)
        return exp.DataType(this=exp.DType.USERDEFINED, kind=dot)
    if isinstance(kind, Array) and isinstance(kind.element, Enum):
        inner = _spelled(catalog, kind.element)
        return exp.DataType(this=exp.DType.ARRAY, expressions=[inner], nested=True)
    return exp.DataType.build(str(kind), dialect="postgres")


def view_peek(item: Item) -> Peek:
    """What is followed in place of the query."""
    return Peek.of(Scan(item.collection, item.schema))


async def end_view(database: Database, item: Item) -> None:
    """The subscription is over, however it ended."""
    await to_its_end(_end(database, [item.number]))


async def _end(database: Database, numbers: Sequence[int]) -> None:
    async with database.store.turn:
        found = database.catalog.by_number
        items = [found[number] for number in numbers if number in found]
        if not items:
            return  # it went with what it read
        commands = await removal_of(database, items)
        await database.work.remove(numbers)
        await database.store.change(removed=numbers, beside=lambda _: commands)


async def end_leftovers(database: Database) -> None:
    """Drop the views of subscriptions that ended with their process."""
    numbers = [item.number for item in database.catalog.items() if item.schema_name == TEMPORARY]
    if numbers:
        try:
            await _end(database, numbers)
        except NoonmarkError:  # the next start tries again
            return
