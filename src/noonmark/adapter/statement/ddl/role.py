"""CREATE, ALTER and GRANT of roles, which are for superusers; SET ROLE, for their members.

The first role that somebody makes, or the first password of the built-in superuser, ends the time
in which every user is a superuser: whoever did it becomes a role of their own then, a superuser, so
that nobody locks themselves out.
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
    PREDEFINED,
    is_open,
    memberships,
)
from noonmark.adapter.catalog.rights import require_role
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.password import make_verifier
from noonmark.adapter.statement.ddl.common import stored
from noonmark.adapter.statement.handler import Handlers
from noonmark.errors import (
    DuplicateObject,
    InsufficientPrivilege,
    InvalidValue,
    NoonmarkError,
    UsageError,
)
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.adapter.session.session import AdapterSession

_SALT_BYTES = 16


def verifier_of(database: Database, password: str) -> str:
    """What is kept of a new password."""
    entropy = database.clock.fresh_id().encode()
    return str(make_verifier(password, hashlib.sha256(entropy).digest()[:_SALT_BYTES]))


def _attributes(
    database: Database, statement: st.CreateRole | st.AlterRole, before: dict[str, Any]
) -> dict[str, Any]:
    after = dict(before)
    for name in ("login", "superuser", "inherit"):
        if (value := getattr(statement, name)) is not None:
            after[name] = value
    if statement.password is not None:
        after.pop("verifier", None)
        if statement.password:
            after["verifier"] = verifier_of(database, statement.password)
    return after


async def run_create_role(
    session: AdapterSession, statement: st.CreateRole, _: Sequence[Any]
) -> Outcome:
    """CREATE ROLE."""
    store, name = session.store, statement.name
    async with store.turn:
        catalog = store.catalog
        require_role(catalog, session.user, "CREATE ROLE")
        if name == EVERYBODY or name.startswith("pg_"):
            raise InvalidValue(f'role name "{name}" is reserved')
        if name in catalog.all_roles():
            if not statement.if_not_exists:
                raise DuplicateObject(f'role "{name}" already exists')
            return Done("CREATE ROLE", (Notice(f'role "{name}" already exists, skipping'),))
        attributes = _attributes(session.database, statement, {"login": True})
        role = Item(catalog.next_number, "role", "", name, definition=attributes)
        items, told = _ending_the_open_time(session, catalog, role)
        await store.change(items)
    return Done("CREATE ROLE", told)


def _ending_the_open_time(
    session: AdapterSession, catalog: Catalog, role: Item
) -> tuple[list[Item], tuple[Notice, ...]]:
    """A role, and beside it whoever would be nobody once there are roles."""
    if not is_open(catalog) or session.login_user in (role.name, BUILT_IN):
        return [role], ()
    own = {"login": True, "superuser": True}
    number = catalog.next_number + 1
    also = Item(number, "role", "", session.login_user, definition=own)
    return [role, also], (Notice(f'role "{session.login_user}" was made a superuser'),)


async def run_alter_role(
    session: AdapterSession, statement: st.AlterRole, _: Sequence[Any]
) -> Outcome:
    """ALTER ROLE; everybody may change their own password."""
    store = session.store
    async with store.turn:
        catalog = store.catalog
        role = catalog.role(statement.name)
        others = (statement.login, statement.superuser, statement.inherit)
        if others != (None, None, None) or session.user != role.name:
            require_role(catalog, session.user, "ALTER ROLE")
        if role.name in PREDEFINED:
            raise InsufficientPrivilege(f'role "{role.name}" cannot be altered')
        if role.name == BUILT_IN and others != (None, None, None):
            raise UsageError(
                f'role "{BUILT_IN}" is always a superuser that may log in',
                hint=f"ALTER ROLE {BUILT_IN} PASSWORD '...' gives it a password.",
            )
        after = _attributes(session.database, statement, dict(role.definition))
        changed = replace(stored(catalog, role), definition=after)
        items, told = _ending_the_open_time(session, catalog, changed)
        if is_open(catalog.changed([changed])):
            items, told = [changed], ()
        await store.change(items)
    return Done("ALTER ROLE", told)


def members(
    session: AdapterSession, catalog: Catalog, statement: st.Grant | st.Revoke, *, add: bool
) -> list[Item]:
    """GRANT role TO role: the roles with other memberships."""
    require_role(catalog, session.user, "GRANT ROLE")
    changed: list[Item] = []
    for name in statement.roles:
        role = catalog.role(name)
        if role.name in PREDEFINED:
            raise UsageError(f'role "{name}" cannot be a member of another')
        of = set(role.definition.get("member_of", ()))
        for each in statement.member_of:
            catalog.role(each)
            if add and name in memberships(catalog, each, inherited=False):
                raise UsageError(f'role "{name}" is a member of role "{each}"')
            of = of | {each} if add else of - {each}
        known = {**role.definition, "member_of": sorted(of)}
        role = stored(catalog.changed(changed), role)
        changed.append(replace(role, definition=known))
    return changed


async def first_password(database: Database, password: str) -> None:
    """Give the built-in superuser a password, unless it has one already."""
    store = database.store
    async with store.turn:
        role = store.catalog.role(BUILT_IN)
        if role.definition.get("verifier") is not None:
            return
        known = {**role.definition, "verifier": verifier_of(database, password)}
        await store.change([replace(stored(store.catalog, role), definition=known)])


# -- which role a session is ---------------------------------------------------------------------


async def run_set_role(session: AdapterSession, statement: st.SetRole, _: Sequence[Any]) -> Outcome:
    """SET ROLE, which members may; RESET ROLE goes back to who the session is."""
    role = statement.role or session.session_user
    if statement.role is not None:
        session.catalog.role(role)
        _refuse_public(role)
        require_role(session.catalog, session.session_user, "SET ROLE", role)
    session.become(role)
    return Done(statement.tag)


async def run_set_session_authorization(
    session: AdapterSession, statement: st.SetSessionAuthorization, _: Sequence[Any]
) -> Outcome:
    """SET SESSION AUTHORIZATION, which who came in as a superuser may."""
    role = statement.role or session.login_user
    if statement.role is not None and role != session.login_user:
        session.catalog.role(role)
        _refuse_public(role)
        require_role(session.catalog, session.login_user, "SET SESSION AUTHORIZATION")
    session.become(role, session=True)
    return Done(statement.tag)


def _refuse_public(role: str) -> None:
    if role == EVERYBODY:
        raise _no_role(role)


def _no_role(role: str) -> NoonmarkError:
    return InvalidValue(f'role "{role}" does not exist')


HANDLERS: Handlers = {st.CreateRole: run_create_role, st.AlterRole: run_alter_role}
SESSION_HANDLERS: Handlers = {
    st.SetRole: run_set_role,
    st.SetSessionAuthorization: run_set_session_authorization,
}
