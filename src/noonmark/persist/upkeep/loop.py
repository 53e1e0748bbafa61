"""Upkeep: what a client does by itself, beside reads and writes.

A writer writes rollups, compacts, expires holds, deletes garbage and renews its lock; every
client renews its holds. Each is one small step that may fail and be tried again: nothing
acknowledged depends on it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from noonmark.errors import MissingObject, NoonmarkError, UsageError, WriterError
from noonmark.persist import hold
from noonmark.persist.log import command as c
from noonmark.persist.log.state import Batch, State
from noonmark.persist.upkeep import compact, gc
from noonmark.supervise import Task

if TYPE_CHECKING:
    from noonmark.persist.client import Client

#: How often garbage, leases and the lock are looked after, in units of the shortest lease.
_ROUNDS_PER_LEASE = 3


class Upkeep:
    """The background work of one client. Runs on the loop."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.compactions = 0
        self.errors = 0
        self.last_error: NoonmarkError | None = None
        #: For compactions beyond its `bytes_min`; None for none: everything is done in process.
        self.compactor: compact.Compactor | None = None
        self._tasks: list[Task] = []

    def start(self) -> None:
        """Begin; a reader only keeps its holds alive."""
        self._begin("leases", lambda: self._forever(self._leases, self._round_s()))
        if self.client.writable:
            self._begin("garbage", lambda: self._forever(self._garbage, self._grace_s()))
            self._begin("compaction", self._on_change)

    def _begin(self, kind: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        # A writer that was fenced has nothing left to look after.
        self._tasks.append(self.client.supervisor.task(kind, "", work, ends=(WriterError,)))

    async def stop(self) -> None:
        """End the background work; what is half done is done again by the next writer."""
        await asyncio.gather(*(task.stop() for task in self._tasks))
        self._tasks.clear()

    def _round_s(self) -> float:
        config = self.client.config
        shortest = min(config.lock_lease_ms, config.hold_lease_ms)
        return shortest / 1000 / _ROUNDS_PER_LEASE

    def _grace_s(self) -> float:
        return max(self.client.config.garbage_grace_ms / 1000 / 2, 0.05)

    async def _forever(self, step: Callable[[], Awaitable[None]], interval_s: float) -> None:
        while True:
            await self.client.clock.sleep(interval_s)
            await self._guard(step)

    async def _on_change(self) -> None:
        """Rollups and compaction follow commits, one at a time."""
        journal = self.client.journal
        while True:
            seen = journal.state.seqno
            await self._guard(self.maintain)
            await journal.wait_for(lambda state: state.seqno > seen)  # noqa: B023

    async def _guard(self, step: Callable[[], Awaitable[None]]) -> None:
        try:
            await step()
        except WriterError:
            raise
        except NoonmarkError as error:
            self.errors += 1
            self.last_error = error
            await self.client.clock.sleep(self.client.config.retry_largest_s)

    async def maintain(self) -> None:
        """Write a rollup if one is due, then compact whatever is worth it."""
        client = self.client
        if client.journal.rollup_is_due():
            await client.journal.write_rollup()
        for ref in list(client.journal.state.collections):
            collection = client.journal.state.collections.get(ref)
            if collection is None or collection.since.is_empty():
                continue
            batches = compact.choose(collection, client.config)
            if batches:
                await self.compact(ref, tuple(batch.id for batch in batches))

    async def compact(
        self,
        ref: int,
        ids: tuple[int, ...] | None = None,
        engine: compact.Compactor | None = None,
    ) -> None:
        """Rewrite these batches of a collection (all of them, by default) as one."""
        client = self.client
        collection = client.journal.state.collection(ref)
        chosen = tuple(b for b in collection.batches if ids is None or b.id in ids)
        if not chosen:
            return
        engine = engine or self.compactor
        try:
            if engine is not None and sum(batch.bytes for batch in chosen) >= engine.bytes_min:
                swap = await engine.rewrite(collection, chosen)
            else:
                swap = await compact.rewrite(collection, chosen, client.parts, client.config)
        except MissingObject:
            if _has(await client.journal.refresh(), ref, chosen):
                raise
            return  # dropped or rewritten meanwhile, perhaps by another writer, and collected
        try:
            await asyncio.wrap_future(client.submit((swap,)))
        except UsageError:
            return  # dropped or rewritten meanwhile; the parts just written are orphans
        self.compactions += 1

    async def _leases(self) -> None:
        client = self.client
        for handle in list(client.holds.values()):
            with contextlib.suppress(UsageError):
                await handle.renew()
        if not client.writable:
            return
        now_ms = client.now_ms()
        ids = tuple(h.id for h in hold.expired(client.journal.state, now_ms))
        if ids:
            await asyncio.wrap_future(client.submit((c.Expire(ids),)))
        if client.lock is not None and client.lock.lease_is_needed:
            renewal = c.RenewLock(now_ms + client.config.lock_lease_ms)
            await asyncio.wrap_future(client.submit((renewal,)))

    async def _garbage(self) -> None:
        client = self.client
        state = await client.journal.refresh()  # readers may have taken holds since
        oldest = client.reader.oldest_plan()
        found = gc.collectable(state, client.now_ms(), client.config.garbage_grace_ms, oldest)
        if found:
            await gc.delete(client.blob, client.retries, found)
            await asyncio.wrap_future(client.submit((c.Forget(tuple(g.key for g in found)),)))


def _has(state: State, ref: int, batches: tuple[Batch, ...]) -> bool:
    """Whether all of these batches are in the state still."""
    collection = state.collections.get(ref)
    return collection is not None and {b.id for b in batches} <= {b.id for b in collection.batches}
