"""GRANT, REVOKE, default privileges and owners.

An owner grants rights on what is theirs. Default privileges are those that others get on what a
role makes from then on; they are part of the role. Who gives an object away must be able to become
its new owner, and the new owner must be able to have made it there, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.item import RELATIONS, Kind
from noonmark.adapter.catalog.privilege import (
    DEFAULT_KINDS,
    DEFAULTS,
    EVERYBODY,
    PRIVILEGES,
    is_superuser,
    owner_of,
)
from noonmark.adapter.catalog.rights import Access, require_role
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.statement.ddl.common import stored
from noonmark.adapter.statement.ddl.find import find, missing
from noonmark.adapter.statement.ddl.role import members
from noonmark.adapter.statement.handler import Handlers
from noonmark.errors import DependentObjects, InvalidValue, UndefinedObject, WrongObjectType
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: Other spellings of privileges.
_SPELLED = {"temp": "temporary"}


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
        _check_roles(catalog, statement.roles)
        if statement.member_of:
            changed = members(session, catalog, statement, add=add)
        else:
            access = session.access("GRANT", catalog)
            changed = [
                _granted(access, item, statement, add=add)
                for name in statement.objects
                for item in _objects(access, statement.kind, name)
            ]
        await store.change(changed)
    return Done(tag)


def _check_roles(catalog: Catalog, names: Iterable[str]) -> None:
    for name in names:
        if name != EVERYBODY:
            catalog.role(name)


#: What GRANT ... ON ALL ... IN SCHEMA is about.
_EVERY: dict[str, tuple[Kind, ...]] = {
    "all tables": tuple(sorted(RELATIONS - {"sequence"})),
    "all sequences": ("sequence",),
}


def _objects(access: Access, kind: str, name: st.Name) -> list[Item]:
    """What rights are granted on."""
    if kind == "table":  # which stands for every relation
        return [access.named(name.parts, name.position)]
    every = _EVERY.get(kind)
    sought = kind if every is None else "schema"
    found = find(access, sought, name)
    if found is None:
        raise missing(sought, name)
    if every is None:
        return [found]
    catalog = access.catalog
    return [item for item in catalog.items(*every) if item.schema_name == name.last]


def _rights(privileges: Sequence[str], known: Sequence[str]) -> frozenset[str]:
    """The privileges of a statement; ALL where it names none."""
    return frozenset([_SPELLED.get(each, each).upper() for each in privileges] or known)


def _granted(access: Access, item: Item, statement: st.Grant | st.Revoke, *, add: bool) -> Item:
    known = PRIVILEGES.get(item.kind, ())
    if not known:
        raise WrongObjectType(f"{item} has no privileges to grant")
    access.check("object", item)
    item = stored(access.catalog, item)
    rights = _rights(statement.privileges, known)
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


# -- default privileges --------------------------------------------------------------------------


async def run_default_privileges(
    session: AdapterSession, statement: st.AlterDefaultPrivileges, _: Sequence[Any]
) -> Outcome:
    """ALTER DEFAULT PRIVILEGES."""
    store = session.store
    kind = DEFAULT_KINDS[statement.kind]
    rights = _rights(statement.privileges, PRIVILEGES[kind])
    if rights - set(PRIVILEGES[kind]):
        raise InvalidValue(
            f"invalid privilege type {min(rights - set(PRIVILEGES[kind]))} for {kind}",
            hint=f"It has {', '.join(PRIVILEGES[kind])}.",
        )
    async with store.turn:
        catalog = store.catalog
        _check_roles(catalog, statement.roles)
        for schema in statement.schemas:
            if not catalog.has_schema(schema):
                raise UndefinedObject(f'schema "{schema}" does not exist')
        changed: list[Item] = []
        for name in statement.makers or (session.user,):
            require_role(catalog, session.user, "ALTER DEFAULT PRIVILEGES", name)
            role = stored(catalog.changed(changed), catalog.role(name))
            entries = _entries(role, statement, kind, rights)
            changed.append(replace(role, definition={**role.definition, DEFAULTS: entries}))
        await store.change(changed)
    return Done("ALTER DEFAULT PRIVILEGES")


def _entries(
    role: Item, statement: st.AlterDefaultPrivileges, kind: str, rights: frozenset[str]
) -> list[list[Any]]:
    """The default privileges of a role after the statement: [schema, kind, grantee, rights]."""
    before = {
        (schema, of, grantee): frozenset(has)
        for schema, of, grantee, has in role.definition.get(DEFAULTS, ())
    }
    for schema in statement.schemas or ("",):
        for grantee in statement.roles:
            key = (schema, kind, grantee)
            has = before.get(key, frozenset())
            before[key] = has | rights if statement.adds else has - rights
    return [[*key, sorted(has)] for key, has in sorted(before.items()) if has]


# -- owners --------------------------------------------------------------------------------------


async def run_alter_owner(
    session: AdapterSession, statement: st.AlterOwner, _: Sequence[Any]
) -> Outcome:
    """ALTER kind name OWNER TO role."""
    tag = f"ALTER {statement.kind.replace('-', ' ').upper()}"
    store = session.store
    async with store.turn:
        catalog = store.catalog
        access = session.access("ALTER OWNER", catalog)
        item = find(access, statement.kind, statement.name)
        if item is None and statement.if_exists:
            return Done(tag, (Notice(f'"{statement.name}" does not exist, skipping'),))
        if item is None:
            raise missing(statement.kind, statement.name)
        access.check("object", item)
        if item.part_of:
            whole = catalog.by_number[item.part_of]
            raise DependentObjects(
                f"{item} has the owner of {whole}", hint=f"Alter the owner of {whole} instead."
            )
        owner = _new_owner(session, catalog, statement.owner)
        _check_place(access, owner, item)
        await store.change(_given(catalog, [stored(catalog, item)], owner))
    return Done(tag)


def _new_owner(session: AdapterSession, catalog: Catalog, name: str) -> str:
    owner = catalog.role(name).name
    require_role(catalog, session.user, "SET ROLE", owner)
    return owner


def _check_place(access: Access, owner: str, item: Item) -> None:
    """The new owner must be able to make it where it is; a superuser puts it anywhere."""
    theirs = (
        replace(access, role=owner) if not is_superuser(access.catalog, access.role) else access
    )
    if item.kind == "schema":
        theirs.check("database", access.catalog.database)
    elif item.schema_name:
        schema = access.catalog.schema(item.schema_name)
        assert schema is not None, "an item is in a schema"
        theirs.check("schema", schema)


def _given(catalog: Catalog, items: Sequence[Item], owner: str) -> list[Item]:
    """Items, their parts and their indexes under another owner; a grant to it is its own now."""
    numbers = {item.number for item in items}
    with_them = [
        each
        for each in catalog.items()
        if each.part_of in numbers or (each.kind == "index" and each.definition["on"] in numbers)
    ]
    return [replace(each, owner=owner) for each in (*items, *with_them)]


async def run_reassign(
    session: AdapterSession, statement: st.ReassignOwned, _: Sequence[Any]
) -> Outcome:
    """REASSIGN OWNED BY roles TO role."""
    store = session.store
    async with store.turn:
        catalog = store.catalog
        owner = _new_owner(session, catalog, statement.owner)
        for name in statement.roles:
            require_role(catalog, session.user, "REASSIGN OWNED", catalog.role(name).name)
        theirs = [
            item
            for item in catalog.items()
            if item.kind not in ("role", "system") and owner_of(catalog, item) in statement.roles
        ]
        await store.change([replace(item, owner=owner) for item in theirs])
    return Done("REASSIGN OWNED")


HANDLERS: Handlers = {
    st.Grant: run_grant,
    st.Revoke: run_revoke,
    st.AlterDefaultPrivileges: run_default_privileges,
    st.AlterOwner: run_alter_owner,
    st.ReassignOwned: run_reassign,
}
