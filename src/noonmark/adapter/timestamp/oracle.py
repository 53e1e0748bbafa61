"""The timestamp oracle for coroutines: answers at once while its range lives, else in a thread."""

from __future__ import annotations

import asyncio
from functools import partial

from noonmark.oracle import AsyncReservedOracle, ReservedOracle


class Times:
    """`oracle.contract.TimestampOracle`, as coroutines of the adapter's loop."""

    def __init__(self, oracle: ReservedOracle) -> None:
        self.blocking = oracle

    async def bound(self, *, strict: bool) -> int:  # noqa: ARG002 - it costs nobody anything here
        """A time for a read; a `strict` one must not be before it."""
        return await self.read_ts()

    def read_without_waiting(self) -> int | None:
        """A time for a read, where it need not be waited for."""
        return self.blocking.without_waiting(AsyncReservedOracle.give_read)

    async def close(self) -> None:
        """Let go of the oracle."""
        await asyncio.to_thread(self.blocking.close)

    async def write_ts(self) -> int:
        """A time for a write."""
        time = self.blocking.without_waiting(AsyncReservedOracle.give_write)
        return await asyncio.to_thread(self.blocking.write_ts) if time is None else time

    async def read_ts(self) -> int:
        """A time for a read."""
        time = self.read_without_waiting()
        return await asyncio.to_thread(self.blocking.read_ts) if time is None else time

    async def apply_write(self, time: int) -> None:
        """The write at `time` is durable."""

        def give(oracle: AsyncReservedOracle) -> int | None:
            return oracle.give_apply(time)

        if self.blocking.without_waiting(give) is None:
            await asyncio.to_thread(partial(self.blocking.apply_write, time))
