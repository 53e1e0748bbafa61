"""Whose turn it is to write: a server waits for the one that has the location.

A server that is started again after a death waits as long as the lease of the dead one may outlast
it; is the lease renewed, its holder lives, and the server is refused. A standby waits beside a
server that writes, until that one stops or dies.

Law (one writer): whatever is decided here, the lock lets one write (`persist.log.writer_lock`), and
what an earlier one has begun fails. Law (in time): a standby asks for the lock within `LOOK_S` of
the death of a process on its machine, or of the end of a lease; leases of servers are `LEASE_MS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from noonmark.clock import SYSTEM, Clock
from noonmark.errors import LockHeld
from noonmark.persist.client import Options, open_location
from noonmark.persist.config import DEFAULT
from noonmark.persist.log.state import Lock
from noonmark.persist.log.writer_lock import ends_with_its_process, is_free

LOG = logging.getLogger("noonmark")

T = TypeVar("T")

LEASE_MS = 6_000
LOOK_S = 0.2
#: How a server opens its location.
WRITING = Options(config=replace(DEFAULT, lock_lease_ms=LEASE_MS))


class Stopped(Exception):
    """The server is to stop, and never had its turn."""


@dataclass(frozen=True)
class Turn:
    """A place in the line.

    Attributes:
        data: the location.
        consensus: its log.
        standby: whether to wait for a holder that lives.
        stop: set when it is no longer wanted.
    """

    data: str
    consensus: str | None
    standby: bool
    stop: asyncio.Event
    clock: Clock = SYSTEM

    async def await_in(self, opening: Callable[[], Awaitable[T]]) -> T:
        """Open the location as soon as it is this server's turn.

        Raises:
            LockHeld: it is written by a server that lives, and this is no standby.
            Stopped: it is not wanted any more.
        """
        said = False
        while True:
            try:
                return await opening()
            except LockHeld as held:
                if not said:
                    LOG.info("%s: %s", "standing by" if self.standby else "waiting", held)
                    said = True
                if not await self._is_free():
                    raise

    async def _is_free(self) -> bool:
        """Wait for the end of the holder; False if it lives, and this is no standby."""
        options = Options(mode="polling", notify_host=None)
        client = await asyncio.to_thread(
            open_location, self.data, consensus=self.consensus, options=options, clock=self.clock
        )
        try:
            host, first = client.host_lock, client.state.lock
            while not is_free(lock := client.state.lock, host, client.now_ms()):
                assert lock is not None
                if not self.standby and _lives(lock, first):
                    return False
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.stop.wait(), LOOK_S)
                if self.stop.is_set():
                    raise Stopped
            return True
        finally:
            await asyncio.to_thread(client.stop)


def _lives(lock: Lock, first: Lock | None) -> bool:
    """Whether the holder has shown that it lives."""
    return ends_with_its_process(lock) or first is None or lock != first
