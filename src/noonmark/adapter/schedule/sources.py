"""A source at work: it ticks at fixed intervals, and at once when a read waits for it.

Each source ticks in a thread of its own. One that stalls (or whose Spark job failed, or whose
storage did not answer) is tried again with growing pauses and says why; a defect of ours ends it,
and its status keeps the error. One with relations that cannot be followed any more goes on with the
others: its status is `errored`, and says which. An inactive source ticks only when a read asks for
a time.

Where a tick is read is decided by its size (`noonmark.ingest.engine`).

Where it runs: a thread per source.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING

from noonmark.adapter.catalog import Item
from noonmark.adapter.schedule.definitions import feeds_of
from noonmark.adapter.schedule.ended import ERRORED, errors_now, outputs_of, remedy_of, said
from noonmark.adapter.schedule.status import StatusHistory
from noonmark.adapter.upstream.prepare import open_source
from noonmark.adapter.upstream.staging import drop_orphans
from noonmark.errors import NoonmarkError, SourceStalled, StorageError
from noonmark.ingest.engine import BySizeEngine
from noonmark.ingest.ingestion import Engine, Ingestion, SparkEngine, Tick
from noonmark.ingest.rates import Rates
from noonmark.ingest.status import Status
from noonmark.persist.log.definite import Failure
from noonmark.rows.types import quote_name
from noonmark.source.contract import HasNews, Source
from noonmark.storage.transaction import RETAIN_MS
from noonmark.supervise import Thread

if TYPE_CHECKING:
    from noonmark.adapter.database import Database

LOG = logging.getLogger("noonmark.work")

INTERVAL_S = 1.0
_TRANSIENT = (SourceStalled, StorageError)
_PAUSE_FIRST_S = 0.25
_PAUSE_LARGEST_S = 30.0


class SourceWorker:
    """See the module."""

    def __init__(self, database: Database, item: Item, source: Source | None = None) -> None:
        self._database = database
        self._source = source
        self._opening = threading.Lock()
        self.item = item
        self.name = item.name
        self.status = Status()
        self.rates = Rates()
        self.changed_ms = database.clock.now_ms()
        self.history = StatusHistory(self.changed_ms)
        self.ingestion: Ingestion | None = None
        self.active = bool(item.definition.get("active", True))
        #: Done when it has ticked, or never will.
        self.begun: Future[None] = Future()
        self._wanted = 0
        self._told: dict[str, str] = {}
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begin to tick."""
        self._thread = self._database.supervisor.thread(
            "source", self.name, self._run, self._stopping, self._died
        )

    async def stop(self) -> None:
        """End after the tick that is under way."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        if self._source is not None and hasattr(self._source, "close"):
            await asyncio.to_thread(self._source.close)

    def source(self) -> Source:
        """The source itself, one for ticks and for reads that ask how far it is."""
        with self._opening:
            if self._source is None:
                self._source = open_source(self._database, self.item)
            return self._source

    def want(self, time: int) -> None:
        """Tick at once: somebody waits for this source to be complete at `time`."""
        self._wanted = max(self._wanted, time)
        self._wake.set()

    def retry(self) -> None:
        """Try again at once, if it waits to."""
        self._wake.set()

    def alter(self, item: Item) -> None:
        """Tick by itself from now on, or only when asked; keep more history, or less."""
        self.item = item
        self.active = bool(item.definition.get("active", True))
        if self.ingestion is not None:
            self.ingestion.retain_ms = RETAIN_MS if item.retain_ms is None else item.retain_ms
        self._wake.set()

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        pause_s = _PAUSE_FIRST_S
        while not self._stopping.is_set():
            began = self._database.clock.monotonic()
            try:
                if self._is_due():
                    self._tick()
            except Exception as error:
                if isinstance(error, NoonmarkError) and not isinstance(error, _TRANSIENT):
                    self._note(state="failed", error=str(error))
                    self._begin()
                    return
                self._note(state="stalled", error=str(error))
                self._sleep(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_LARGEST_S)
                continue
            pause_s = _PAUSE_FIRST_S
            if self.ingestion is not None and self.ingestion.is_finished:
                self._note(state="finished")
                return
            self._sleep(INTERVAL_S - (self._database.clock.monotonic() - began))
        self._note(state="stopped")

    def _died(self, error: NoonmarkError) -> None:
        self._note(state="stalled", error=str(error))
        self.ingestion = None  # made again, as it is stored

    def _is_due(self) -> bool:
        if self.active:
            return True
        if self.ingestion is None:
            return self._wanted > 0
        upper = self.ingestion.remap.upper.only()
        return upper is not None and upper <= self._wanted

    def _sleep(self, seconds: float) -> None:
        """Until the next interval, or until somebody wants more."""
        if seconds > 0 or not self.active:
            self._wake.wait(seconds if self.active else None)
        self._wake.clear()

    def _tick(self) -> None:
        if self.ingestion is None:
            self.ingestion = self._make()
        tick = self.ingestion.tick()
        self._count(tick)
        self._begin()

    def _begin(self) -> None:
        if not self.begun.done():
            self.begun.set_result(None)

    def _make(self) -> Ingestion:
        database, item = self._database, self.item
        source = self.source()
        parts = {each.kind: each for each in database.catalog.parts_of(item.number)}
        drop_orphans(database.client, database.catalog, item)
        return Ingestion(
            database.client,
            database.oracle.blocking,
            source,
            item.name,
            self.engine(),
            RETAIN_MS if item.retain_ms is None else item.retain_ms,
            feeds_of(database.catalog, item, source),
            parts["progress"].collection,
            parts["errors"].collection,
            remedy_of(database.catalog, item),
        ).start()

    def engine(self) -> Engine:
        """What reads for this source: little in this process, much on Spark."""
        database = self._database
        return BySizeEngine(SparkEngine(database.started_spark), self.rates, database.clock)

    def _count(self, tick: Tick) -> None:
        seen = self.status
        errors = self.errors()
        state = ERRORED if errors else "running" if self.active else "paused"
        self._note(
            state=state, error=said(errors), ticks=seen.ticks + 1, rows=seen.rows + tick.rows,
            last=tick,
        )  # fmt: skip
        news = self.news()
        for text in sorted(set(news.values()) - set(self._told.values())):
            LOG.info('source "%s": %s', self.name, text)
        self._told = news

    def news(self) -> dict[str, str]:
        """What upstream has of the source's tables that is not read, and what takes it, by name."""
        source: object = self._source
        database = self._database
        if not isinstance(source, HasNews):
            return {}
        found = source.news()
        names = {
            part.definition["output"]: part.name
            for part in database.catalog.parts_of(self.item.number)
            if part.kind == "subsource"
        }
        said = f"ALTER SOURCE {quote_name(self.name)} REFRESH TABLE"
        return {
            names[output]: f"{text}; {said} {quote_name(names[output])} takes them"
            for output, text in found.items()
            if output in names
        }

    def errors(self) -> dict[str, Failure]:
        """The relations of the source that are in a definite error, by their names."""
        database = self._database
        return errors_now(database.client.state, outputs_of(database.catalog, self.item))

    def _note(self, **changes: object) -> None:
        error = changes.get("error")
        if error is not None and error != self.status.error:
            LOG.warning('source "%s" %s: %s', self.name, changes["state"], error)
        elif changes.get("state") == "running" and self.status.error is not None:
            LOG.info('source "%s" is running again', self.name)
        if changes.get("state") != self.status.state:
            self.changed_ms = self._database.clock.now_ms()
        self.status = replace(self.status, **changes)  # type: ignore[arg-type]
        self.history.note(self._database.clock.now_ms(), self.status.state, self.status.error)
