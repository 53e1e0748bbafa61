"""A sink at work: in a thread of its own, tried again with growing pauses when Kafka fails.

The thread reads what is to be written and keeps the hold on history; Kafka's client is called by a
peer (`noonmark.peer`). So a sink whose brokers do not answer is stopped at once: its writer is
fenced, the peer is left, and the thread ends.

Where it runs: a thread per sink, and its peer's.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

from noonmark.adapter.catalog import Item
from noonmark.adapter.schedule.status import StatusHistory
from noonmark.adapter.upstream.sink import open_sink
from noonmark.errors import (
    DefiniteError,
    Fenced,
    InternalError,
    NoonmarkError,
    SourceStalled,
    StorageError,
)
from noonmark.peer import GRACE_S, closed
from noonmark.supervise import Thread

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.sink.run import Sink

LOG = logging.getLogger("noonmark.work")

_PAUSE_FIRST_S = 0.25
_PAUSE_LARGEST_S = 30.0


class SinkWorker:
    """See the module."""

    def __init__(self, database: Database, item: Item) -> None:
        self.item = item
        self.state, self.error = "starting", ""
        self._clock = database.clock
        self.changed_ms = database.clock.now_ms()
        self.history = StatusHistory(self.changed_ms)
        self.sink: Sink = open_sink(database, item)
        self.sink.on_error = self._note_error
        self._stop = threading.Event()
        self._supervisor = database.supervisor
        self._abandoned = database.work.abandoned_sinks
        self._thread: Thread | None = None

    async def start(self) -> None:
        """Hold history, then begin to write."""
        await asyncio.to_thread(self.sink.prepare)
        self._thread = self._supervisor.thread(
            "sink", self.item.name, self._run, self._stop, self._died
        )

    async def stop(self) -> None:
        """End after the transaction that is under way, or without it if that does not end soon.

        The hold on history stays.
        """
        self._stop.set()
        self.sink.stop()
        until_s = self._clock.monotonic() + GRACE_S
        if self._thread is not None:
            await self._thread.ended(GRACE_S)
        left = self.sink.leave()
        if self.sink.peer.is_silent:
            self._abandoned[self.item.number] = self.sink.peer
        if self._thread is not None:
            await self._thread.ended()
        await closed([left], until_s - self._clock.monotonic())

    def _run(self) -> None:
        pause_s = _PAUSE_FIRST_S
        while not self._stop.is_set():
            before = self.sink.messages
            self._note("running")
            try:
                self.sink.run()
                break
            except (StorageError, SourceStalled, DefiniteError, InternalError) as error:
                if self._stop.is_set():
                    break
                self._note("stalled", str(error))
            except NoonmarkError as error:
                if not (isinstance(error, Fenced) and self._was_abandoned()):
                    self._note("failed", str(error))
                    return
                self._note("stalled", str(error))
            pause_s = _PAUSE_FIRST_S if self.sink.messages > before else pause_s
            self._stop.wait(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_LARGEST_S)
        self._note("stopped")

    def _was_abandoned(self) -> bool:
        """Whether a take-over may be this sink's own of before: brokers had it, and were late."""
        before = self._abandoned.get(self.item.number)
        if before is not None and not before.is_silent:
            del self._abandoned[self.item.number]  # the last time
        return before is not None

    def _note_error(self, error: DefiniteError | None) -> None:
        """What it reads has no rows now, or has them again."""
        if error is None:
            self._note("running")
        else:
            self._note("stalled", str(error))

    def _died(self, error: NoonmarkError) -> None:
        self._note("stalled", str(error))

    def _note(self, state: str, error: str = "") -> None:
        if error and error != self.error:
            LOG.warning('sink "%s" %s: %s', self.item.name, state, error)
        elif state == "running" and self.error:
            LOG.info('sink "%s" is running again', self.item.name)
        if state != self.state:
            self.changed_ms = self._clock.now_ms()
        self.state, self.error = state, error
        self.history.note(self._clock.now_ms(), state, error or None)
