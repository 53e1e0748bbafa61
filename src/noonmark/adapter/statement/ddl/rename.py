"""Renaming relations: their collections, and every place that knows them by name.

A collection carries its object's name, so that other tools find it; a view's own collections and
its holds are named after the view, and what it remembers about itself names its inputs. All of it
changes in the one commit that renames: for the items, and for each maintained view above them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.schedule.definitions import view_definition
from noonmark.compute.plan.naming import errors_name, hold_id
from noonmark.persist.log import command as c
from noonmark.storage.description import description_of
from noonmark.storage.transaction import reading

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.compute.view.view import View

_MAINTAINED = ("materialized-view", "index")


class Renaming:
    """The items that have another name in the catalog to come, and the views that read them."""

    def __init__(self, database: Database, after: Catalog) -> None:
        self._database = database
        self._after = after
        before = database.catalog
        self._items = [
            item for item in before.items()
            if (then := after.by_number.get(item.number)) is not None
            and (then.schema_name, then.name) != (item.schema_name, item.name)
        ]  # fmt: skip
        own = [item for item in self._items if item.kind in _MAINTAINED]
        above = before.dependents([item.number for item in self._items])
        views = {each.number: each for each in (*own, *reversed(above)) if each.is_stored}
        running = database.work.views
        self._workers = {
            number: running[number]
            for number in views
            if number in running.keys() & after.by_number
        }
        self._views = [views[number] for number in self._workers]
        self._renamed: dict[str, str] = {}
        for item in self._items:
            name = after.by_number[item.number].collection
            self._renamed[item.collection] = name
            if item.kind in _MAINTAINED:
                self._renamed[errors_name(item.collection)] = errors_name(name)
        #: The collections of views, which may share some, by what they will be called.
        self._collections: dict[str, str] = {}
        #: The items whose work must stand still meanwhile.
        parts = {number for item in self._items for number in (item.number, item.part_of)}
        sources = parts & database.work.sources.keys()
        self.numbers = [*sources, *self._workers]

    async def commands(self) -> tuple[c.AnyCommand, ...]:
        """What renames everything; the work of `numbers` stands still."""
        made: list[c.AnyCommand] = []
        views = [await asyncio.to_thread(self._taken_up, item.number) for item in self._views]
        names = self._database.client.state.names
        holds: dict[str, str] = {}
        for item, view in zip(self._views, views, strict=True):
            made += self._of_view(item, view, holds)
        made += self._held_anew(holds)
        moved = dict(self._collections)
        for item in self._items:
            if item.number not in self._workers and item.collection in names:
                moved[item.collection] = self._renamed[item.collection]
        return (*made, *in_order(names, moved))

    def _taken_up(self, number: int) -> View:
        view = self._workers[number].taken_up()
        view.adopt()  # what it lacks has no name that could be changed
        return view

    def _of_view(self, item: Item, view: View, holds: dict[str, str]) -> list[c.AnyCommand]:
        """What changes in what a view says of itself; adds what its holds are called then."""
        state = self._database.client.state
        after = view_definition(self._after, self._after.by_number[item.number])
        names = view.owned.renamed(after, after.arrangement_specs(self._keys(view)))
        self._collections |= names
        names = {**self._renamed, **names}
        for hold, name in view.owned.holds.items():
            holds[hold] = hold_id(after.name, names.get(name, name))
        found = state.collection(view.name)
        described = description_of(found)
        inputs = [self._renamed.get(name, name) for name in view.inputs]
        details = {**described.details, "inputs": inputs}
        annotation = type(described)(
            described.schema, described.key, described.kind, details
        ).annotation()
        return [c.Annotate(found.id, annotation)]

    def _keys(self, view: View) -> dict[str, tuple[str, ...]]:
        state = self._database.client.state
        inputs = view.definition.inputs
        return {self._renamed.get(name, name): state.collection(name).key for name in inputs}

    def _held_anew(self, holds: Mapping[str, str]) -> Iterator[c.AnyCommand]:
        """Holds under other names, which may change places: what is held is held throughout."""
        client = self._database.client
        moved = {
            old: (new, held)
            for old, new in holds.items()
            if old != new and (held := client.state.holds.get(old)) is not None
        }

        for old, (_, held) in moved.items():
            yield reading(client, f"{old}\0", held.collection, held.frontier)
            yield c.Release(old)
        for old, (new, held) in moved.items():
            yield reading(client, new, held.collection, held.frontier)
            yield c.Release(f"{old}\0")


def in_order(names: Mapping[str, int], moved: Mapping[str, str]) -> Iterator[c.Rename]:
    """Renames of collections, each to a name that is free by then: names may change places.

    Args:
        names: the ids of the collections, by name.
        moved: the new name of each that is to have another.
    """
    waiting = {old: new for old, new in moved.items() if old != new}
    ids = {old: names[old] for old in waiting}
    while waiting:
        free = [old for old, new in waiting.items() if new not in waiting]
        for old in free:
            yield c.Rename(ids[old], waiting.pop(old))
        if not free:  # they go round in a circle: one steps aside
            old, new = next(iter(waiting.items()))
            del waiting[old]
            aside = f"{old}\0"
            yield c.Rename(ids[old], aside)
            waiting[aside], ids[aside] = new, ids.pop(old)
