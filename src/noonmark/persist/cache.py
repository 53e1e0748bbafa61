"""A Blob that remembers what it read: immutable objects and ranges of them, in bounded memory.

Only keys under `prefix` are remembered, because only those are promised never to change. What is
remembered is at most `bytes_max` bytes of values, the least recently used going first. A range
inside an object that is remembered whole is cut from it. Several calls for the same bytes at the
same time are one call of the Blob below.

Law: every answer is one that the Blob below could have given during the call, or gave before for
an object that was not deleted through this handle since. Absence is never remembered.

Where it runs: in one event loop, on driver or executor; each process has its own.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from noonmark.persist.location import Blob, BlobEntry


@dataclass
class CacheStatistics:
    """What the cache did since it was made, and what it holds."""

    hits: int = 0
    misses: int = 0
    coalesced: int = 0
    evictions: int = 0
    bytes: int = 0


class _Slot(NamedTuple):
    """What was asked for; a length of None is the whole object."""

    key: str
    start: int = 0
    length: int | None = None


class CachedBlob:
    """See `noonmark.persist.location.Blob`. Owns the Blob below: closing it closes that."""

    def __init__(self, blob: Blob, bytes_max: int, prefix: str = "part/") -> None:
        self._blob = blob
        self._bytes_max = bytes_max
        self._prefix = prefix
        self._kept: OrderedDict[_Slot, bytes] = OrderedDict()
        self._slots: dict[str, set[_Slot]] = {}
        self._pending: dict[_Slot, asyncio.Task[bytes | None]] = {}
        self.statistics = CacheStatistics()

    def __repr__(self) -> str:
        return f"CachedBlob({self._blob!r})"

    @property
    def url(self) -> str:
        """See `Blob.url`: that of the Blob below."""
        return self._blob.url

    async def get(self, key: str) -> bytes | None:
        """See `Blob.get`."""
        if not key.startswith(self._prefix):
            return await self._blob.get(key)
        return await self._through(_Slot(key), lambda: self._blob.get(key))

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        """See `Blob.get_range`."""
        if not key.startswith(self._prefix):
            return await self._blob.get_range(key, start, length)
        whole = self._remembered(_Slot(key))
        if whole is not None:
            return whole[start : start + length]
        slot = _Slot(key, start, length)
        return await self._through(slot, lambda: self._blob.get_range(key, start, length))

    async def put(self, key: str, value: bytes) -> None:
        """See `Blob.put`."""
        await self._blob.put(key, value)

    async def put_if_absent(self, key: str, value: bytes) -> bool:
        """See `Blob.put_if_absent`."""
        return await self._blob.put_if_absent(key, value)

    async def delete(self, key: str) -> None:
        """See `Blob.delete`. What is on its way for the key will not be remembered either."""
        for slot in self._slots.pop(key, set()):
            self.statistics.bytes -= len(self._kept.pop(slot))
        for slot in [slot for slot in self._pending if slot.key == key]:
            del self._pending[slot]
        await self._blob.delete(key)

    async def list(self, prefix: str) -> list[BlobEntry]:
        """See `Blob.list`."""
        return await self._blob.list(prefix)

    def native_url(self, key: str) -> str | None:
        """See `Blob.native_url`."""
        return self._blob.native_url(key)

    async def close(self) -> None:
        """See `Blob.close`."""
        for task in tuple(self._pending.values()):
            task.cancel()
        await self._blob.close()

    def _remembered(self, slot: _Slot) -> bytes | None:
        value = self._kept.get(slot)
        if value is not None:
            self._kept.move_to_end(slot)
            self.statistics.hits += 1
        return value

    async def _through(
        self, slot: _Slot, fetch: Callable[[], Awaitable[bytes | None]]
    ) -> bytes | None:
        value = self._remembered(slot)
        if value is not None:
            return value
        task = self._pending.get(slot)
        if task is None:
            self.statistics.misses += 1
            task = asyncio.ensure_future(self._fill(slot, fetch))
            self._pending[slot] = task
        else:
            self.statistics.coalesced += 1
        # Shielded: a caller that gives up must not take the bytes away from the others.
        return await asyncio.shield(task)

    async def _fill(
        self, slot: _Slot, fetch: Callable[[], Awaitable[bytes | None]]
    ) -> bytes | None:
        task = asyncio.current_task()
        try:
            value = await fetch()
            if value is not None and self._pending.get(slot) is task:
                self._keep(slot, value)
            return value
        finally:
            if self._pending.get(slot) is task:
                del self._pending[slot]

    def _keep(self, slot: _Slot, value: bytes) -> None:
        if len(value) > self._bytes_max:
            return
        self._kept[slot] = value
        self._slots.setdefault(slot.key, set()).add(slot)
        self.statistics.bytes += len(value)
        while self.statistics.bytes > self._bytes_max:
            self._evict()

    def _evict(self) -> None:
        slot, value = self._kept.popitem(last=False)
        slots = self._slots[slot.key]
        slots.remove(slot)
        if not slots:
            del self._slots[slot.key]
        self.statistics.bytes -= len(value)
        self.statistics.evictions += 1
