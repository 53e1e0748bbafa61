"""DROP: an object, its collections and what belongs to it, in one commit.

Law (restrict): without CASCADE nothing is dropped that something else needs; the error names all of
it. Law (cascade): with CASCADE everything that needs it goes, in the same commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.aside import spark_modules
from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.item import BUILT_IN, DATABASE, PUBLIC, TEMPORARY
from noonmark.adapter.catalog.rights import Access, require_role
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.session.commit import STAGED
from noonmark.adapter.session.transaction import current
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
    NoonmarkError,
    UndefinedObject,
    UndefinedTable,
    WrongObjectType,
)
from noonmark.persist.log import command as c
from noonmark.rows.types import quote_name
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.adapter.session.session import AdapterSession
    from noonmark.compute.view.owned import Owned

#: What the names of these kinds are called in errors, as in PostgreSQL.
_RELATION_KINDS = ("table", "source", "view", "materialized-view", "sequence")


async def run_drop(session: AdapterSession, statement: st.Drop, _: Sequence[Any]) -> Outcome:
    """DROP kind names [CASCADE]."""
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
                told.append(Notice(f'{_shown(statement.kind)} "{name}" does not exist, skipping'))
            elif item is None:
                raise missing(statement.kind, name)
            else:
                if item.kind != "role":
                    access.check("object", item)
                targets.append(item)
        going = doomed(catalog, targets, statement.cascade)
        if len(going) > len(targets):
            told += _cascaded(targets, going)
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


def _hint(verb: str, kind: str) -> str | None:
    """Which statement is for such an object, where there is one."""
    if verb not in ("DROP", "ALTER") or kind in ("system", "errors", "progress"):
        return None
    return f"Use {verb} {kind.replace('-', ' ').upper()}."


def find(access: Access, kind: str, name: st.Name) -> Item | None:
    """The item of a kind and name; whoever asks checks its right.

    Raises:
        WrongObjectType: there is one of that name, and it is something else.
    """
    catalog = access.catalog
    if kind == "role":
        return catalog.all_roles().get(name.last)
    if kind == "schema":
        return catalog.schema(name.last)
    if kind == "database":
        return catalog.database if name.last == DATABASE else None
    item = access.find(name.parts)
    if item is None:
        return None
    same = item.kind == kind or (kind == "source" and item.kind in ("subsource", "progress"))
    if item.kind == "system" or not same:
        raise WrongObjectType(
            f'"{item.name}" is not a {kind.replace("-", " ")}',
            hint=_hint(access.statement.partition(" ")[0], item.kind),
            position=name.position,
        )
    return item


def missing(kind: str, name: st.Name) -> NoonmarkError:
    """Nothing of that kind has the name."""
    message = f'{_shown(kind)} "{name}" does not exist'
    if kind in _RELATION_KINDS:
        return UndefinedTable(message, position=name.position)
    return UndefinedObject(message, position=name.position)


def _shown(kind: str) -> str:
    return kind.replace("-", " ")


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


def _cascaded(targets: list[Item], doomed: list[Item]) -> list[Notice]:
    asked = {item.number for item in targets}
    more = [
        item
        for item in doomed
        if item.number not in asked and not item.part_of and item.schema_name != TEMPORARY
    ]
    if not more:
        return []
    if len(more) == 1:
        return [Notice(f"drop cascades to {more[0]}")]
    lines = "\n".join(f"drop cascades to {item}" for item in reversed(more))
    return [Notice(f"drop cascades to {len(more)} other objects", detail=lines)]


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
