"""CREATE INDEX: a copy of a relation, kept current and sorted by some of its columns.

The copy is a maintained collection: a look-up by those columns opens only the pages that can hold
them, however large the relation is. An index on a view keeps the view's rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from noonmark.adapter.aside import spark_modules
from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.type_names import TypeNames, remembering
from noonmark.adapter.catalog.user_types import type_of
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.planner import PLANNER
from noonmark.adapter.session.commit import staged_client
from noonmark.adapter.statement.ddl.alter_table import check_unique, retried
from noonmark.adapter.statement.ddl.columns import check_key
from noonmark.adapter.statement.ddl.common import Created, create, refuse_options, retain_ms
from noonmark.adapter.statement.ddl.constraints import unique_name, with_unique
from noonmark.adapter.statement.ddl.index_items import over
from noonmark.adapter.statement.ddl.view import maintained
from noonmark.adapter.statement.handler import Handlers
from noonmark.adapter.table.constraints import Unique, uniques_of
from noonmark.adapter.table.keyed import element, planned, predicate
from noonmark.adapter.weight import statement_weight, weight_of
from noonmark.errors import NameTaken, UndefinedColumn, Unsupported, WrongObjectType
from noonmark.persist.log import command as c
from noonmark.rows import types as t
from noonmark.rows.types import quote_name
from noonmark.sql.plan.row import Statement, name_of
from noonmark.sql.plan.shown import NAMELESS, shown_name
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
    elements = _elements(on, statement)
    if statement.unique:
        return await retried(session, partial(_unique, session, statement, elements))
    name = _free_name(session.catalog, on, elements, default=not statement.expressions)
    if statement.name is not None:  # an index is in the schema of what it is on
        name = st.Name((on.schema_name, statement.name.last), statement.name.position)

    async def make(catalog: Catalog, number: int) -> Created:
        item = Item(
            number,
            "index",
            on.schema_name,
            name.last,
            on.schema,
            tuple(each.name for each in elements if each.name is not None),
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
        if any(each.name is None for each in elements) or statement.where is not None:
            build = partial(_computed, session, item, on, elements, statement.where)
            item = await PLANNER.run(statement_weight(session), build)
        await spark_modules()
        client = await staged_client(session)
        weight = weight_of(catalog, item.definition["query"])
        view = await PLANNER.run(weight, maintained, session, catalog, item, client)

        def beside(_: int) -> Iterable[c.AnyCommand]:
            return view.creation()

        return Created((item,), beside)

    done, created = await create(session, "CREATE INDEX", name, statement.if_not_exists, make)
    if created is not None and session.store is database.store:
        await database.work.add_view(created.items[0])
    return done


@dataclass(frozen=True)
class Element:
    """A column of a relation, by name, or an expression over its row."""

    name: str | None
    text: str
    label: str
    tree: exp.Expr


def _computed(
    session: AdapterSession,
    item: Item,
    on: Item,
    elements: Sequence[Element],
    where: st.ScalarText | None,
) -> Item:
    """The index with the values of its expressions as more columns, of some rows alone."""
    catalog = session.store.catalog
    types = TypeNames(session.access("CREATE INDEX", catalog))
    statement = Statement({}, session=session.functions, types=types)
    for each in elements:
        scalar = element(on.name, on.schema, each.tree, statement)
        check_key(each.text, scalar.type)
    if where is not None:
        predicate(on.name, on.schema, where.tree, statement)
    definition = {
        **item.definition,
        "elements": [[each.name, each.text] for each in elements],
        "where": None if where is None else where.text,
        "types": types.pins(),
    }
    made = {written: type_of(each) for written, each in types.used.items()}
    needs = {on.number, *(each.number for each in types.used.values())}
    found = replace(item, definition=definition, types=made, needs=tuple(sorted(needs)))
    return over(catalog, found, on)


async def _unique(
    session: AdapterSession, statement: st.CreateIndex, elements: tuple[Element, ...]
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
        columns = tuple(each.name for each in elements if each.name is not None)
        if len(columns) == len(elements) and statement.where is None:
            written = st.UniqueText(
                columns, name, statement.nulls_distinct, position=statement.on.position
            )
            made = with_unique(store.catalog, item, written, is_constraint=False)
        else:
            build = partial(_with_keyed, session, item, statement, elements, columns)
            made = await PLANNER.run(statement_weight(session), build)
        await check_unique(session, made)
        await store.change([made])
    return Done("CREATE INDEX")


def _with_keyed(
    session: AdapterSession,
    item: Item,
    statement: st.CreateIndex,
    elements: Sequence[Element],
    columns: tuple[str, ...],
) -> Item:
    """The table with a unique index of expressions, or of some rows."""
    catalog = session.store.catalog
    access = session.access("CREATE INDEX", catalog)
    labels = [each.label for each in elements]
    where = None if statement.where is None else statement.where.text
    made = Unique(
        unique_name(catalog, item, statement.name, labels),
        columns,
        statement.nulls_distinct,
        False,
        tuple(each.text for each in elements),
        where,
        item.name,
    )
    statement_ = Statement({}, session=session.functions, types=TypeNames(access))
    found = planned(item.schema, made, statement_)
    for text, scalar in zip(made.elements, found.scalars, strict=True):
        check_key(text, scalar.type)
    uniques = [*item.definition.get("uniques", ()), made.stored()]
    return remembering(access, replace(item, definition={**item.definition, "uniques": uniques}))


def _target(session: AdapterSession, statement: st.CreateIndex) -> Item:
    access = session.access("CREATE INDEX")
    item = access.named(statement.on.parts, statement.on.position)
    if not item.is_relation or item.is_virtual or not item.schema.columns:
        raise WrongObjectType(f"cannot create an index on {item}", position=statement.on.position)
    access.check("relation", item)
    return item


def _elements(on: Item, statement: st.CreateIndex) -> tuple[Element, ...]:
    """What the index is by; a default index is by those columns that rows are told apart by."""
    found: list[Element] = []
    for each in statement.expressions:
        tree = each.tree
        if isinstance(tree, exp.Column) and not tree.table:
            name = name_of(tree.this)
            if name not in on.schema:
                raise UndefinedColumn(f'column "{name}" does not exist', position=each.position)
            if name not in [other.name for other in found]:
                found.append(_column(name))
        else:
            label = shown_name(tree)
            label = "expr" if label == NAMELESS else label
            found.append(Element(None, each.text, label, tree))
    found = found or [_column(name) for name in on.key or on.schema.names]
    for one in found:
        if one.name is not None:
            _check_column(on, one.name)
    return tuple(found)


def _column(name: str) -> Element:
    tree = exp.column(exp.to_identifier(name, quoted=True))
    return Element(name, quote_name(name), name, tree)


def _check_column(on: Item, name: str) -> None:
    kind = on.schema[name].type
    check_key(name, kind)
    if isinstance(kind, t.Array | t.Record):
        raise Unsupported(f'column "{name}" of type {kind} cannot be in an index')


def _free_name(
    catalog: Catalog, on: Item, elements: Sequence[Element], *, default: bool
) -> st.Name:
    """A name for an index that was given none."""
    labels = "_".join(each.label for each in elements)
    stem = f"{on.name}_primary_idx" if default else f"{on.name}_{labels}_idx"
    number, name = 1, stem
    while (on.schema_name, name) in catalog.by_name:
        number, name = number + 1, f"{stem}{number}"
    return st.Name((on.schema_name, name))


HANDLERS: Handlers = {st.CreateIndex: run_create_index}
