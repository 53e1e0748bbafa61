"""Processes of the simulation: each has a client, a clock and a line to storage of its own.

A crash ends every task of a process at once and lets nothing more of it out; what was on its way
to storage may still arrive. A pause lets nothing in or out for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from random import Random
from typing import Any, TypeVar

from noonmark.persist.client import Client, Mode, Options
from noonmark.persist.config import Config
from noonmark.persist.hold import HoldHandle
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.location import Blob, Consensus
from noonmark.persist.runtime import Runtime

from .faults import Line, UnreliableBlob, UnreliableConsensus, Weather
from .loop import TASKS, Gate, Tasks, VirtualClock, VirtualLoop

T = TypeVar("T")


class NamedClient(Client):
    """A client that signs with the name of its process, not with that of this machine."""

    def __init__(
        self, runtime: Runtime, blob: Blob, consensus: Consensus, options: Options
    ) -> None:
        super().__init__(runtime, blob, consensus, options)
        self.owner = blob.line.process  # type: ignore[attr-defined]


class Process:
    """One simulated process."""

    def __init__(
        self, name: str, mode: Mode, blob: Blob, weather: Weather, seed: int, *, bare_log: bool
    ) -> None:
        self.name = name
        self.mode = mode
        self.loop: VirtualLoop = weather.loop
        self.gate = Gate(self.loop.time)
        self.clock = VirtualClock(self.loop, Random(f"{seed} {name}"), self.gate)
        self.holds: list[HoldHandle] = []
        self.client: Client | None = None
        #: Whether leases are judged by its clock.
        self.keeps_leases = True
        self._tasks: Tasks = {}
        line = Line(weather, self.gate, name)
        self._blob = UnreliableBlob(blob, line)
        self.consensus: Consensus = (
            UnreliableConsensus(BlobConsensus(blob), line)
            if bare_log
            else BlobConsensus(self._blob)
        )

    @property
    def lease_ms(self) -> int:
        """The latest time by which it may judge a lease."""
        known = 0 if self.client is None else self.client.now_ms()
        return max(self.clock.seen_ms, known)

    @property
    def works(self) -> bool:
        """Whether it can be asked for something now."""
        return self.client is not None and not self.gate.dead and not self.gate.paused

    def run(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run as a task of this process."""
        context = Context()
        context.run(TASKS.set, self._tasks)
        return self.loop.create_task(coroutine, context=context)

    async def open(self, config: Config, reentrance_id: str | None) -> Client:
        """Open the location; as a task of this process."""
        runtime = Runtime(self.loop, self.clock, in_place=True)
        options = Options(self.mode, reentrance_id, notify_host=None, config=config)
        client = await NamedClient.start(runtime, self._blob, self.consensus, options)
        self.client = client
        return client

    def crash(self) -> None:
        """Die now."""
        self.gate.kill()
        for task in list(self._tasks.values()):
            task.cancel()

    @property
    def unfinished(self) -> list[asyncio.Task[Any]]:
        """Tasks that have not ended."""
        return list(self._tasks.values())
