"""How far a log is, written down apart from its entries: so that a lost tail does not go unseen.

A log whose newest entry was taken away looks like an earlier log. So whoever appends also notes the
number, a moment later and at most once in `NOTE_S`: a note costs a write, and a commit does not
wait for it. What was noted never exceeds what is durable; so a log that ends before it has lost
entries.

Law (tail): whoever opens a log whose entries up to some number were noted, and finds it to end
before that number, gets `MissingObject`. Not covered are entries of the last `NOTE_S` of a writer
that was killed; one that stops in good order notes its last entry.
"""

from __future__ import annotations

import asyncio

from noonmark.clock import Clock
from noonmark.errors import MissingObject, StorageError
from noonmark.persist.location import Consensus

NOTE_S = 1.0


class Head:
    """The notes of one log, by one process that appends to it. Runs on one loop."""

    def __init__(self, log: Consensus, clock: Clock, every_s: float = NOTE_S) -> None:
        self._log = log
        self._clock = clock
        self._every_s = every_s
        self._newest = 0
        self._noted = 0
        self._task: asyncio.Task[None] | None = None

    async def begin(self, seqno: int) -> None:
        """Note where the log is before this process appends: from then on there is a note."""
        await self._log.note(seqno)
        self._noted = self._newest = max(self._noted, seqno)

    def reached(self, seqno: int) -> None:
        """Entry `seqno` is durable."""
        self._newest = max(self._newest, seqno)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._note_soon())

    async def _note_soon(self) -> None:
        while self._noted < self._newest:
            if not await self._note() and not self._every_s:
                return  # the next entry tries again
            if self._every_s:
                await self._clock.sleep(self._every_s)

    async def _note(self) -> bool:
        seqno = self._newest
        try:
            await self._log.note(seqno)
        except StorageError:
            return False
        self._noted = max(self._noted, seqno)
        return True

    async def stop(self) -> None:
        """Note the last entry, and no more after it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        if self._noted < self._newest:
            await self._note()


def check_tail(name: str, noted: int, head: int) -> None:
    """Refuse a log that ends before what was noted of it.

    Args:
        name: of an entry, before its number.
        noted: what was noted before the log was read.
        head: the newest entry that is there.
    """
    if head >= noted:
        return
    raise MissingObject(
        f"log entry {head + 1} is gone",
        detail=f"The log was noted to have come to entry {noted}, and ends at {head}.",
        hint="Restore the missing entries from a copy of the storage location. To go on without "
        "what they said, delete the objects under count/ beside the log.",
        object=f"{name}/{head + 1}",
    )
