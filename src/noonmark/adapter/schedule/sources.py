"""A source at work: it ticks when records come, at intervals, and at once when a read waits for it.

Each source ticks in a thread of its own, and `noonmark.adapter.schedule.pace` says when. A source
that tells when records come (`HasArrivals`) is listened to in another thread, between ticks.

A view over several sources is as far as the one that is least far. So whoever binds something new
pulls its neighbours, the sources that share a view with it: they tick beside its own reading, and
what it has read need not wait for their next interval.

A source that stalls (or whose Spark job failed, or whose storage did not answer) is tried again
with growing pauses and says why; a defect of ours ends it, and its status keeps the error. One with
relations that cannot be followed any more goes on with the others: its status is `errored`, and
says which. An inactive source ticks only when a read asks for a time.

Where a tick is read is decided by its size (`noonmark.ingest.engine`).

Upstream is asked and read by peers (`noonmark.peer`), and never by this thread, which commits. So a
source whose upstream does not answer is stopped at once: the peers are left, the thread ends, and
what comes back later is committed by nobody.

Where it runs: a thread per source, and one more for each that is listened to.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from noonmark.adapter.catalog import Item
from noonmark.adapter.schedule.definitions import feeds_of
from noonmark.adapter.schedule.ended import ERRORED, errors_now, outputs_of, remedy_of, said
from noonmark.adapter.schedule.pace import INTERVAL_S, Pace
from noonmark.adapter.schedule.standstill import Standstill
from noonmark.adapter.schedule.status import StatusHistory
from noonmark.adapter.upstream.prepare import open_source
from noonmark.adapter.upstream.staging import drop_orphans
from noonmark.compute.runner.limit import Limit
from noonmark.errors import NoonmarkError, SourceStalled, StorageError
from noonmark.ingest.engine import ApartEngine, BySizeEngine
from noonmark.ingest.ingestion import Engine, Ingestion, SparkEngine, Tick
from noonmark.ingest.rates import Rates
from noonmark.ingest.status import Status
from noonmark.peer import GRACE_S, Peer, closed
from noonmark.persist.log.definite import Failure
from noonmark.rows.types import quote_name
from noonmark.source.contract import HasArrivals, HasNews, HasPeer, Source
from noonmark.storage.transaction import RETAIN_MS
from noonmark.supervise import Thread

if TYPE_CHECKING:
    from noonmark.adapter.database import Database

LOG = logging.getLogger("noonmark.work")

_TRANSIENT = (SourceStalled, StorageError)
#: How often one that rests looks whether it is to go on.
_REST_S = 0.05
_PAUSE_FIRST_S = 0.25
_PAUSE_LARGEST_S = 30.0
#: How long it is listened at once: so long a stop waits for it, and a tick that hears nothing.
_LISTEN_S = 0.1


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
        #: Why it is to tick before its interval is over: somebody cannot wait, records have come,
        #: or a neighbour is complete at that time.
        self._hurried = self._news = False
        self._pulled = 0
        self._listening = threading.Event()
        self._threads: list[Thread] = []
        self._is_left = False
        self._standstill = Standstill()
        self._reading = Peer("source", f'"{item.name}"', database.clock)

    def start(self) -> None:
        """Begin to tick."""
        thread = self._database.supervisor.thread
        self._threads.append(thread("source", self.name, self._live, self._stopping, self._died))

    async def stop(self) -> None:
        """End after the tick that is under way, or without it if that does not end soon."""
        self._stopping.set()
        self._wake.set()
        self._listening.set()
        until_s = self._database.clock.monotonic() + GRACE_S
        await self._ended(until_s)
        with self._opening:
            self._is_left = True
            source: object = self._source
        left = [self._reading.leave()]
        if isinstance(source, HasPeer):
            left.append(source.leave())
        for thread in self._threads[:1]:  # the one that commits
            await thread.ended()
        self._standstill.over()
        await self._ended(until_s)
        await closed(left, until_s - self._database.clock.monotonic())

    async def _ended(self, until_s: float) -> None:
        """Wait for its threads; the first one begins the other."""
        for at in range(2):
            if at < len(self._threads):
                left_s = until_s - self._database.clock.monotonic()
                await self._threads[at].ended(max(0.0, left_s))

    def source(self) -> Source:
        """The source itself, one for ticks and for reads that ask how far it is."""
        with self._opening:
            if self._is_left:
                raise SourceStalled(f'source "{self.name}" was stopped')
            if self._source is None:
                self._source = open_source(self._database, self.item)
            return self._source

    def want(self, time: int) -> None:
        """Tick at once: somebody waits for this source to be complete at `time`."""
        self._wanted = max(self._wanted, time)
        self.retry()

    def pull(self, time: int) -> None:
        """Tick soon: what a neighbour has bound at `time` waits for this source in a view."""
        self._pulled = max(self._pulled, time)
        self._wake.set()

    def retry(self) -> None:
        """Try again at once, if it waits to."""
        self._hurried = True
        self._wake.set()

    @asynccontextmanager
    async def resting(self, seconds: float) -> AsyncIterator[bool]:
        """A block in which it does not tick: False where the tick under way takes longer.

        For who stops it under the catalog's turn: there nobody waits for upstream.
        """
        asking = self._standstill.ask()
        self.retry()
        try:
            done, _ = await asyncio.wait({asyncio.wrap_future(asking)}, timeout=seconds)
            yield bool(done)
        finally:
            self._standstill.take_back(asking)
            self.retry()

    def alter(self, item: Item) -> None:
        """Tick by itself from now on, or only when asked; keep more history, or less."""
        self.item = item
        self.active = bool(item.definition.get("active", True))
        if self.ingestion is not None:
            self.ingestion.retain_ms = RETAIN_MS if item.retain_ms is None else item.retain_ms
        self.retry()

    # -- the thread ------------------------------------------------------------------------------

    def _live(self) -> None:
        self._run()
        self._standstill.over()

    def _run(self) -> None:
        pause_s = _PAUSE_FIRST_S
        clock = self._database.clock
        last = Pace(0.0, 0.0, float("-inf"))
        asks = True
        while not self._stopping.is_set():
            if self._stand_still():
                continue
            began_s = clock.monotonic()
            try:
                if self._is_due():
                    self._tick(asks)
            except Exception as error:
                if self._stopping.is_set():
                    break
                if isinstance(error, NoonmarkError) and not isinstance(error, _TRANSIENT):
                    self._note(state="failed", error=str(error))
                    self._begin()
                    return
                self._note(state="stalled", error=str(error))
                self._pause(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_LARGEST_S)
                asks = True
                continue
            pause_s = _PAUSE_FIRST_S
            if self.ingestion is not None and self.ingestion.is_finished:
                self._note(state="finished")
                return
            last = Pace(began_s, clock.monotonic(), began_s if asks else last.asked_s)
            asks = self._rest(last)
        self._note(state="stopped")

    def _stand_still(self) -> bool:
        """Whether somebody wants it to rest; waits a little then."""
        if not self._standstill.grant():
            return False
        self._wake.wait(_REST_S)
        self._wake.clear()
        return True

    def _died(self, error: NoonmarkError) -> None:
        self._note(state="stalled", error=str(error))
        self.ingestion = None  # made again, as it is stored

    def _is_due(self) -> bool:
        if self.active:
            return True
        if self.ingestion is None:
            return self._wanted > 0
        return self._lacks(self._wanted)

    def _lacks(self, time: int) -> bool:
        """Whether it has ticked before, and is not complete at a time."""
        upper = None if self.ingestion is None else self.ingestion.remap.upper.only()
        return upper is not None and upper <= time

    def _pause(self, seconds: float) -> None:
        """Until then, or until somebody wants more."""
        ends_s = self._database.clock.monotonic() + seconds
        while not (self._stopping.is_set() or self._hurried):
            left_s = ends_s - self._database.clock.monotonic()
            if left_s <= 0:
                break
            self._wake.wait(left_s)
            self._wake.clear()
        self._hurried = False

    def _rest(self, last: Pace) -> bool:
        """Until the next tick is due, or somebody wants more; whether it is to ask upstream."""
        clock = self._database.clock
        self._news = False
        self._let_hear()
        while not (self._stopping.is_set() or self._hurried):
            left_s = None
            if self.active:
                early = self._news or self._lacks(self._pulled)
                left_s = last.due_s(early=early) - clock.monotonic()
                if left_s <= 0:
                    break
            self._wake.wait(left_s)
            self._wake.clear()
        if not self._stopping.is_set():
            self._listening.clear()
        hurried = self._hurried
        if hurried:  # otherwise who comes now would be forgotten
            self._hurried = False
        return hurried or self._news or last.asks(clock.monotonic())

    def _let_hear(self) -> None:
        """Who ticks by itself is listened to; who ticks when asked holds nothing for that."""
        source: object = self._source
        if self.active:
            self._listening.set()
        elif isinstance(source, HasArrivals):
            source.hush()

    def _listen(self) -> None:
        """Between ticks: wake the thread that ticks when records have come."""
        source: object = self._source
        assert isinstance(source, HasArrivals)
        while not self._stopping.is_set():
            self._listening.wait()
            if self._stopping.is_set():
                return
            ingestion = self.ingestion
            if ingestion is None:  # it has died, and is made again
                self._stopping.wait(_LISTEN_S)
                continue
            try:
                came = source.arrived(ingestion.remap.latest, _LISTEN_S)
            except NoonmarkError:  # a tick will meet it, and say so
                self._stopping.wait(INTERVAL_S)
                continue
            if came:
                self._listening.clear()
                self._news = True
                self._wake.set()

    def _bound(self, time: int) -> None:
        """What is new is bound at a time: whoever shares a view with it is to be as far."""
        for worker in self._database.work.neighbours(self.item.number):
            worker.pull(time)

    def _tick(self, asks: bool) -> None:
        if self.ingestion is None:
            self.ingestion = self._make()
            if isinstance(self.source(), HasArrivals) and len(self._threads) < 2:
                thread = self._database.supervisor.thread
                self._threads.append(thread("arrivals", self.name, self._listen, self._stopping))
        tick = self.ingestion.tick(asks=asks)
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
            self.engine(self._reading),
            RETAIN_MS if item.retain_ms is None else item.retain_ms,
            feeds_of(database.catalog, item, source),
            parts["progress"].collection,
            parts["errors"].collection,
            remedy_of(database.catalog, item),
            on_bound=self._bound,
            release_pause_s=INTERVAL_S,
        ).start()

    def engine(self, peer: Peer) -> Engine:
        """What reads for this source by a peer: little in this process, much on Spark."""
        return ApartEngine(self._engine, peer)

    def _engine(self, limit: Limit) -> Engine:
        database = self._database
        spark = SparkEngine(database.started_spark, limit)
        return BySizeEngine(spark, self.rates, database.clock)

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
