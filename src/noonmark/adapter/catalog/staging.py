"""The catalog as one transaction sees it: changed by its own statements, by nobody else's.

A statement that changes the catalog changes a *store*: the durable one (`catalog.store`), or, in a
transaction, a `Staging`, which keeps the change to itself until COMMIT (`adapter.session.commit`).

Until COMMIT the collections keep the names that they are stored under: an item that the transaction
renames, and one that it makes under a name which another item gave up, has a `stored_as`.

Law (alone): what a transaction staged is seen by its own statements alone, and by all at COMMIT.
Law (still true): a staging is committed only while everything that it changed, and everything that
what it made needs, is in the durable catalog as it was when the transaction began; what others
changed beside it stays. So it is as if all its statements had run at the time of the commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import Item
from noonmark.errors import DuplicateObject, NameTaken, SerializationFailure
from noonmark.persist.log import command as c

Beside = Callable[[int], Iterable[c.AnyCommand]]


class Store(Protocol):
    """Where a statement changes the catalog."""

    #: Held by whoever changes the catalog, from planning to the change.
    turn: asyncio.Lock

    @property
    def catalog(self) -> Catalog:
        """The newest catalog."""

    async def change(
        self, added: Sequence[Item] = (), removed: Iterable[int] = (), beside: Beside = ...
    ) -> Catalog:
        """Replace the catalog; the caller holds `turn`."""


class Staging:
    """See the module."""

    def __init__(self, base: Catalog) -> None:
        self.base = base
        self.catalog = base
        self.turn = asyncio.Lock()
        #: How far the numbers of what it made are moved by COMMIT.
        self._shift = 0

    @property
    def has_changed(self) -> bool:
        """Whether something waits for COMMIT."""
        return self.catalog is not self.base

    async def change(
        self,
        added: Sequence[Item] = (),
        removed: Iterable[int] = (),
        beside: Beside = lambda _: (),  # noqa: ARG002 - COMMIT finds out itself what goes with it
    ) -> Catalog:
        """See `Store.change`."""
        removed = frozenset(removed)
        added = [self._apart(item, removed) for item in added]
        self.catalog = self.catalog.changed(added, removed)
        return self.catalog

    def _apart(self, item: Item, removed: frozenset[int]) -> Item:
        """The item under the name of a collection that no other item has in this transaction."""
        before = self.catalog.by_number.get(item.number)
        if before is not None:
            same = not item.collection or item.collection == before.collection
            return item if same else replace(item, stored_as=before.collection)
        other = self.catalog.of_collection(item.collection) if item.collection else None
        if other is None or other.number in removed:
            return item
        return replace(item, stored_as=f"{item.collection}\0{item.number}")

    def new(self) -> list[Item]:
        """What the transaction made, in the order in which it can be made."""
        return [item for item in self.catalog.items() if item.number not in self.base.by_number]

    def made(self, final: Catalog) -> list[tuple[Item, Item]]:
        """What it made: as the transaction sees it, and as it is in the catalog of COMMIT."""
        shift = 0 if final is self.catalog else self._shift
        return [(item, final.by_number[item.number + shift]) for item in self.new()]

    def gone(self) -> list[Item]:
        """What it dropped, what needs others first."""
        kept = self.catalog.by_number
        return [item for item in reversed(list(self.base.items())) if item.number not in kept]

    def fresh(self) -> frozenset[str]:
        """The collections that begin with the transaction: none of their rows is stored."""
        return frozenset(item.collection for item in self.new() if item.is_stored)

    # -- COMMIT ----------------------------------------------------------------------------------

    def onto(self, current: Catalog) -> Catalog:
        """The catalog of COMMIT: the newest durable one, changed as the transaction changed its.

        What it made is numbered behind what others made meanwhile.

        Raises:
            SerializationFailure: others changed what it changed, or what it needs, or took a name.
        """
        base, shift = self.base, current.next_number - self.base.next_number
        self._shift = shift
        changed = [
            item for number, item in self.catalog.by_number.items()
            if base.by_number.get(number) is not item
        ]  # fmt: skip
        gone = [item.number for item in self.gone()]
        if current is not base:
            self._check(current, changed, gone)
        final = [_shifted(replace(item, stored_as=""), base.next_number, shift) for item in changed]
        try:
            return current.changed(final, gone)
        except (NameTaken, DuplicateObject):
            raise _overtaken(None) from None

    def _check(self, current: Catalog, changed: Sequence[Item], gone: Sequence[int]) -> None:
        base = self.base.by_number
        touched = {*gone, *(item.number for item in changed)}
        needed = {number for item in changed for number in (*item.needs, item.part_of)}
        for number in (touched | needed) & base.keys():
            if current.by_number.get(number) is not base[number]:
                raise _overtaken(base[number])
        for item in changed:
            before, now = (each.schema(item.schema_name) for each in (self.base, current))
            if item.schema_name and before is not None and before is not now:
                raise _overtaken(before)
        schemas = {base[number].name for number in gone if base[number].kind == "schema"}
        for item in current.by_number.values():
            if item.number in base or item.kind == "system":
                continue
            if item.schema_name in schemas or {*item.needs, item.part_of} & set(gone):
                raise _overtaken(item)
        if any(item.kind == "role" for item in (*changed, *(base[number] for number in gone))):
            raise _overtaken(None)  # rights of any object may be about it


def _shifted(item: Item, first: int, shift: int) -> Item:
    """The item with every number from `first` on moved up: its own, and those that it names."""
    if not shift:
        return item

    def moved(number: int) -> int:
        return number + shift if number >= first else number

    definition = dict(item.definition)
    if "names" in definition:
        pins = definition["names"].items()
        definition["names"] = {name: [moved(number), width] for name, (number, width) in pins}
    if "on" in definition:
        definition["on"] = moved(definition["on"])
    if "foreigns" in definition:
        definition["foreigns"] = [
            [name, columns, moved(parent), *rest]
            for name, columns, parent, *rest in definition["foreigns"]
        ]
    return replace(
        item,
        number=moved(item.number),
        needs=tuple(moved(number) for number in item.needs),
        part_of=moved(item.part_of),
        definition=definition,
    )


def _overtaken(item: Item | None) -> SerializationFailure:
    what = "Another session made, changed or dropped objects meanwhile."
    if item is not None:
        what = f"Another session made, changed or dropped {item} meanwhile."
    return SerializationFailure(
        "could not serialize access due to a concurrent change of the catalog",
        detail=what,
        hint="The transaction might succeed if it is run again.",
    )
