"""CREATE, ALTER and DROP of roles are for superusers; GRANT and REVOKE for owners.

The first role that somebody makes ends the time in which every user is a superuser: whoever made
it becomes a role of their own then, a superuser, so that nobody locks themselves out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.privilege import (
    BUILT_IN,
    EVERYBODY,
    OWN,
    PRIVILEGES,
    is_superuser,
    memberships,
)
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.password import make_verifier
from noonmark.adapter.run.ddl_drop import find, missing
from noonmark.adapter.run.handler import Handlers
from noonmark.errors import (
    DuplicateObject,
    InsufficientPrivilege,
    InvalidValue,
    UsageError,
    WrongObjectType,
)
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session import AdapterSession

_SALT_BYTES = 16
#: Other spellings of privileges.
_SPELLED = {"temp": "temporary"}


def _require_superuser(session: AdapterSession, catalog: Catalog, what: str) -> None:
    if not is_superuser(catalog, session.user):
        raise InsufficientPrivilege(f"permission denied to {what}", hint="Ask a superuser.")


def _verifier(session: AdapterSession, password: str) -> str:
    entropy = session.database.clock.fresh_id().encode()
    return str(make_verifier(password, hashlib.sha256(entropy).digest()[:_SALT_BYTES]))


def _attributes(
    session: AdapterSession, statement: st.CreateRole | st.AlterRole, before: dict[str, Any]
) -> dict[str, Any]:
    after = dict(before)
    if statement.login is not None:
        after["login"] = statement.login
    if statement.superuser is not None:
        after["superuser"] = statement.superuser
    if statement.password is not None:
        after.pop("verifier", None)
        if statement.password:
            after["verifier"] = _verifier(session, statement.password)
    return after


async def run_create_role(
    session: AdapterSession, statement: st.CreateRole, _: Sequence[Any]
) -> Outcome:
    """CREATE ROLE."""
    store, name = session.store, statement.name
    async with store.turn:
        catalog = store.catalog
        _require_superuser(session, catalog, "create role")
        if name == EVERYBODY:
            raise InvalidValue(f'role name "{name}" is reserved')
        if name in catalog.roles() or name == BUILT_IN:
            if not statement.if_not_exists:
                raise DuplicateObject(f'role "{name}" already exists')
            return Done("CREATE ROLE", (Notice(f'role "{name}" already exists, skipping'),))
        attributes = _attributes(session, statement, {"login": True})
        items = [Item(catalog.next_number, "role", "", name, definition=attributes)]
        told: tuple[Notice, ...] = ()
        if not catalog.roles() and session.user not in (name, BUILT_IN):
            own = {"login": True, "superuser": True}
            items.append(Item(catalog.next_number + 1, "role", "", session.user, definition=own))
            told = (Notice(f'role "{session.user}" was made a superuser'),)
        await store.change(items)
    return Done("CREATE ROLE", told)


async def run_alter_role(
    session: AdapterSession, statement: st.AlterRole, _: Sequence[Any]
) -> Outcome:
    """ALTER ROLE; everybody may change their own password."""
    store = session.store
    async with store.turn:
        role = store.catalog.role(statement.name)
        own_password = statement.login is None and statement.superuser is None
        if not (own_password and session.user == role.name):
            _require_superuser(session, store.catalog, "alter role")
        after = _attributes(session, statement, dict(role.definition))
        await store.change([replace(role, definition=after)])
    return Done("ALTER ROLE")


# -- GRANT and REVOKE ----------------------------------------------------------------------------


async def run_grant(session: AdapterSession, statement: st.Grant, _: Sequence[Any]) -> Outcome:
    """GRANT privileges ON objects TO roles, or roles TO roles."""
    return await _change_rights(session, statement, "GRANT", add=True)


async def run_revoke(session: AdapterSession, statement: st.Revoke, _: Sequence[Any]) -> Outcome:
    """REVOKE, as `run_grant`."""
    return await _change_rights(session, statement, "REVOKE", add=False)


async def _change_rights(
    session: AdapterSession, statement: st.Grant | st.Revoke, tag: str, *, add: bool
) -> Outcome:
    store = session.store
    async with store.turn:
        catalog = store.catalog
        for name in statement.roles:
            if name != EVERYBODY:
                catalog.role(name)
        if statement.member_of:
            changed = _members(session, catalog, statement, add=add)
        else:
            changed = [
                _granted(session, catalog, item, statement, add=add)
                for name in statement.objects
                for item in _objects(catalog, statement.kind, name)
            ]
        await store.change(changed)
    return Done(tag)


def _members(
    session: AdapterSession, catalog: Catalog, statement: st.Grant | st.Revoke, *, add: bool
) -> list[Item]:
    _require_superuser(session, catalog, "grant roles")
    changed = []
    for name in statement.roles:
        role = catalog.role(name)
        of = set(role.definition.get("member_of", ()))
        for each in statement.member_of:
            catalog.role(each)
            if add and name in memberships(catalog, each):
                raise UsageError(f'role "{name}" is a member of role "{each}"')
            of = of | {each} if add else of - {each}
        changed.append(replace(role, definition={**role.definition, "member_of": sorted(of)}))
    return changed


def _objects(catalog: Catalog, kind: str, name: st.Name) -> list[Item]:
    """What rights are granted on."""
    if kind == "table":  # which stands for every relation
        return [catalog.resolve(name.parts, name.position)]
    found = find(catalog, "schema" if kind == "all tables" else kind, name)
    if found is None:
        raise missing("schema" if kind == "all tables" else kind, name)
    if kind != "all tables":
        return [found]
    return [item for item in catalog.items() if item.schema_name == name.last and item.is_relation]


def _granted(
    session: AdapterSession,
    catalog: Catalog,
    item: Item,
    statement: st.Grant | st.Revoke,
    *,
    add: bool,
) -> Item:
    session.require(OWN, item)
    known = PRIVILEGES.get(item.kind, ())
    if not known:
        raise WrongObjectType(f"{item} has no privileges to grant")
    if not item.number:  # what is always there becomes an item of its own
        item = replace(item, number=catalog.next_number)
    asked = [_SPELLED.get(right, right).upper() for right in statement.privileges]
    rights = frozenset(asked or known)
    if statement.kind == "all tables":
        rights &= frozenset(known)  # a view takes no INSERT
    if rights - set(known):
        raise InvalidValue(
            f"invalid privilege type {min(rights - set(known))} for {item.kind.replace('-', ' ')}",
            hint=f"It has {', '.join(known)}.",
        )
    grants = dict(item.grants)
    for role in statement.roles:
        has = grants.get(role, frozenset())
        grants[role] = has | rights if add else has - rights
    return replace(item, grants={role: has for role, has in grants.items() if has})


HANDLERS: Handlers = {
    st.CreateRole: run_create_role,
    st.AlterRole: run_alter_role,
    st.Grant: run_grant,
    st.Revoke: run_revoke,
}
