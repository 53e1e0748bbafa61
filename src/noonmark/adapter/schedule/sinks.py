"""A sink at work: in a thread of its own, tried again with growing pauses when Kafka fails.

Where it runs: a thread per sink.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

from noonmark.adapter.catalog import Item
from noonmark.adapter.schedule.status import StatusHistory
from noonmark.adapter.upstream.sink import open_sink
from noonmark.errors import DefiniteError, InternalError, NoonmarkError, SourceStalled, StorageError
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
        self._thread: Thread | None = None

    async def start(self) -> None:
        """Hold history, then begin to write."""
        await asyncio.to_thread(self.sink.prepare)
        self._thread = self._supervisor.thread(
            "sink", self.item.name, self._run, self._stop, self._died
        )

    async def stop(self) -> None:
        """End after the transaction that is under way; the hold on history stays."""
        self._stop.set()
        self.sink.stop()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        self.sink.close()

    def _run(self) -> None:
        pause_s = _PAUSE_FIRST_S
        while not self._stop.is_set():
            before = self.sink.messages
            self._note("running")
            try:
                self.sink.run()
                break
            except (StorageError, SourceStalled, DefiniteError, InternalError) as error:
                self._note("stalled", str(error))
            except NoonmarkError as error:
                self._note("failed", str(error))
                return
            pause_s = _PAUSE_FIRST_S if self.sink.messages > before else pause_s
            self._stop.wait(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_LARGEST_S)
        self._note("stopped")

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
