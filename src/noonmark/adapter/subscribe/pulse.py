"""The pulse: while somebody waits for progress, time passes also where nothing happens.

Tables become complete when they are written or read, and otherwise stay where they are. A
subscription that tells progress, or ends at a time, needs more: once a second everything that such
subscriptions follow is brought up to now, in one go for all of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from noonmark.errors import NoonmarkError
from noonmark.supervise import Task

if TYPE_CHECKING:
    from noonmark.adapter.database import Database

INTERVAL_S = 1.0


class Pulse:
    """See the module. Beats while somebody listens."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._names: Counter[str] = Counter()
        self._task: Task | None = None

    @contextmanager
    def following(self, names: Sequence[str]) -> Iterator[None]:
        """Keep these collections moving."""
        self._names.update(names)
        if self._task is None:
            self._task = self._database.supervisor.task("pulse", "", self._beat)
        try:
            yield
        finally:
            self._names.subtract(names)
            self._names += Counter()
            if not self._names and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _beat(self) -> None:
        clock = self._database.clock
        while True:
            await clock.sleep(INTERVAL_S)
            now = clock.now_ms()
            # Side by side: what cannot move, or is gone, holds back nothing else.
            await asyncio.gather(*(self._bring(name, now) for name in list(self._names)))

    async def _bring(self, name: str, time: int) -> None:
        with suppress(NoonmarkError, TimeoutError):
            async with asyncio.timeout(INTERVAL_S):
                await self._database.work.bring([name], time)
