"""Rights: who may do what with an item.

A superuser may do everything, an owner everything with what is theirs; everybody else has what was
granted to them, to a role that they are a member of, or to everybody ("public"). Only the owner and
superusers may change or drop an item.

What is in a schema can be named only by who has USAGE on that schema, and made only by who has
CREATE on it. A schema can be made only by who has CREATE on the database.

Roles are optional: while nobody made one, every user that the front end lets in is a superuser.
"""

from __future__ import annotations

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import Item
from noonmark.errors import InsufficientPrivilege

EVERYBODY = "public"
#: The superuser that is always there.
BUILT_IN = "noonmark"
#: What ALL means, by kind of item; kinds that are not here have no rights to grant.
PRIVILEGES: dict[str, tuple[str, ...]] = {
    "table": ("SELECT", "INSERT", "UPDATE", "DELETE"),
    "source": ("SELECT",),
    "subsource": ("SELECT",),
    "progress": ("SELECT",),
    "errors": ("SELECT",),
    "view": ("SELECT",),
    "materialized-view": ("SELECT",),
    "connection": ("USAGE",),
    "secret": ("USAGE",),
    "schema": ("USAGE", "CREATE"),
    "database": ("CREATE", "TEMPORARY", "CONNECT", "USAGE"),
}
#: Kinds that GRANT must name; without one it is about a relation.
GRANTED_BY_KIND = ("connection", "secret", "schema", "database")
#: The right to change or drop; it cannot be granted.
OWN = "OWN"


def is_superuser(catalog: Catalog, user: str) -> bool:
    """Whether a user may do everything."""
    roles = catalog.roles()
    if user == BUILT_IN or not roles:
        return True
    role = roles.get(user)
    return role is not None and bool(role.definition.get("superuser"))


def memberships(catalog: Catalog, user: str) -> set[str]:
    """The user, the roles that they are a member of, directly or not, and everybody."""
    roles, found, waiting = catalog.roles(), {EVERYBODY}, [user]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            role = roles.get(name)
            waiting += role.definition.get("member_of", ()) if role is not None else ()
    return found


def has(catalog: Catalog, user: str, privilege: str, item: Item) -> bool:
    """Whether a user has a right on an item."""
    if item.kind == "system" and privilege == "SELECT":
        return True
    if is_superuser(catalog, user):
        return True
    names = memberships(catalog, user)
    if item.owner in names:
        return True
    return any(privilege in item.grants.get(name, ()) for name in names)


def require(catalog: Catalog, user: str, privilege: str, item: Item) -> None:
    """Refuse with `InsufficientPrivilege` unless the user has the right, and may name the item."""
    what = item.kind.replace("-", " ")
    if privilege == OWN:
        if not has(catalog, user, OWN, item):
            raise InsufficientPrivilege(f"must be owner of {what} {item.name}")
        return
    schema = catalog.schema(item.schema_name)
    if schema is not None and item.kind != "system":
        require(catalog, user, "USAGE", schema)
    if not has(catalog, user, privilege, item):
        kind = f"{what.upper()} " if item.kind in GRANTED_BY_KIND else ""
        raise InsufficientPrivilege(
            f"permission denied for {what} {item.name}",
            hint=f"Its owner may GRANT {privilege} ON {kind}{item.name} TO {user}.",
        )


#: As PostgreSQL writes rights in its catalog.
_LETTERS = {
    "INSERT": "a",
    "SELECT": "r",
    "UPDATE": "w",
    "DELETE": "d",
    "USAGE": "U",
    "CREATE": "C",
    "TEMPORARY": "T",
    "CONNECT": "c",
}


def acl(item: Item) -> tuple[str, ...] | None:
    """Who has which rights, as in PostgreSQL: ``role=letters/owner``; None where nobody else has.

    >>> table = Item(1, "table", "public", "t", owner="ann", grants={"bob": frozenset({"SELECT"})})
    >>> acl(table)
    ('ann=arwd/ann', 'bob=r/ann')
    """
    if not item.grants:
        return None
    owner = item.owner or BUILT_IN
    all_rights = frozenset(PRIVILEGES.get(item.kind, ()))
    others = {role: rights for role, rights in item.grants.items() if role != owner}
    listed = [(owner, all_rights), *sorted(others.items())]
    return tuple(
        f"{'' if role == EVERYBODY else role}={_letters(rights)}/{owner}" for role, rights in listed
    )


def _letters(rights: frozenset[str]) -> str:
    return "".join(letter for right, letter in _LETTERS.items() if right in rights)
