"""Cursors: the rest of a query's rows, or of a subscription's, kept between FETCHes.

A FETCH of a query gives as many rows as it asks for, or all that are left. A FETCH of a
subscription gives what has happened since the last one: it waits for the first row as long as its
timeout allows (for ever without one), and then takes what is there, up to its count.

A cursor WITH HOLD has its rows in memory from the end of its transaction on, as in PostgreSQL. What
a cursor has in memory is counted for its session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from noonmark.adapter.contract import Field, Row, Rows
from noonmark.adapter.peek.chunks import Listed
from noonmark.adapter.session.memory import Account, rows_bytes
from noonmark.clock import Clock

#: What a cursor takes beside its rows.
_CURSOR_BYTES = 32_000


class Cursor:
    """See the module."""

    def __init__(
        self, rows: Rows, clock: Clock, account: Account, *, waits: bool, hold: bool = False
    ) -> None:
        """A cursor over rows; `waits` for a subscription's, `hold` outlives its transaction.

        Raises:
            OutOfMemory, ProgramLimitExceeded: the session may have no more.
        """
        self._account = account
        there = rows.chunks.rows if isinstance(rows.chunks, Listed) else ()
        self._bytes = _CURSOR_BYTES + rows_bytes(there)
        account.take("cursors", self._bytes)
        self.hold = hold
        self.kept = False
        self.fields: tuple[Field, ...] = rows.fields
        self._rows = rows
        self._clock = clock
        self._waits = waits
        self._rest: AsyncIterator[Sequence[Row]] = aiter(rows.chunks)
        self._ready: list[Row] = []
        self._next: asyncio.Task[Sequence[Row] | None] | None = None
        self._ended = False

    async def fetch(self, count: int | None, timeout_ms: int | None = None) -> list[Row]:
        """The next rows: at most `count`, or all (that are there, for a subscription)."""
        if not self._waits:
            while not self._ended and (count is None or len(self._ready) < count):
                await self._take(None)
        else:
            timeout_s = None if timeout_ms is None else timeout_ms / 1000
            while not self._ended and (count is None or len(self._ready) < count):
                # Only an empty hand waits: what comes at the same time is taken, no more.
                if not await self._take(0 if self._ready else timeout_s):
                    break
        end = len(self._ready) if count is None else count
        taken, self._ready = self._ready[:end], self._ready[end:]
        return taken

    async def _take(self, timeout_s: float | None) -> bool:
        """One chunk more; False when there is none in time."""
        if self._next is None:
            self._next = asyncio.ensure_future(_following(self._rest))
        if timeout_s == 0:
            await self._clock.sleep(0)
            await self._clock.sleep(0)
        done, _ = await asyncio.wait({self._next}, timeout=timeout_s)
        if not done:
            return False
        task, self._next = self._next, None
        chunk = task.result()
        if chunk is None:
            self._ended = True
        else:
            self._ready += chunk
        return chunk is not None

    def _grow(self, size: int) -> None:
        self._account.take("cursors", size, 0)
        self._bytes += size

    async def keep(self) -> None:
        """Its transaction commits: read what is left, which is what it holds from then on."""
        at = 0
        while not self._ended:
            await self._take(None)
            self._grow(rows_bytes(self._ready[at:]))
            at = len(self._ready)
        self.kept = True
        await self._rows.chunks.aclose()

    async def close(self) -> None:
        """Let go of the rest."""
        self._account.free("cursors", self._bytes, int(self._bytes > 0))
        self._bytes = 0
        self._ready = []
        self._ended = True
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
        await self._rows.chunks.aclose()


async def _following(rest: AsyncIterator[Sequence[Row]]) -> Sequence[Row] | None:
    return await anext(rest, None)
