"""A Consensus over any Blob: one object an entry, and a floor.

Objects. Entry n is ``log/<n>``, put only with `put_if_absent`. The floor is the largest number F of
the markers ``floor/<F>``, 1 when there is none: entries below it are truncated. Numbers have 20
digits, so that key order is number order. The newest of the markers ``count/<n>`` says that the log
had come to n: entries up to it that are not there were taken away by somebody else.

Three rules, and all that follows uses only them:

- R1 an entry is deleted only when a marker above its number was durable before;
- R2 a marker is deleted only when a larger one was durable before, so the floor never goes back;
- R3 a marker is at most one above an entry that was durable before: below it every number is used.

Reading the floor is one listing. It shows a floor at least as high as the floor F0 when it began.
Proof: a listing looks at the markers in key order (or at one instant, which is the same). Suppose
it saw none at or above F0. When it ended the floor was some M >= F0, not seen, so M was put after
the listing had passed it. At that moment, by R2, the floor was some M' with F0 <= M' < M, which was
there and also not seen, so M' was put after the listing had passed it, earlier still; and so on.
Numbers between F0 and M are finite, so this descent is impossible.

Law (no zombie): when `append(n)` returns True, its entry is the only one n ever had.
Proof: `append` puts ``log/n``, and after that reads a floor F <= n. Suppose another entry n was
there before. The put succeeded, so that entry was deleted before the put, so by R1 a marker above n
was durable before the put, so F > n: a contradiction. Nor does a later put succeed while ours is
there, and ours is deleted only below the floor, where `read` refuses. When F > n the number was
used (R3) and truncated, and the answer is False. Our object was a zombie; or it was the entry n,
which others went on from and truncated while this process stood still between its put and its
look at the floor. No `read` returns it, and R1 lets us delete it, either way.

Law (reads): `read(start)` returns only entries that are *the* entry of their number.
Proof: it gets the entries, and after that reads a floor F <= start. By R1 none of their numbers had
lost an entry when it was read, so each is the first that its number ever had. Were the floor read
first, an entry could be truncated and a zombie put in between.

Law (head): `head` never goes back. It steps over entries from a number that was used, stops at the
first that is missing, and after that reads the floor. When the floor is not past that number, it
never lost an entry (R1), so it was not used before `head` began, and an earlier answer was less.
When the floor is past it, `head` begins again from the floor.

A put that may have happened (`Indeterminate`) and lands after a truncation is a zombie, too; the
next truncation removes it. A delayed put never hurts.

Cost, in calls of the Blob: append 2, head 2, a poll for new entries 2, and for a handle that sees a
log of N entries for the first time some 2 log N to find its end. The log is listed in `truncate`
alone.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from noonmark.errors import Indeterminate, StorageError
from noonmark.persist.impl.redact import redact
from noonmark.persist.impl.seqno import check_append, check_read, check_truncate, truncated
from noonmark.persist.location import Blob

READ_WAVE_MAX = 16
COUNT_PREFIX = "count/"


def entry_key(seqno: int) -> str:
    """The key of entry `seqno`."""
    return f"log/{seqno:020d}"


def floor_key(floor: int) -> str:
    """The key of the marker that truncates every entry below `floor`."""
    return f"floor/{floor:020d}"


def count_key(seqno: int) -> str:
    """The key of the marker that says that entry `seqno` was there."""
    return f"{COUNT_PREFIX}{seqno:020d}"


class BlobConsensus:
    """See `noonmark.persist.location.Consensus`. Owns the Blob: closing it closes the Blob."""

    def __init__(self, blob: Blob) -> None:
        self._blob = blob
        # Numbers up to here were used. A hint that saves calls: it is never taken as the answer.
        self._used = 0
        #: The marker that this handle put last, so that the next one need not look for it.
        self._count: str | None = None

    def __repr__(self) -> str:
        return f"BlobConsensus({self._blob!r})"

    @property
    def url(self) -> str:
        """See `Consensus.url`."""
        return self._blob.url

    async def head(self) -> int:
        """See `Consensus.head`."""
        while True:
            last = await self._last_from(self._used)
            floor = await self._floor()
            self._used = max(self._used, last, floor - 1)
            if floor <= last + 1:
                return last

    async def append(self, seqno: int, entry: bytes) -> bool:
        """See `Consensus.append`."""
        if seqno - 1 > self._used:
            check_append(seqno, await self.head())
        if not await self._blob.put_if_absent(entry_key(check_append(seqno)), entry):
            return False
        try:
            floor = await self._floor()
        except StorageError as error:
            raise Indeterminate(
                f"entry {seqno} may have been appended", detail=str(error), seqno=seqno
            ) from error
        if seqno < floor:
            with suppress(StorageError):  # a zombie below the floor harms nobody: see above
                await self._blob.delete(entry_key(seqno))
            return False
        self._used = max(self._used, seqno)
        return True

    async def read(self, start: int, limit: int) -> list[bytes]:
        """See `Consensus.read`. Gets entries in waves that grow, so that a poll costs one get."""
        check_read(start)
        entries: list[bytes] = []
        wave = self._used - start + 1
        while len(entries) < limit:
            wave = min(max(wave, 1), limit - len(entries), READ_WAVE_MAX)
            found = await self._get_wave(start + len(entries), wave)
            entries += found
            if len(found) < wave:
                break
            wave *= 2
        floor = await self._floor()
        if start < floor:
            raise truncated(start, floor, redact(self.url))
        if entries:
            self._used = max(self._used, start + len(entries) - 1)
        return entries

    async def _get_wave(self, start: int, count: int) -> list[bytes]:
        """Entries from `start` on up to the first that is missing."""
        keys = [entry_key(seqno) for seqno in range(start, start + count)]
        if count == 1:
            only = await self._blob.get(keys[0])
            return [] if only is None else [only]
        found: list[bytes] = []
        for entry in await asyncio.gather(*map(self._blob.get, keys)):
            if entry is None:
                break
            found.append(entry)
        return found

    async def note(self, seqno: int) -> None:
        """See `Consensus.note`. The newer marker first, then the older ones are deleted."""
        name = count_key(seqno)
        if self._count is not None:
            older = [self._count]
        else:
            older = [key for key, _ in await self._blob.list(COUNT_PREFIX)]
        await self._blob.put(name, b"")
        self._count = name
        for key in older:
            if key < name:
                await self._blob.delete(key)

    async def noted(self) -> int:
        """See `Consensus.noted`."""
        markers = await self._blob.list(COUNT_PREFIX)
        return int(markers[-1].key.rpartition("/")[2]) if markers else 0

    async def truncate(self, below: int) -> None:
        """See `Consensus.truncate`. The marker first, then the entries, then older markers."""
        check_truncate(below, await self.head())
        floor = max(below, await self._floor())
        if floor == 1:
            return
        # Also when the marker is there: whoever put it may not have come to make it durable (R1).
        await self._blob.put(floor_key(floor), b"")
        for prefix, newest in (("log/", entry_key(floor)), ("floor/", floor_key(floor))):
            for key, _ in await self._blob.list(prefix):
                if key < newest:
                    await self._blob.delete(key)

    async def close(self) -> None:
        """See `Consensus.close`."""
        await self._blob.close()

    async def _floor(self) -> int:
        markers = await self._blob.list("floor/")
        return int(markers[-1].key.rpartition("/")[2]) if markers else 1

    async def _exists(self, seqno: int) -> bool:
        return await self._blob.get_range(entry_key(seqno), 0, 1) is not None

    async def _last_from(self, low: int) -> int:
        """The last entry of the unbroken run after `low`, by doubling steps and then halving."""
        step = 1
        while await self._exists(low + step):
            low += step
            step *= 2
        high = low + step  # missing, and so is everything above it
        while high - low > 1:
            middle = (low + high) // 2
            if await self._exists(middle):
                low = middle
            else:
                high = middle
        return low
