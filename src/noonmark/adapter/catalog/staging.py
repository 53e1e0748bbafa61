"""The catalog as one transaction sees it: changed by its own statements, by nobody else's.

A statement that changes the catalog changes a *store*: the durable one (`catalog.store`), or, in a
transaction, a `Staging`, which keeps the change to itself until COMMIT (`adapter.staged`).

Law (alone): what a transaction staged is seen by its own statements alone, and by all at COMMIT.
Law (still true): a staging is committed only while the durable catalog is still its `base`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import Item
from noonmark.persist import command as c

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
        self.catalog = self.catalog.changed(added, removed)
        return self.catalog

    def new(self) -> list[Item]:
        """What the transaction made, in the order in which it can be made."""
        return [item for item in self.catalog.items() if item.number not in self.base.by_number]

    def gone(self) -> list[Item]:
        """What it dropped, what needs others first."""
        kept = self.catalog.by_number
        return [item for item in reversed(list(self.base.items())) if item.number not in kept]

    def fresh(self) -> frozenset[str]:
        """The collections that begin with the transaction: none of their rows is stored."""
        return frozenset(item.collection for item in self.new() if item.is_stored)
