"""The catalog of a replica: as new as the log that it has followed.

A statement is planned with a catalog that is at least as new as the state when the statement came.
Where the state goes on under it (a relation is dropped, say), the session looks again (`settled`).
"""

from __future__ import annotations

import asyncio

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.store import COLLECTION, CatalogStore
from noonmark.persist.log.state import Frontier, State


def _upper(state: State) -> Frontier | None:
    """How far the stored catalog is; None before there is one."""
    return state.collection(COLLECTION).upper if COLLECTION in state.names else None


class FollowedCatalog(CatalogStore):
    """See the module."""

    _known: Frontier | None = None

    def load(self) -> None:
        """Read what is stored, if something is. Blocks."""
        upper = _upper(self._client.state)
        if upper is not None:
            self.read()
        elif self._known is not None:
            self.catalog = Catalog.of(self._system)
        # What was stored between the two looks is read once more.
        self._known = upper

    def _is_current(self) -> bool:
        return self._known == _upper(self._client.state)

    async def settled(self) -> None:
        """Return when the catalog is as new as the state is now."""
        if self._is_current():
            return
        async with self.turn:
            while not self._is_current():
                await asyncio.to_thread(self.load)

    async def follow(self) -> None:
        """Read every catalog that is stored, until cancelled."""
        client = self._client
        while True:
            await self.settled()
            known = self._known

            def moved(state: State, known: Frontier | None = known) -> bool:
                return _upper(state) != known

            waiting = client.runtime.submit(client.journal.wait_for(moved))
            await asyncio.wrap_future(waiting)
