"""All system relations, by name."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from noonmark.adapter.catalog.item import Item
from noonmark.adapter.system import (
    information,
    mz,
    own,
    pg_absent,
    pg_catalog,
    pg_depend,
    pg_index,
    pg_roles,
)
from noonmark.adapter.system.facts import Facts, Row, SystemRelation

if TYPE_CHECKING:
    from noonmark.adapter.session import AdapterSession

_MODULES = (pg_catalog, pg_index, pg_depend, pg_absent, information, own, mz)
#: Where numbers start for relations that PostgreSQL has not.
_FIRST = 14_000


@cache
def relations() -> dict[str, SystemRelation]:
    """Every system relation by its full name."""
    found = (each for module in _MODULES for each in module.RELATIONS)
    return {each.full_name: each for each in (*found, *pg_roles.LATER)}


@cache
def system_items() -> tuple[Item, ...]:
    """The items of the catalog that are always there; their numbers are below those of users'."""
    found = []
    for at, each in enumerate(relations().values(), _FIRST):
        number = -(each.number or at)
        found.append(Item(number, "system", each.schema_name, each.name, each.schema))
    return tuple(found)


def system_rows(session: AdapterSession, name: str) -> list[Row]:
    """The rows of a system relation at this moment, each fit for the evaluator."""
    return [tuple(row) for row in relations()[name].rows(Facts.of(session))]
