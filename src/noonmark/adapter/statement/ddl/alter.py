"""ALTER ... RENAME TO and COMMENT ON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Item
from noonmark.adapter.catalog.rights import Access, require_role
from noonmark.adapter.catalog.staging import Staging
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.session.commit import commit_staged
from noonmark.adapter.session.transaction import current
from noonmark.adapter.statement.ddl.common import Created, check_free, place, require_create, stored
from noonmark.adapter.statement.ddl.drop import find, missing
from noonmark.adapter.statement.handler import Handlers
from noonmark.errors import DuplicateObject, SerializationFailure, UndefinedColumn
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


#: ALTER TABLE takes whatever has rows, as in PostgreSQL.
_TABLE_LIKE = ("table", "view", "materialized-view", "source", "subsource", "progress", "index")
#: How often a statement by itself looks again when others changed the catalog in between.
_TRIES_MAX = 10


async def run_rename(session: AdapterSession, statement: st.Rename, _: Sequence[Any]) -> Outcome:
    """ALTER kind name RENAME TO new: whoever reads it goes on as if nothing had happened."""
    transaction = current(session)
    if transaction is not None:
        return await _rename(session, statement, transaction.stage())
    for _attempt in range(_TRIES_MAX):
        staging = Staging(session.database.catalog)
        done = await _rename(session, statement, staging)
        try:
            if staging.has_changed:
                await commit_staged(session.database, staging)
        except SerializationFailure:
            continue  # others changed the catalog meanwhile: look again
        return done
    raise SerializationFailure("others change the catalog all the time", hint="Try again.")


async def _rename(session: AdapterSession, statement: st.Rename, store: Staging) -> Done:
    tag = f"ALTER {statement.kind.replace('-', ' ').upper()}"
    async with store.turn:
        catalog = store.catalog
        access = session.access("ALTER RENAME", catalog)
        item = _altered(access, statement)
        if item is None:
            if not statement.if_exists:
                raise missing(statement.kind, statement.name)
            told = f'relation "{statement.name}" does not exist, skipping'
            return Done(tag, (Notice(told),))
        if item.kind in ("role", "schema"):
            raise DuplicateObject(f"a {item.kind} keeps its name")
        access.check("object", item)
        place(catalog, st.Name((item.schema_name, statement.new)))
        require_create(session, catalog, item.schema_name, "ALTER RENAME")
        renamed = replace(item, name=statement.new)
        check_free(session, Created((renamed,), lambda _: ()))
        await store.change([renamed])
    return Done(tag)


def _altered(access: Access, statement: st.Rename) -> Item | None:
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


HANDLERS: Handlers = {st.Rename: run_rename, st.Comment: run_comment}
