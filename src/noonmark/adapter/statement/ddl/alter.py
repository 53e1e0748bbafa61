"""ALTER ... RENAME TO, ALTER ... SET SCHEMA, ALTER ... SWAP WITH and COMMENT ON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.rights import Access, require_role
from noonmark.adapter.catalog.staging import Staging
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.session.commit import commit_staged
from noonmark.adapter.session.transaction import current
from noonmark.adapter.statement.ddl.common import Created, check_free, place, require_create, stored
from noonmark.adapter.statement.ddl.find import find, missing
from noonmark.adapter.statement.handler import Handlers
from noonmark.errors import (
    DuplicateObject,
    NameTaken,
    SerializationFailure,
    UndefinedColumn,
    UndefinedTable,
    Unsupported,
    WrongObjectType,
)
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


#: What ALTER calls a relation where it is not there.
RELATIONS = ("table", "view", "materialized-view", "sequence", "index")
#: ALTER TABLE takes whatever has rows, as in PostgreSQL.
_TABLE_LIKE = ("table", "view", "materialized-view", "source", "subsource", "progress", "index")
#: How often a statement by itself looks again when others changed the catalog in between.
_TRIES_MAX = 10


async def run_rename(session: AdapterSession, statement: st.Rename, _: Sequence[Any]) -> Outcome:
    """ALTER kind name RENAME TO new: whoever reads it goes on as if nothing had happened."""
    return await _staged(session, partial(_rename, session, statement))


async def run_set_schema(
    session: AdapterSession, statement: st.SetSchema, _: Sequence[Any]
) -> Outcome:
    """ALTER kind name SET SCHEMA schema: what belongs to it moves with it."""
    return await _staged(session, partial(_set_schema, session, statement))


async def run_swap(session: AdapterSession, statement: st.Swap, _: Sequence[Any]) -> Outcome:
    """ALTER kind name SWAP WITH other: in one commit each has the name of the other.

    What reads one of them goes on reading it, under its new name: only who asks by name from now on
    gets the other.
    """
    return await _staged(session, partial(_swap, session, statement))


async def _staged(session: AdapterSession, change: Callable[[Staging], Awaitable[Done]]) -> Done:
    """A change of the catalog, in the transaction or in a commit of its own."""
    transaction = current(session)
    if transaction is not None:
        return await change(transaction.stage())
    for _attempt in range(_TRIES_MAX):
        staging = Staging(session.database.catalog)
        done = await change(staging)
        try:
            if staging.has_changed:
                await commit_staged(session.database, staging)
        except SerializationFailure:
            continue  # others changed the catalog meanwhile: look again
        return done
    raise SerializationFailure("others change the catalog all the time", hint="Try again.")


async def _rename(session: AdapterSession, statement: st.Rename, store: Staging) -> Done:
    async with store.turn:
        catalog = store.catalog
        access = session.access("ALTER RENAME", catalog)
        item = _altered(access, statement)
        if item is None:
            return _skipped(statement)
        if item.kind in ("role", "schema"):
            raise DuplicateObject(f"a {item.kind} keeps its name")
        access.check("object", item)
        place(catalog, st.Name((item.schema_name, statement.new)))
        require_create(session, catalog, item.schema_name, "ALTER RENAME")
        renamed = replace(item, name=statement.new)
        check_free(session, Created((renamed,), lambda _: ()))
        await store.change([renamed])
    return Done(_tag(statement))


async def _set_schema(session: AdapterSession, statement: st.SetSchema, store: Staging) -> Done:
    async with store.turn:
        catalog = store.catalog
        access = session.access("ALTER SET SCHEMA", catalog)
        item = _altered(access, statement)
        if item is None:
            return _skipped(statement)
        if item.kind in ("role", "schema", "index"):
            raise WrongObjectType(
                f"{item.kind} {item.name} has no schema of its own",
                hint="An index is where its relation is." if item.kind == "index" else None,
            )
        access.check("object", item)
        if (owner := catalog.by_number.get(item.part_of)) is not None:
            what = "an owned sequence" if item.kind == "sequence" else "a part of a source"
            raise Unsupported(
                f"cannot move {what} into another schema",
                detail=f'{item.kind.capitalize()} "{item.name}" is linked to '
                f'{owner.kind} "{owner.name}".',
            )
        schema, _ = place(catalog, st.Name((statement.schema, item.name)))
        require_create(session, catalog, schema, "ALTER SET SCHEMA")
        if schema != item.schema_name:
            moved = [replace(each, schema_name=schema) for each in _together(catalog, item)]
            if (schema, item.name) in catalog.by_name:
                raise NameTaken(
                    f'relation "{item.name}" already exists in schema "{schema}"', name=item.name
                )
            check_free(session, Created(tuple(moved), lambda _: ()))
            await store.change(moved)
    return Done(_tag(statement))


def _together(catalog: Catalog, item: Item) -> list[Item]:
    """An object, its parts that lie beside it, and the indexes on them: they share a schema."""
    parts = [item, *catalog.parts_of(item.number)]
    own = {each.number for each in parts}
    on = [each for each in catalog.items("index") if each.definition.get("on") in own]
    return [each for each in (*parts, *on) if each.schema_name == item.schema_name]


def _skipped(statement: st.Rename | st.SetSchema) -> Done:
    if not statement.if_exists:
        if statement.kind in RELATIONS:
            raise UndefinedTable(
                f'relation "{statement.name}" does not exist', position=statement.name.position
            )
        raise missing(statement.kind, statement.name)
    told = f'relation "{statement.name}" does not exist, skipping'
    return Done(_tag(statement), (Notice(told),))


def _tag(statement: st.Rename | st.SetSchema | st.Swap) -> str:
    return f"ALTER {statement.kind.replace('-', ' ').upper()}"


async def _swap(session: AdapterSession, statement: st.Swap, store: Staging) -> Done:
    async with store.turn:
        catalog = store.catalog
        access = session.access("ALTER RENAME", catalog)
        one = _altered(access, statement)
        if one is None:
            raise missing(statement.kind, statement.name)
        named = replace(statement, name=st.Name((one.schema_name, statement.other)))
        other = _altered(access, named)
        if other is None:
            raise missing(statement.kind, named.name)
        if one.kind != other.kind or one.kind in ("role", "schema"):
            kinds = " and ".join(sorted({each.kind.replace("-", " ") for each in (one, other)}))
            raise WrongObjectType(f"names of {kinds} cannot be swapped")
        access.check("object", one, other)
        require_create(session, catalog, one.schema_name, "ALTER RENAME")
        if one.number != other.number:
            await store.change([replace(one, name=other.name), replace(other, name=one.name)])
    return Done(_tag(statement))


def _altered(access: Access, statement: st.Rename | st.SetSchema | st.Swap) -> Item | None:
    if statement.kind == "table":
        item = access.find(statement.name.parts)
        if item is not None and item.kind in _TABLE_LIKE:
            return item
    return find(access, statement.kind, statement.name)


async def run_comment(session: AdapterSession, statement: st.Comment, _: Sequence[Any]) -> Outcome:
    """COMMENT ON an object or a column."""
    store = session.store
    async with store.turn:
        item = _commented(session, statement)
        place_ = statement.column or ""
        comments = {**item.comments, place_: statement.text or ""}
        kept = {where: text for where, text in comments.items() if text}
        await store.change([replace(item, comments=kept)])
    return Done("COMMENT")


def _commented(session: AdapterSession, statement: st.Comment) -> Item:
    catalog, name = session.catalog, statement.name
    access = session.access("COMMENT", catalog)
    if statement.kind == "column":
        item = access.resolve("object", name.parts, name.position)
        if statement.column not in item.schema:
            raise UndefinedColumn(
                f'column "{statement.column}" of relation "{item.name}" does not exist',
                position=name.position,
            )
        return item
    found = find(access, statement.kind, name)
    if found is None:
        raise missing(statement.kind, name)
    if found.kind == "role":
        require_role(catalog, session.user, "COMMENT ON ROLE")
    else:
        access.check("object", found)
    return stored(catalog, found)


HANDLERS: Handlers = {
    st.Rename: run_rename,
    st.SetSchema: run_set_schema,
    st.Swap: run_swap,
    st.Comment: run_comment,
}
