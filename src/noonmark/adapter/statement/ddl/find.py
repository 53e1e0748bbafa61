"""The object that a statement names, by its kind."""

from __future__ import annotations

from noonmark.adapter.catalog import Item
from noonmark.adapter.catalog.item import DATABASE
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.catalog.user_types import is_domain
from noonmark.errors import NoonmarkError, UndefinedObject, UndefinedTable, WrongObjectType
from noonmark.sql.statement import statement as st

#: What the names of these kinds are called in errors, as in PostgreSQL.
_RELATION_KINDS = ("table", "source", "view", "materialized-view", "sequence")


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
    same = same or (kind == "domain" and is_domain(item))
    if item.kind == "system" or not same:
        if kind == "domain" and access.statement.startswith("ALTER"):
            raise WrongObjectType(f"{item.name} is not a domain")
        raise WrongObjectType(
            f'"{item.name}" is not a {kind.replace("-", " ")}',
            hint=_hint(access.statement.partition(" ")[0], item.kind),
            position=name.position,
        )
    return item


def missing(kind: str, name: st.Name) -> NoonmarkError:
    """Nothing of that kind has the name."""
    message = f'{"type" if kind == "domain" else shown_kind(kind)} "{name}" does not exist'
    if kind in _RELATION_KINDS:
        return UndefinedTable(message, position=name.position)
    return UndefinedObject(message, position=name.position)


def shown_kind(kind: str) -> str:
    """A kind of objects as errors call it."""
    return kind.replace("-", " ")
