"""Rights: who has what on an item.

A superuser has every right, an owner every right on what is theirs; everybody else has what was
granted to them, to a role whose rights they inherit, or to everybody ("public").

Law (inherit): a role has the rights of the roles that it is a member of, directly or not, as far as
each role on the way has INHERIT. Membership alone lets a role become the other with SET ROLE. To be
a superuser is inherited by nobody.

Law (owner): an owner that is no role (it is gone, or there were no roles when the item was made)
counts as the built-in superuser.

Roles are optional: while nobody made one and the built-in superuser has no password, every user
that the front end lets in is a superuser.

Which right a statement needs is said in one table: `catalog.rights`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import BUILT_IN, EVERYBODY, PREDEFINED, RELATIONS, Item

#: What ALL means, by kind of item; kinds that are not here have no rights to grant.
PRIVILEGES: dict[str, tuple[str, ...]] = {
    "table": ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"),
    "source": ("SELECT",),
    "subsource": ("SELECT",),
    "progress": ("SELECT",),
    "errors": ("SELECT",),
    "view": ("SELECT",),
    "materialized-view": ("SELECT",),
    "sequence": ("USAGE", "SELECT", "UPDATE"),
    "connection": ("USAGE",),
    "secret": ("USAGE",),
    "type": ("USAGE",),
    "schema": ("USAGE", "CREATE"),
    "database": ("CREATE", "TEMPORARY", "CONNECT", "USAGE"),
}
#: Kinds that GRANT must name; without one it is about a relation.
GRANTED_BY_KIND = ("sequence", "type", "connection", "secret", "schema", "database")
#: What ALTER DEFAULT PRIVILEGES calls the kinds of objects.
DEFAULT_KINDS = {"tables": "table", "sequences": "sequence", "schemas": "schema", "types": "type",
                 "connections": "connection", "secrets": "secret"}  # fmt: skip
#: Where a role remembers the rights on what it makes.
DEFAULTS = "default_privileges"
#: Whose members may have the server read its own files.
READ_FILES = "pg_read_server_files"


def is_open(catalog: Catalog) -> bool:
    """Whether roles are not in use yet: every user is a superuser."""
    roles = catalog.roles()
    return not any(name != BUILT_IN for name in roles) and (
        BUILT_IN not in roles or roles[BUILT_IN].definition.get("verifier") is None
    )


def is_superuser(catalog: Catalog, user: str) -> bool:
    """Whether a user may do everything."""
    if user == BUILT_IN or is_open(catalog):
        return True
    role = catalog.roles().get(user)
    return role is not None and bool(role.definition.get("superuser"))


def memberships(catalog: Catalog, user: str, *, inherited: bool = True) -> set[str]:
    """The user, the roles whose rights they have, and everybody.

    Without `inherited`: also the roles that they are a member of without having their rights.
    """
    roles, found, waiting = catalog.roles(), {EVERYBODY}, [user]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            role = roles.get(name)
            if role is not None and (not inherited or role.definition.get("inherit", True)):
                waiting += role.definition.get("member_of", ())
    return found


def may_become(catalog: Catalog, user: str, role: str) -> bool:
    """Whether SET ROLE takes a user to a role, and what is theirs may be given to it."""
    if is_superuser(catalog, user):
        return True
    return role != EVERYBODY and role in memberships(catalog, user, inherited=False)


def owner_of(catalog: Catalog, item: Item) -> str:
    """Whose an item is."""
    return item.owner if item.owner in catalog.roles() or is_open(catalog) else BUILT_IN


def owns(catalog: Catalog, user: str, item: Item) -> bool:
    """Whether a user may do what only an owner may."""
    return is_superuser(catalog, user) or owner_of(catalog, item) in memberships(catalog, user)


def has(catalog: Catalog, user: str, privilege: str, item: Item) -> bool:
    """Whether a user has a right on an item."""
    if item.kind == "system" and privilege == "SELECT":
        return True
    if owns(catalog, user, item):
        return True
    return any(privilege in item.grants.get(name, ()) for name in memberships(catalog, user))


# -- default privileges --------------------------------------------------------------------------


def default_kind(item: Item) -> str:
    """What ALTER DEFAULT PRIVILEGES takes an item for."""
    return "table" if item.kind in RELATIONS else item.kind


def with_defaults(catalog: Catalog, item: Item) -> Item:
    """A new item with the rights that its owner said that others have on what they make."""
    role = catalog.roles().get(item.owner)
    entries: list[list[Any]] = [] if role is None else role.definition.get(DEFAULTS, [])
    grants = dict(item.grants)
    for schema, kind, grantee, rights in entries:
        if kind == default_kind(item) and schema in ("", item.schema_name):
            fit = frozenset(rights) & frozenset(PRIVILEGES.get(item.kind, ()))
            if fit:
                grants[grantee] = grants.get(grantee, frozenset()) | fit
    return replace(item, grants=grants) if grants != item.grants else item


# -- as PostgreSQL writes them -------------------------------------------------------------------

LETTERS = {
    "INSERT": "a",
    "SELECT": "r",
    "UPDATE": "w",
    "DELETE": "d",
    "TRUNCATE": "D",
    "USAGE": "U",
    "CREATE": "C",
    "TEMPORARY": "T",
    "CONNECT": "c",
}


def acl(item: Item) -> tuple[str, ...] | None:
    """Who has which rights, as in PostgreSQL: ``role=letters/owner``; None where nobody else has.

    >>> table = Item(1, "table", "public", "t", owner="ann", grants={"bob": frozenset({"SELECT"})})
    >>> acl(table)
    ('ann=arwdD/ann', 'bob=r/ann')
    """
    if not item.grants:
        return None
    owner = item.owner or BUILT_IN
    return tuple(f"{'' if r == EVERYBODY else r}={letters(has)}/{owner}" for r, has in held(item))


def held(item: Item) -> list[tuple[str, frozenset[str]]]:
    """Who has which rights on an item, the owner first."""
    owner = item.owner or BUILT_IN
    others = {role: rights for role, rights in item.grants.items() if role != owner}
    return [(owner, frozenset(PRIVILEGES.get(item.kind, ()))), *sorted(others.items())]


def letters(rights: frozenset[str]) -> str:
    """Rights in PostgreSQL's letters."""
    return "".join(letter for right, letter in LETTERS.items() if right in rights)


__all__ = [
    "BUILT_IN",
    "DEFAULTS",
    "DEFAULT_KINDS",
    "EVERYBODY",
    "GRANTED_BY_KIND",
    "LETTERS",
    "PREDEFINED",
    "PRIVILEGES",
    "READ_FILES",
    "acl",
    "default_kind",
    "has",
    "held",
    "is_open",
    "is_superuser",
    "letters",
    "may_become",
    "memberships",
    "owner_of",
    "owns",
    "with_defaults",
]
