"""DROP: an object, its collections and what belongs to it, in one commit.

Law (restrict): without CASCADE nothing is dropped that something else needs; the error names all of
it. Law (cascade): with CASCADE everything that needs it goes, in the same commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.aside import spark_modules
from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.item import BUILT_IN, PUBLIC, TEMPORARY
from noonmark.adapter.catalog.rights import Access, require_role
from noonmark.adapter.catalog.user_types import type_of, types_in
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.session.commit import STAGED
from noonmark.adapter.session.transaction import current
from noonmark.adapter.statement.ddl.alter_column import drop_column
from noonmark.adapter.statement.ddl.alter_table import retried, rows_of
from noonmark.adapter.statement.ddl.find import find, missing
from noonmark.adapter.statement.handler import Handlers
from noonmark.adapter.table.constraints import uniques_of
from noonmark.adapter.table.needed import (
    named,
    refuse_columns,
    refuse_defaults,
    refuse_referenced,
)
from noonmark.adapter.upstream.prepare import leftovers
from noonmark.errors import (
    DependentObjects,
    InTransaction,
)
from noonmark.persist.log import command as c
from noonmark.rows.types import quote_name
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.adapter.session.session import AdapterSession
    from noonmark.compute.view.owned import Owned


async def run_drop(session: AdapterSession, statement: st.Drop, _: Sequence[Any]) -> Outcome:
    """DROP kind names [CASCADE]."""
    if statement.cascade and any(True for _ in _columns_of(session, statement)):
        return await retried(session, lambda: _drop_with_columns(session, statement))
    return await _drop(session, statement, ())


def _columns_of(session: AdapterSession, statement: st.Drop) -> Iterator[tuple[int, str]]:
    """The columns of tables that stay, and that are of a type that goes: table and name."""
    catalog = session.store.catalog
    access = session.access("DROP", catalog)
    if statement.kind not in ("type", "domain", "schema"):
        return
    schemas: set[str] = set()
    types: list[Item] = []
    for item in (find(access, statement.kind, name) for name in statement.names):
        if item is not None:
            access.check("object", item)
            schemas |= {item.name} if item.kind == "schema" else set()
            types += [item] if item.kind == "type" else []
    types += [item for item in catalog.items("type") if item.schema_name in schemas]
    going = {type_of(item) for item in types}
    for table in catalog.items("table"):
        for column in table.schema if table.schema_name not in schemas else ():
            if going.intersection(types_in(column)):
                yield table.number, column.name


async def _drop_with_columns(session: AdapterSession, statement: st.Drop) -> Outcome:
    """The columns of a type go with it."""
    store, gone = session.store, []
    async with store.turn:
        while (found := next(_columns_of(session, statement), None)) is not None:
            table = store.catalog.by_number[found[0]]
            gone.append(f"column {found[1]} of {named(table)}")
            action = st.DropColumn(found[1], False, True)
            made, _ = await drop_column(session, table, action, await rows_of(session, table))
            if store.catalog.by_number.get(made.number) is not made:
                await store.change([made])
    return await _drop(session, statement, gone)


async def _drop(session: AdapterSession, statement: st.Drop, gone: Sequence[str]) -> Outcome:
    tag = f"DROP {statement.kind.replace('-', ' ').upper()}"
    store, told = session.store, []
    async with store.turn:
        catalog = store.catalog
        access = session.access("DROP", catalog)
        if statement.kind == "role":
            require_role(catalog, session.user, "DROP ROLE")
        targets: list[Item] = []
        for name in statement.names:
            if statement.kind == "index" and (on := _unique_index(access, name)) is not None:
                access.check("object", on)
                await store.change([without_unique(on, name.last)])
                continue
            item = find(access, statement.kind, name)
            if item is None and statement.if_exists:
                told.append(Notice(f"{missing(statement.kind, name).message}, skipping"))
            elif item is None:
                raise missing(statement.kind, name)
            else:
                if item.kind != "role":
                    access.check("object", item)
                targets.append(item)
        going = doomed(catalog, targets, statement.cascade)
        told += _cascaded(targets, going, gone)
        behind = leftovers(catalog, going)
        if going:
            await remove(session, going)
    # Outside of the turn: who is asked may not answer.
    for why in await asyncio.gather(*(each.remove() for each in behind)):
        if why is not None:
            told.append(Notice(why, severity="WARNING"))
    return Done(tag, tuple(told))


def _unique_index(access: Access, name: st.Name) -> Item | None:
    """The table that has a unique index of that name."""
    schemas = name.parts[-2:-1] or tuple(access.path)
    for item in access.catalog.items("table"):
        for unique in uniques_of(item):
            if unique.name == name.last and item.schema_name in schemas:
                if unique.is_constraint:
                    raise DependentObjects(
                        f"cannot drop index {unique.name} because constraint {unique.name} on "
                        f"{named(item)} requires it",
                        hint=f"You can drop constraint {unique.name} on {named(item)} instead.",
                    )
                return item
    return None


def without_unique(item: Item, name: str) -> Item:
    """The table without a unique index."""
    left = [each.stored() for each in uniques_of(item) if each.name != name]
    return replace(item, definition={**item.definition, "uniques": left})


def doomed(
    catalog: Catalog, targets: list[Item], cascade: bool, *, within: Item | None = None
) -> list[Item]:
    """Everything that goes; raises `DependentObjects` where more would go than was asked for.

    `within` is a source that stays, though parts of it go.
    """
    for item in targets:
        if within is not None and item.part_of == within.number:
            continue
        if item.kind == "sequence" and not item.definition.get("identity"):
            continue  # it may go before its table
        if item.part_of and catalog.by_number[item.part_of] not in targets:
            owner = catalog.by_number[item.part_of]
            if item.kind == "sequence":
                column = item.definition["column"]
                raise DependentObjects(
                    f"cannot drop {named(item)} because column {column} of {named(owner)} "
                    "requires it",
                    hint=f"You can drop column {column} of {named(owner)} instead.",
                )
            raise DependentObjects(
                f"cannot drop {item} because {owner} requires it",
                hint=f"You can drop {owner} instead.",
            )
    for item in targets:
        always = item.kind == "role" and (item.name == BUILT_IN or not item.number)
        if always or item.kind == "database" or (item.kind == "schema" and item.name == PUBLIC):
            raise DependentObjects(f"cannot drop {item} because the database system requires it")
    _refuse_owners(catalog, targets)
    refuse_columns(catalog, targets, cascade)
    refuse_referenced(catalog, targets)
    own = [*targets, *_contents(catalog, targets, cascade)]
    numbers = [item.number for item in own]
    needing = [item for item in catalog.dependents(numbers) if item.number not in numbers]
    if not cascade and any(map(_stands_alone, needing)):
        dependents_refused(catalog, targets, "drop")
    parts = [part for number in numbers for part in catalog.parts_of(number)]
    parts += [part for each in needing for part in catalog.parts_of(each.number)]
    going = list({item.number: item for item in (*needing, *parts, *own)}.values())
    if targets:
        refuse_defaults(catalog, going, named(targets[0]), cascade)
    return going


def _stands_alone(item: Item) -> bool:
    """An index goes with what it is on, a subscription's view with what it reads."""
    return item.kind != "index" and item.schema_name != TEMPORARY


def _refuse_owners(catalog: Catalog, targets: list[Item]) -> None:
    """A role that owns something, or has rights on it, stays."""
    for role in (item for item in targets if item.kind == "role"):
        owned = [f"owner of {item}" for item in catalog.items() if item.owner == role.name]
        granted = [f"privileges for {item}" for item in catalog.items() if role.name in item.grants]
        if owned or granted:
            raise DependentObjects(
                f'role "{role.name}" cannot be dropped because some objects depend on it',
                detail="\n".join([*owned, *granted]),
                hint="Drop those objects, or REVOKE the privileges.",
            )


def _is_told(item: Item) -> bool:
    """Whether it is named where a schema is dropped; what belongs to another object is not."""
    return not item.part_of and item.kind != "index"


def _contents(catalog: Catalog, targets: list[Item], cascade: bool) -> list[Item]:
    """What is in the schemas among the targets, which only CASCADE drops."""
    schemas = {item.name for item in targets if item.kind == "schema"}
    inside = [item for item in catalog.items() if item.schema_name in schemas]
    if inside and not cascade:
        raise DependentObjects(
            f"cannot drop schema {min(schemas)} because other objects depend on it",
            detail="\n".join(
                f"{item} depends on schema {quote_name(item.schema_name)}"
                for item in inside
                if _is_told(item)
            ),
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )
    return inside


def dependents_refused(catalog: Catalog, targets: list[Item], verb: str) -> None:
    """Raise `DependentObjects` if something needs one of these."""
    needing = [x for x in catalog.dependents([t.number for t in targets]) if _stands_alone(x)]
    if not needing:
        return
    lines = []
    for each in reversed(needing):
        on = [catalog.by_number[n] for n in (*each.needs, each.part_of) if n in catalog.by_number]
        below = [x for x in on if x in targets or x in needing or x.part_of]
        lines += [f"{each} depends on {x}" for x in below[:1]]
    raise DependentObjects(
        f"cannot {verb} {targets[0]} because other objects depend on it",
        detail="\n".join(lines),
        hint="Use DROP ... CASCADE to drop the dependent objects too.",
    )


def _cascaded(targets: list[Item], doomed: list[Item], columns: Sequence[str]) -> list[Notice]:
    """What is told of all that goes beside what was named."""
    asked = {item.number for item in targets}
    more = [
        item
        for item in doomed
        if item.number not in asked and not item.part_of and item.schema_name != TEMPORARY
    ]
    what = [*columns, *map(str, reversed(more))]
    if not what:
        return []
    if len(what) == 1:
        return [Notice(f"drop cascades to {what[0]}")]
    lines = "\n".join(f"drop cascades to {each}" for each in what)
    return [Notice(f"drop cascades to {len(what)} other objects", detail=lines)]


async def remove(session: AdapterSession, doomed: Sequence[Item]) -> None:
    """End the work of items and drop them; the caller has the catalog's turn."""
    database = session.database
    numbers = [item.number for item in doomed]
    transaction = current(session)
    if transaction is not None:
        for item in doomed:
            if item.kind not in STAGED:
                raise InTransaction(
                    f"{item} cannot be dropped inside a transaction block",
                    detail="What it has outside of this database could not be brought back.",
                    hint="COMMIT, and drop it by itself.",
                )
        await session.store.change(removed=numbers)
        transaction.forget(item.collection for item in doomed)
        return
    commands = await removal_of(database, doomed)
    await database.work.remove(numbers)
    try:
        await database.store.change(removed=numbers, beside=lambda _: commands)
    except BaseException:
        await database.work.take_up(numbers)  # nothing was dropped: it goes on
        raise


async def removal_of(database: Database, doomed: Iterable[Item]) -> tuple[c.AnyCommand, ...]:
    """What removes the collections of items."""
    holds = database.client.state.holds

    made: list[c.AnyCommand] = []
    views: list[Owned] = []
    releases = []
    for item in doomed:
        if item.kind == "sink":
            from noonmark.sink.run import hold_id  # door: Kafka's client: only who has sinks

            held = hold_id(item.definition["id"])
            releases += [c.Release(held)] if held in holds else []
        worker = database.work.views.get(item.number)
        if worker is not None:
            views.append((await asyncio.to_thread(worker.taken_up)).owned)
        elif item.is_stored and item.collection in database.client.state.names:
            made.append(c.Drop(database.client.state.collection(item.collection).id))
    if not views:  # a server that has none drops tables without Spark's modules
        return (*releases, *made)
    await spark_modules()
    from noonmark.compute.view.owned import removal  # door: Spark's modules: read by now

    # Before what they are on goes, and takes them with it.
    return (*releases, *removal(views), *made)


HANDLERS: Handlers = {st.Drop: run_drop}
