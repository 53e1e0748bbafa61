"""Holds: a durable right to read from a frontier on, renewed for as long as its process lives.

A hold is state of the location, so it binds every writer and survives restarts; its lease makes
it end when its owner does. Any process may take one, also a reader beside the writer: holds are
the one thing that readers commit.

What a writer reads for a moment needs no entry in the log: as long as it is among its process's
`LocalHolds`, the process lets no history of it go (`storage.transaction.let_history_go`).

A hold without a lease belongs to an object of the catalog, not to a process: it outlives stops,
crashes and pauses, and ends with the commit that drops the object.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from noonmark.errors import CapabilityInvalid, FrontierRegression
from noonmark.persist.log import command as c
from noonmark.persist.log.state import Frontier, Hold, State
from noonmark.tvc import Antichain

if TYPE_CHECKING:
    from noonmark.persist.client import Client


#: A lease that no clock ends: for the system's own capabilities.
NO_LEASE_MS = 2**62


class LocalHolds:
    """Times that this process reads collections at; any thread may ask.

    Law: a horizon that `limit` gave since a time is held is not beyond that time.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._times: dict[int, Counter[int]] = {}

    def take(self, collections: Iterable[int], time: int) -> Callable[[], None]:
        """Hold collections at a time; gives what lets go of them, once."""
        held = list(collections)
        with self._mutex:
            for each in held:
                self._times.setdefault(each, Counter())[time] += 1

        def release() -> None:
            with self._mutex:
                for each in held:
                    times = self._times[each]
                    times[time] -= 1
                    if not times[time]:
                        del times[time]
                    if not times:
                        del self._times[each]
                held.clear()

        return release

    @contextmanager
    def reading(self, collections: Iterable[int], time: int) -> Iterator[None]:
        """Hold collections for the length of a block."""
        release = self.take(collections, time)
        try:
            yield
        finally:
            release()

    def limit(self, collection: int, horizon: Frontier) -> Frontier:
        """The part of a horizon that nothing here is read before."""
        with self._mutex:
            times = self._times.get(collection)
            return horizon if times is None else horizon.meet(Antichain.of(min(times)))


class HoldHandle:
    """One hold of this process, or one without a lease that it looks after."""

    def __init__(
        self,
        client: Client,
        id: str,
        collection: int,
        frontier: Frontier,
        *,
        has_lease: bool = True,
    ) -> None:
        self._client = client
        self._has_lease = has_lease
        self.id = id
        self.collection = collection
        self.frontier = frontier
        self._noted = client.clock.monotonic()

    async def downgrade(self, frontier: Frontier) -> None:
        """Move the hold forward; since may follow."""
        client = self._client
        oldest = client.reader.oldest_plan(self.collection)
        seqno = client.state.seqno if oldest is None else oldest
        expires_ms = client.lease_end() if self._has_lease else NO_LEASE_MS
        await client.commit_hold(c.Downgrade(self.id, frontier, expires_ms, seqno))
        # Two calls may be answered in either order: the handle must not fall behind the hold.
        self.frontier = self.frontier.join(frontier)
        self._noted = self._client.clock.monotonic()

    async def downgrade_soon(self, frontier: Frontier) -> None:
        """Move the hold forward, but not more often than is worth an entry in the log."""
        interval_s = self._client.config.hold_lease_ms / 1000 / 10
        if self._client.clock.monotonic() - self._noted >= interval_s:
            await self.downgrade(frontier)

    async def renew(self) -> None:
        """Extend the lease, where the hold is: perhaps further than a lost answer let us know."""
        held = self._client.state.holds.get(self.id)
        frontier = self.frontier if held is None else self.frontier.join(held.frontier)
        try:
            await self.downgrade(frontier)
        except FrontierRegression:
            return  # a downgrade that was called before this was applied first: it renewed, too

    async def release(self) -> None:
        """Give the hold up; giving up what has expired is no error."""
        self._client.holds.pop(self.id, None)
        try:
            await self._client.commit_hold(c.Release(self.id))
        except CapabilityInvalid:
            return


def expired(state: State, now_ms: int) -> list[Hold]:
    """Holds whose lease has run out."""
    return [hold for hold in state.holds.values() if hold.expires_ms <= now_ms]
