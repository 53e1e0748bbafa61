"""UNIQUE and FOREIGN KEY of tables, as their items keep them.

A table's definition has

    uniques     [name, columns, nulls distinct, whether it is a constraint (or an index)]
                and, of expressions or of some rows, [elements, condition, the table's name]
    foreigns    [name, columns, number of the other table, its columns, deferrable, deferred,
                ON DELETE, ON UPDATE]

A primary key is a unique constraint whose columns take no NULL; it is the key of the collection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import Item
from noonmark.adapter.table.expressions import columns_in, renamed
from noonmark.rows.types import quote_name


@dataclass(frozen=True)
class Unique:
    """No two rows have the same values in these columns; with NULL among them, unless told."""

    name: str
    columns: tuple[str, ...]
    nulls_distinct: bool = True
    is_constraint: bool = True
    #: Of an index of expressions, or of the rows alone that `where` is true of: the texts of all
    #: its elements. `columns` are those among them that are columns (`adapter.table.keyed`).
    elements: tuple[str, ...] = ()
    where: str | None = None
    table: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether it is of columns alone, and of all rows."""
        return not self.elements

    @property
    def place(self) -> tuple[str, ...]:
        """What its keys are counted under: no column is called so."""
        if self.is_plain:
            return self.columns
        return ("\0", *self.elements, "\0", self.where or "")

    @property
    def shown(self) -> tuple[str, ...]:
        """Its elements, as they are written."""
        return tuple(map(quote_name, self.columns)) if self.is_plain else self.elements

    @property
    def needed(self) -> set[str]:
        """The columns without which it is not."""
        texts = [*self.elements, *([] if self.where is None else [self.where])]
        return set(self.columns).union(*map(columns_in, texts))

    def after(self, old: str, new: str) -> Unique:
        """The same after a column has another name."""
        columns = tuple(new if name == old else name for name in self.columns)
        elements = tuple(renamed(text, old, new) for text in self.elements)
        where = None if self.where is None else renamed(self.where, old, new)
        return replace(self, columns=columns, elements=elements, where=where)

    def stored(self) -> list[object]:
        """As a definition has it."""
        own = [self.name, list(self.columns), self.nulls_distinct, self.is_constraint]
        more = [] if self.is_plain else [[list(self.elements), self.where, self.table]]
        return [*own, *more]


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
    return tuple(_unique(*each) for each in found)


def _unique(
    name: str,
    columns: Sequence[str],
    nulls_distinct: bool = True,
    is_constraint: bool = True,
    more: Sequence[Any] = ((), None, ""),
) -> Unique:
    elements, where, table = more
    return Unique(
        name, tuple(columns), nulls_distinct, is_constraint, tuple(elements), where, table
    )


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
