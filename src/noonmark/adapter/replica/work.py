"""The work behind a replica: none of its own. What is not complete yet, the writer is asked for.

Sources and views move by themselves while somebody writes; tables move when they are written, or
when somebody asks. Where the writer cannot be asked, whoever waits for a table, or while nothing at
all is written, is told so after `PATIENCE_S`: a writer that is starting anew gets that long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from noonmark.adapter.replica.questions import Bring, ask
from noonmark.adapter.schedule.schedule import Schedule, is_complete, is_new
from noonmark.errors import NoonmarkError, NotYetComplete
from noonmark.persist.question import NotAnswered

if TYPE_CHECKING:
    from noonmark.adapter.database import Database

PATIENCE_S = 5.0
_PAUSE_S = 0.25


class FollowedWork(Schedule):
    """See the module."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._database = database

    async def begun(self, names: Iterable[str]) -> None:
        """Return when every one of these collections has a time that can be read."""
        state = self._database.client.state
        for name in names:
            collection = state.collection(name)
            since = collection.since.only()
            if is_new(collection) and since is not None:
                await self.bring([name], since)

    async def bring(self, names: Iterable[str], time: int) -> None:
        """Return when all these collections are complete at `time`.

        Raises:
            NotYetComplete: they cannot be; says why.
        """
        names = tuple(names)
        client, clock = self._database.client, self._database.clock
        complete = partial(is_complete, names, time)
        moved, seqno = clock.monotonic(), client.state.seqno
        while not complete(client.state):
            silent: NotAnswered | None = None
            try:
                await ask(client, Bring(names, time))
            except NotAnswered as error:
                silent = error
            await asyncio.wrap_future(client.runtime.submit(client.journal.refresh()))
            if complete(client.state):
                return
            if silent is None:
                continue
            if client.state.seqno != seqno and not self._tables(names, time):
                moved, seqno = clock.monotonic(), client.state.seqno
            if clock.monotonic() - moved > PATIENCE_S:
                raise _nobody(names, time, silent)
            await clock.sleep(_PAUSE_S)

    def _tables(self, names: tuple[str, ...], time: int) -> list[str]:
        """The tables below these that are not complete at a time."""
        state = self._database.client.state
        return [
            item.collection
            for item in self.below(names)
            if item.is_written
            and item.collection in state.names
            and not is_complete((item.collection,), time, state)
        ]


def _nobody(names: tuple[str, ...], time: int, why: NoonmarkError) -> NotYetComplete:
    shown = ", ".join(f'"{name}"' for name in names)
    return NotYetComplete(
        f"{shown}: not complete at {time}, and the writer cannot be asked to make it so",
        detail=" ".join(filter(None, (f"{why.message}.", why.detail))),
        hint="Read at an earlier time with AS OF, or connect to the writer.",
    )
