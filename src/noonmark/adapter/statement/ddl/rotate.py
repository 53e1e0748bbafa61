"""ALTER SECRET and ALTER CONNECTION: new values, without a restart.

Law (taken up): once the statement has answered, every source and sink above the secret or the
connection opens its next connection with the new value; what is under way ends first. A webhook
opens its secret at every post.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.aside import cancellable
from noonmark.adapter.catalog import Item
from noonmark.adapter.catalog.privilege import is_superuser
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.statement.ddl.connection import connection_options, secret_value, validate
from noonmark.adapter.statement.ddl.find import find, missing
from noonmark.adapter.statement.handler import Handlers
from noonmark.adapter.upstream.connection import check_connection, of_role, says_where
from noonmark.adapter.upstream.secret import seal
from noonmark.errors import ConfigError, SerializationFailure
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


async def run_alter_secret(
    session: AdapterSession, statement: st.AlterSecret, values: Sequence[Any]
) -> Outcome:
    """ALTER SECRET name AS expression."""
    store = session.database.store
    async with store.turn:
        access = session.access("ALTER SECRET", store.catalog)
        item = _found(access, "secret", statement.name, statement.if_exists)
        if item is None:
            return _skipped("ALTER SECRET", statement.name)
        sealed = await asyncio.to_thread(seal, secret_value(session, statement.value, values))
        await store.change([replace(item, definition={**item.definition, "sealed": sealed})])
    await session.database.work.restart_above(item.number)
    return Done("ALTER SECRET")


async def run_alter_connection(
    session: AdapterSession, statement: st.AlterConnection, _: Sequence[Any]
) -> Outcome:
    """ALTER CONNECTION name SET (...) or RESET (...)."""
    store = session.database.store
    validated = await _validated(session, statement) if statement.validate else None
    async with store.turn:
        access = session.access("ALTER CONNECTION", store.catalog)
        item = _found(access, "connection", statement.name, statement.if_exists)
        if item is None:
            return _skipped("ALTER CONNECTION", statement.name)
        changed = _altered(access, item, statement)
        if statement.validate and changed != validated:
            raise SerializationFailure(
                f'connection "{item.name}" was changed meanwhile', hint="Run the statement again."
            )
        await store.change([changed])
    await session.database.work.restart_above(item.number)
    return Done("ALTER CONNECTION")


async def _validated(session: AdapterSession, statement: st.AlterConnection) -> Item | None:
    """The connection as it is to be, which connects; outside of the catalog's turn."""
    catalog = session.database.store.catalog
    access = session.access("ALTER CONNECTION", catalog)
    item = _found(access, "connection", statement.name, statement.if_exists)
    if item is None:
        return None
    changed = _altered(access, item, statement)
    await cancellable(validate(catalog.changed([changed]), changed))
    return changed


def _found(access: Access, kind: str, name: st.Name, if_exists: bool) -> Item | None:
    item = find(access, kind, name)
    if item is None and not if_exists:
        raise missing(kind, name)
    if item is not None:
        access.check("object", item)
    return item


def _skipped(tag: str, name: st.Name) -> Done:
    return Done(tag, (Notice(f'"{name}" does not exist, skipping'),))


def _altered(access: Access, item: Item, statement: st.AlterConnection) -> Item:
    """The connection with other options, and the secrets that it needs then."""
    kind = item.definition["kind"]
    options: dict[str, Any] = dict(item.definition["options"])
    for name in statement.reset:
        if options.pop(name, None) is None:
            shown = name.replace("_", " ").upper()
            raise ConfigError(f"the connection has no option {shown} to reset")
    superuser = is_superuser(access.catalog, access.role)
    check_connection(kind, {**options, **statement.set}, names_files=superuser)
    new, _ = connection_options(access, statement.set)
    options |= new
    needs = [value["secret"] for value in options.values() if isinstance(value, Mapping)]
    by_role = of_role(access.catalog, item)
    if not superuser or says_where(kind, statement.set):
        by_role = not superuser
    definition = {**item.definition, "options": options, "by_role": by_role}
    return replace(item, definition=definition, needs=tuple(dict.fromkeys(needs)))


HANDLERS: Handlers = {
    st.AlterSecret: run_alter_secret,
    st.AlterConnection: run_alter_connection,
}
