"""Renaming a relation: its collections, and every place that knows them by name.

A collection carries its object's name, so that other tools find it; a view's own collections and
its holds are named after the view, and what it remembers about itself names its inputs. All of it
changes in the one commit that renames: for the item, and for each maintained view above it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from noonmark.adapter.catalog import Item
from noonmark.adapter.definitions import view_definition
from noonmark.compute.naming import errors_name, hold_id
from noonmark.persist import command as c
from noonmark.storage import NO_LEASE_MS
from noonmark.storage.description import description_of

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.compute.view import View


class Renaming:
    """One item under another name, and the views that read it."""

    def __init__(self, database: Database, before: Item, after: Item) -> None:
        self._database = database
        self._before = before
        self._after = after
        catalog = database.catalog
        dependents = [each for each in catalog.dependents([before.number]) if each.is_stored]
        own = [before] if before.kind in ("materialized-view", "index") else []
        self._views = [each for each in (*own, *reversed(dependents)) if each.kind != "source"]
        self._views = [each for each in self._views if each.number in database.work.views]
        self._renamed = {before.collection: after.collection}
        if own:
            self._renamed[errors_name(before.collection)] = errors_name(after.collection)
        #: The collections of views, which may share some, by what they will be called.
        self._collections: dict[str, str] = {}
        #: The items whose work must stand still meanwhile.
        sources = {before.number, before.part_of} & set(database.work.sources)
        self.numbers = [*sources, *(each.number for each in self._views)]
        self._workers = {each.number: database.work.views[each.number] for each in self._views}

    async def commands(self) -> tuple[c.AnyCommand, ...]:
        """What renames everything; the work of `numbers` stands still."""
        made: list[c.AnyCommand] = []
        views = [await asyncio.to_thread(self._taken_up, item.number) for item in self._views]
        state = self._database.client.state
        stored = self._before.collection
        if stored and stored in state.names and self._before.number not in self._workers:
            made.append(c.Rename(state.names[stored], self._after.collection))
        for item, view in zip(self._views, views, strict=True):
            made += self._of_view(item, view)
        moved = {old: new for old, new in self._collections.items() if old != new}
        return (*made, *(c.Rename(state.names[old], new) for old, new in moved.items()))

    def _taken_up(self, number: int) -> View:
        view = self._workers[number].taken_up()
        view.adopt()  # what it lacks has no name that could be changed
        return view

    def _of_view(self, item: Item, view: View) -> list[c.AnyCommand]:
        state = self._database.client.state
        after_item = self._after if item.number == self._before.number else item
        catalog = self._database.catalog.changed([self._after])
        after = view_definition(catalog, after_item)
        names = view.owned.renamed(after, after.needs(self._keys(view)))
        self._collections |= names
        names = {**self._renamed, **names}
        made: list[c.AnyCommand] = []
        for hold, name in view.owned.holds.items():
            made += self._hold(hold, hold_id(after.name, names.get(name, name)))
        found = state.collection(view.name)
        described = description_of(found)
        inputs = [self._renamed.get(name, name) for name in view.inputs]
        details = {**described.details, "inputs": inputs}
        annotation = type(described)(
            described.schema, described.key, described.kind, details
        ).annotation()
        made.append(c.Annotate(found.id, annotation))
        return made

    def _keys(self, view: View) -> dict[str, tuple[str, ...]]:
        state = self._database.client.state
        inputs = view.definition.inputs
        return {self._renamed.get(name, name): state.collection(name).key for name in inputs}

    def _hold(self, old: str, new: str) -> list[c.AnyCommand]:
        """A hold under another name."""
        state = self._database.client.state
        held = state.holds.get(old)
        if held is None or old == new:
            return []
        take = c.Acquire(new, held.collection, held.frontier, NO_LEASE_MS, state.seqno, held.owner)
        return [take, c.Release(old)]
