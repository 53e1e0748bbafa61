"""UNIQUE and FOREIGN KEY of tables, as their items keep them.

A table's definition has

    uniques     [name, columns, nulls distinct, whether it is a constraint (or an index)]
    foreigns    [name, columns, number of the other table, its columns, deferrable, deferred,
                ON DELETE, ON UPDATE]

A primary key is a unique constraint whose columns take no NULL; it is the key of the collection.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import Item


@dataclass(frozen=True)
class Unique:
    """No two rows have the same values in these columns; with NULL among them, unless told."""

    name: str
    columns: tuple[str, ...]
    nulls_distinct: bool = True
    is_constraint: bool = True

    def stored(self) -> list[object]:
        """As a definition has it."""
        return [self.name, list(self.columns), self.nulls_distinct, self.is_constraint]


@dataclass(frozen=True)
class Foreign:
    """The values of these columns, where none is NULL, are those of a row of another table."""

    name: str
    columns: tuple[str, ...]
    parent: int
    others: tuple[str, ...]
    deferrable: bool = False
    deferred: bool = False
    on_delete: str = "no action"
    on_update: str = "no action"

    def stored(self) -> list[object]:
        """As a definition has it."""
        return [self.name, list(self.columns), self.parent, list(self.others), self.deferrable,
                self.deferred, self.on_delete, self.on_update]  # fmt: skip


@dataclass(frozen=True)
class Deferral:
    """Which foreign keys wait for COMMIT: as SET CONSTRAINTS said, or as they were made.

    `all` is what was said of all of them; `some`, by table and name, is what was said since.
    """

    all: bool | None = None
    some: tuple[tuple[int, str, bool], ...] = ()

    def waits(self, item: Item, foreign: Foreign) -> bool:
        """Whether a foreign key is deferred now."""
        if not foreign.deferrable:
            return False
        for number, name, deferred in reversed(self.some):
            if (number, name) == (item.number, foreign.name):
                return deferred
        return foreign.deferred if self.all is None else self.all


def is_constrained(catalog: Catalog, name: str) -> bool:
    """Whether rows of a collection can be refused for other rows."""
    item = catalog.of_collection(name)
    if item is None or item.kind != "table":
        return False
    own = bool(item.key) or bool({"uniques", "foreigns"} & item.definition.keys())
    return own or any(True for _ in referencing(catalog, item))


def uniques_of(item: Item) -> tuple[Unique, ...]:
    """The unique constraints and indexes of a table, without its primary key."""
    found = item.definition.get("uniques", ())
    return tuple(Unique(name, tuple(columns), *rest) for name, columns, *rest in found)


def foreigns_of(item: Item) -> tuple[Foreign, ...]:
    """The foreign keys of a table."""
    return tuple(
        Foreign(name, tuple(columns), parent, tuple(others), *rest)
        for name, columns, parent, others, *rest in item.definition.get("foreigns", ())
    )


def referencing(catalog: Catalog, item: Item) -> Iterator[tuple[Item, Foreign]]:
    """The foreign keys that refer to a table."""
    for child in catalog.referring:
        for foreign in foreigns_of(child):
            if foreign.parent == item.number:
                yield child, foreign


def names_of(item: Item) -> set[str]:
    """The names of a table's constraints."""
    own = {each[0] for each in item.definition.get("checks", ())}
    own |= {each.name for each in uniques_of(item)} | {each.name for each in foreigns_of(item)}
    return own | ({key_name(item)} if item.key else set())


def key_name(item: Item) -> str:
    """The name of a table's primary key."""
    return str(item.definition.get("key_name") or f"{item.name}_pkey")
