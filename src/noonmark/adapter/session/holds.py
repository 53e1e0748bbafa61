"""Read holds of transactions, cursors and subscriptions: since stays until they are let go.

A hold is durable state of the location, so it costs a commit. Most transactions are over in
milliseconds, long before history could be let go: a collection keeps minutes of it. So a hold
becomes durable at once only where since may soon reach the time that is held (`NEAR_MS`), and
otherwise when it has lived for `SOON_S`.

Law: while `Held` is not released, every collection of it stays readable at its time; where that
cannot be promised any more, `Holds.take` raises `BeforeSince` instead.

Why the wait is safe: until a hold is durable it is among the `LocalHolds` of the process, which is
the one that lets history go. A server that only reads follows another one, whose since follows its
upper at the distance of the history that is kept: when the wait begins, at least `NEAR_MS` of the
timeline, which follows the clock, must pass before that distance is reached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from noonmark.clock import Clock
from noonmark.errors import NoonmarkError, Stopped, UnknownCollection
from noonmark.persist.client import Client
from noonmark.persist.hold import HoldHandle
from noonmark.persist.log.refusals import before_since
from noonmark.persist.log.state import Collection
from noonmark.tvc import Antichain

SOON_S = 2.0
NEAR_MS = 60_000


class Held:
    """Collections that stay readable at one time. `release` ends it."""

    def __init__(self, client: Client, time: int, collections: tuple[int, ...]) -> None:
        self.time = time
        self.collections = collections
        self._client = client
        self._durable: list[HoldHandle] = []
        self._let_go_here = client.local_holds.take(collections, time)
        self._later: asyncio.Task[None] | None = None
        self._acquiring = False
        self._released = False

    def is_released(self) -> bool:
        """Whether nothing is held any more."""
        return self._released

    async def make_durable(self) -> None:
        """Commit the holds; a collection that was dropped meanwhile needs none."""
        if self.is_released():
            return
        self._acquiring = True
        taking = self._client.runtime.submit(self._acquire())
        try:
            handles = await asyncio.shield(asyncio.wrap_future(taking))
        finally:
            self._acquiring = False
        self._durable += handles
        self._let_go_here()
        if self.is_released():  # while storage was asked
            await self._let_go()

    async def _acquire(self) -> list[HoldHandle]:
        at = Antichain.of(self.time)
        calls = (self._client.acquire(collection, at) for collection in self.collections)
        # Side by side, so that they are committed together.
        made = await asyncio.gather(*calls, return_exceptions=True)
        handles = [each for each in made if isinstance(each, HoldHandle)]
        for each in made:
            if isinstance(each, BaseException) and not isinstance(each, UnknownCollection):
                for handle in handles:
                    await handle.release()
                raise each
        return handles

    def durable_after(self, clock: Clock, seconds: float) -> None:
        """Commit the holds if they are still needed then."""

        async def later() -> None:
            await clock.sleep(seconds)
            await self.make_durable()

        self._later = asyncio.get_running_loop().create_task(later())

    async def advance(self, time: int) -> None:
        """Times before `time` are needed no more; told to storage once in a while."""
        self.time = max(self.time, time)
        for handle in self._durable:
            moving = handle.downgrade_soon(Antichain.of(self.time))
            await asyncio.wrap_future(self._client.runtime.submit(moving))

    async def release(self) -> None:
        """Let go. Idempotent."""
        if self._released:
            return
        self._released = True
        self._let_go_here()
        if self._later is not None and self._acquiring:
            await asyncio.wait([self._later])  # it lets go of what it got
        elif self._later is not None:
            self._later.cancel()
        await self._let_go()

    async def _let_go(self) -> None:
        handles, self._durable = self._durable, []
        for handle in handles:
            # What cannot be told to storage now ends with its lease.
            with suppress(NoonmarkError):
                await asyncio.wrap_future(self._client.runtime.submit(handle.release()))


class Holds:
    """Takes holds for the sessions of one process. Runs on the adapter's loop."""

    def __init__(self, client: Client, retain_ms: Callable[[str], int]) -> None:
        """Holds of a client's location, where each collection keeps so much history."""
        self._client = client
        self._retain_ms = retain_ms
        self.living: set[Held] = set()

    async def take(self, names: Iterable[str], time: int, *, non_blocking: bool = False) -> Held:
        """Hold collections at a time.

        Raises:
            BeforeSince: one of them is not readable there any more.
        """
        state = self._client.state
        found = [state.collection(name) for name in names]
        near = non_blocking
        for collection in found:
            if not collection.since.less_equal(time):
                raise before_since(collection, time)
            near = near or self._is_near(collection, time)
        held = Held(self._client, time, tuple(collection.id for collection in found))
        if near:
            try:
                await held.make_durable()
            except BaseException:
                await held.release()
                raise
        else:
            held.durable_after(self._client.clock, SOON_S)
        self.living.add(held)
        return held

    def _is_near(self, collection: Collection, time: int) -> bool:
        upper = collection.upper.only()
        return upper is None or time + self._retain_ms(collection.name) - upper < NEAR_MS

    async def release(self, held: Held) -> None:
        """Let go of a hold, also when the location is closed already."""
        self.living.discard(held)
        with suppress(Stopped):
            await held.release()
