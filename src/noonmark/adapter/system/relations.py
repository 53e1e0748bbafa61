"""All system relations, by name."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from noonmark.adapter.catalog.item import Item
from noonmark.adapter.system import (
    domains,
    information,
    made_types,
    mz,
    mz_history,
    own,
    pg_absent,
    pg_catalog,
    pg_depend,
    pg_index,
    pg_roles,
    sequences,
)
from noonmark.adapter.system.facts import Facts, Row, SystemRelation
from noonmark.sql.scope import SYSTEM_COLUMN

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: Where numbers start for relations that have none of their own. A number stays: views name it.
_NUMBERED = ((14_000, (pg_catalog, pg_index, pg_depend)), (14_056, (information, own, mz)))


@cache
def relations() -> dict[str, SystemRelation]:
    """Every system relation by its full name."""
    found = [
        replace(each, number=each.number or first + at)
        for first, modules in _NUMBERED
        for at, each in enumerate(each for module in modules for each in module.RELATIONS)
    ]
    return {
        each.full_name: each
        for each in (
            *found,
            *pg_roles.LATER,
            *sequences.RELATIONS,
            *made_types.RELATIONS,
            *domains.RELATIONS,
            *mz_history.RELATIONS,
            *pg_absent.RELATIONS,
        )
    }


@cache
def system_items() -> tuple[Item, ...]:
    """The items of the catalog that are always there; their numbers are below those of users'."""
    return tuple(
        Item(-each.number, "system", each.schema_name, each.name, each.schema)
        for each in relations().values()
    )


def system_rows(session: AdapterSession, name: str) -> list[Row]:
    """The rows of a system relation at this moment, each fit for the evaluator."""
    if name not in relations():
        item = session.catalog.find(tuple(name.split(".", 1)))
        assert item is not None, "what is planned over is in the catalog"
        return sequences.sequence_rows(session, item)
    found = relations()[name]
    if SYSTEM_COLUMN in found.schema:
        return [(*row, found.number) for row in found.rows(Facts.of(session))]
    return [tuple(row) for row in found.rows(Facts.of(session))]
