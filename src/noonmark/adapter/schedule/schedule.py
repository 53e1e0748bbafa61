"""The work behind a database: sources and views that tick, each by itself.

Nothing here decides what a row is: sources (`ingest`) and views (`compute`) do. Here is decided
when they tick, and what becomes of one that fails: it is tried again, says why, and holds back
nobody who does not read it.

    sources   as records come, with those that share a view with them, every second, and at once
              when a read waits for them
    views     as soon as all their inputs have moved: told by the commit that moved them, and
              together with the others that it moved
    tables    never by themselves: a read, or a view that shares a commit with them, moves them

`bring` makes collections complete at a time as soon as that can be: it seals the tables and wakes
the sources below them, and waits for the views between.

Where it runs: the adapter's loop; ticks run in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.schedule.rounds import Rounds
from noonmark.adapter.schedule.sinks import SinkWorker
from noonmark.adapter.schedule.sources import SourceWorker
from noonmark.adapter.schedule.totals import TickTotals
from noonmark.adapter.schedule.views import Failure, ViewWorker
from noonmark.adapter.upstream.switch import finish
from noonmark.errors import NoonmarkError, NotYetComplete
from noonmark.peer import Peer
from noonmark.persist.log.state import Collection, State
from noonmark.source.contract import Source
from noonmark.supervise import Task

if TYPE_CHECKING:
    from noonmark.adapter.database import Database


class Schedule:
    """See the module."""

    def __init__(self, database: Database) -> None:
        self._database = database
        #: By the number of the item.
        self.sources: dict[int, SourceWorker] = {}
        self.views: dict[int, ViewWorker] = {}
        self.totals = TickTotals()
        self.sinks: dict[int, SinkWorker] = {}
        #: Of sinks that were stopped while brokers did not answer, by number: they may answer yet.
        self.abandoned_sinks: dict[int, Peer] = {}
        #: Of sources with tables that are to become what their relations show.
        self._switches: dict[int, Task] = {}
        #: What `together` found in a catalog.
        self._known: tuple[Catalog, dict[str, set[str]]] = (database.catalog, {})
        #: What `neighbours` found in a catalog.
        self._beside: tuple[Catalog, dict[int, set[int]]] = (database.catalog, {})
        workers = database.workers
        self.rounds = Rounds(
            database.clock,
            self._about_to_tick,
            lambda: workers.limits.tick_timeout_s,
            database.supervisor,
            engine=lambda: database.engine,
            memory_mb=workers.limits.spark_python_memory_mb,
        )

    async def start(self) -> None:
        """Take up every source and every view of the catalog."""
        await self.take_up(list(self._database.catalog.by_number))

    async def stop(self) -> None:
        """Let what is under way finish, and end."""
        await asyncio.gather(*(task.stop() for task in self._switches.values()))
        views = (worker.stop() for worker in self.views.values())
        sources = (worker.stop() for worker in self.sources.values())
        sinks = (worker.stop() for worker in self.sinks.values())
        await asyncio.gather(*views, *sources, *sinks)
        self.rounds.stop()

    async def add_source(self, item: Item, source: Source | None = None) -> None:
        """Begin to ingest a source, unless it is inactive; `source` is it, if it was just made."""
        worker = self.sources[item.number] = SourceWorker(self._database, item, source)
        worker.start()
        going = self._switches.get(item.number)
        if item.definition.get("pending") and (going is None or going.life.ended):
            finishing = partial(finish, self._database, item.number)
            task = self._database.supervisor.task("refresh", item.name, finishing)
            self._switches[item.number] = task

    def why_not_switched(self, number: int) -> str | None:
        """Why the tables that are pending of a source do not become what is shown, if so."""
        task = self._switches.get(number)
        return task.life.error if task is not None and task.life.is_failing() else None

    async def add_sink(self, item: Item) -> None:
        """Begin to write a sink."""
        worker = self.sinks[item.number] = SinkWorker(self._database, item)
        await worker.start()

    async def add_view(self, item: Item) -> None:
        """Begin to maintain a view or an index."""
        worker = self.views[item.number] = ViewWorker(self._database, item)
        worker.start()

    async def take_up(self, numbers: Iterable[int]) -> None:
        """Begin the work of items again."""
        numbers = list(numbers)
        # Sinks first: they hold the history that the others would let go of.
        for number in numbers:
            item = self._database.catalog.by_number.get(number)
            if item is not None and item.kind == "sink":
                await self.add_sink(item)
        for number in numbers:
            item = self._database.catalog.by_number.get(number)
            if number in self.sources or number in self.views:
                continue
            if item is not None and item.kind == "source" and not item.is_written:
                await self.add_source(item)
            elif item is not None and item.kind in ("materialized-view", "index"):
                await self.add_view(item)

    def retry(self) -> None:
        """What failed is tried again at once: the reason may have gone."""
        for source in self.sources.values():
            source.retry()
        for view in self.views.values():
            view.retry()

    async def altered(self, item: Item) -> None:
        """An item has other options now."""
        source, view = self.sources.get(item.number), self.views.get(item.number)
        if source is not None:
            source.alter(item)
        if view is not None:
            view.alter(item)

    async def restart_above(self, number: int) -> None:
        """Let sources and sinks that need an item open their connections anew."""
        stopping: list[tuple[Item, SourceWorker | SinkWorker]] = []
        for item in self._database.catalog.dependents([number]):
            source, sink = self.sources.get(item.number), self.sinks.get(item.number)
            if source is not None:
                del self.sources[item.number]
                stopping.append((item, source))
            if sink is not None:
                del self.sinks[item.number]
                stopping.append((item, sink))
        await asyncio.gather(*(worker.stop() for _, worker in stopping))
        # What was dropped meanwhile is not begun again.
        await self.take_up([item.number for item, _ in stopping])

    async def remove(self, numbers: Iterable[int]) -> None:
        """Stop the work of items; ticks of views that are under way are given up."""
        numbers = list(numbers)
        workers = [
            worker
            for number in numbers
            for worker in (self.sources.pop(number, None), self.views.pop(number, None))
            if worker is not None
        ]
        sinks = [self.sinks.pop(number) for number in numbers if number in self.sinks]
        await asyncio.gather(
            *(worker.stop() for worker in workers), *(sink.stop() for sink in sinks)
        )

    # -- what depends on what --------------------------------------------------------------------

    def together(self, collection: str) -> set[str]:
        """The tables that share a maintained view with this one: what seals one seals them."""
        catalog, known = self._known
        if catalog is not self._database.catalog:
            catalog, known = self._known = self._database.catalog, {}
        if collection not in known:
            known[collection] = self._sharing(catalog, collection)
        return known[collection]

    def _sharing(self, catalog: Catalog, collection: str) -> set[str]:
        item = catalog.of_collection(collection)
        if item is None:
            return set()
        views = [each.number for each in catalog.dependents([item.number]) if each.is_stored]
        return {each.collection for each in catalog.needs(views) if each.is_written}

    def neighbours(self, number: int) -> list[SourceWorker]:
        """The sources that share a maintained view with this one; from any thread."""
        catalog, known = self._beside
        if catalog is not self._database.catalog:
            catalog, known = self._beside = self._database.catalog, {}
        if number not in known:
            views = [each.number for each in catalog.dependents([number]) if each.is_stored]
            below = {each.number for each in catalog.needs(views) if each.kind == "source"}
            known[number] = below - {number}
        workers = (self.sources.get(each) for each in known[number])
        return [worker for worker in workers if worker is not None]

    def tables_below(self, names: Iterable[str]) -> dict[str, list[str]]:
        """For collections that come of tables alone: those tables."""
        found: dict[str, list[str]] = {}
        for name in names:
            items = self.below([name])
            if not any(item.number in self.sources for item in items):
                found[name] = [item.collection for item in items if item.kind == "table"]
        return found

    def below(self, names: Iterable[str]) -> list[Item]:
        """The items of these collections and everything that they are computed from."""
        catalog = self._database.catalog
        items = [catalog.of_collection(name) for name in names]
        return catalog.needs(item.number for item in items if item is not None)

    # -- for reads -------------------------------------------------------------------------------

    async def begun(self, names: Iterable[str]) -> None:
        """Return when every source below these collections has been read once.

        A source's collections begin before its first tick, empty: nobody means that time.
        """
        state = self._database.client.state
        new = [name for name in names if is_new(state.collection(name))]
        for item in self.below(new) if new else ():
            worker = self.sources.get(item.number)
            if worker is not None and not worker.begun.done():
                worker.want(await self._database.oracle.read_ts())
                await asyncio.shield(asyncio.wrap_future(worker.begun))

    async def bring(self, names: Iterable[str], time: int) -> None:
        """Return when all these collections are complete at `time`, which is made to be soon.

        Raises:
            NotYetComplete: a view that is needed cannot be computed; says why.
        """
        names = tuple(names)
        complete = partial(is_complete, names, time)
        client = self._database.client
        if complete(client.state):
            return
        below = self.below(names)
        tables = [item.collection for item in below if item.is_written]
        if tables:
            await self._database.tables.advance(time, tables)
        for item in below:
            if item.number in self.sources:
                self._want(self.sources[item.number], time)
        views = [self.views[item.number] for item in below if item.number in self.views]
        await self._wait(complete, views)

    def _want(self, source: SourceWorker, time: int) -> None:
        if source.status.state == "failed":
            raise NotYetComplete(
                f'source "{source.name}" has failed',
                detail=source.status.error,
                hint="Read at an earlier time with AS OF, or drop the source.",
            )
        source.want(time)

    async def _wait(self, complete: partial[bool], views: list[ViewWorker]) -> None:
        client = self._database.client
        waiting = client.runtime.submit(client.journal.wait_for(complete))
        ready = asyncio.ensure_future(asyncio.wrap_future(waiting))
        failures = [asyncio.ensure_future(view.next_failure()) for view in views]
        try:
            both: list[asyncio.Future[Any]] = [ready, *failures]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if ready.done():
                ready.result()
                return
            failed = next(each.result() for each in failures if each.done())
            raise _not_brought(failed)
        finally:
            ready.cancel()
            for failure in failures:
                failure.cancel()

    def _about_to_tick(self) -> set[str]:
        state = self._database.client.state
        return {each.name for each in self.views.values() if each.is_about_to_tick(state)}

    def failures(self) -> dict[str, NoonmarkError]:
        """The views that fail, and why."""
        workers = self.views.values()
        return {each.name: each.error for each in workers if each.error is not None}


def _not_brought(failed: Failure) -> NotYetComplete:
    error = failed.error
    return NotYetComplete(
        f'"{failed.name}" cannot be brought up to date',
        detail=" ".join(filter(None, (f"{error.message.rstrip('.')}.", error.detail))),
        hint=error.hint or "Change what it reads, or read at an earlier time with AS OF.",
    )


def is_new(collection: Collection) -> bool:
    """Whether a collection has no time that can be read yet."""
    return collection.since == collection.upper


def is_complete(names: tuple[str, ...], time: int, state: State) -> bool:
    """Whether all these collections are complete at a time."""
    return all(not state.collection(name).upper.less_equal(time) for name in names)
