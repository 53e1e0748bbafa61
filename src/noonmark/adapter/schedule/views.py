"""A maintained view at work: it ticks as soon as all its inputs have moved.

The worker waits for the commit that lets the view go on, and has it tick with the others that go on
then (`noonmark.adapter.schedule.rounds`); while a tick runs its inputs gather, so under load ticks
grow and when idle there are none. In a view that follows the
time rows come and go though nothing was written: then the worker brings the tables below up to now,
as soon as a row has its turn. A tick that fails is tried
again with growing pauses; what the view has so far stays readable.

Where it runs: the adapter's loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Item
from noonmark.adapter.schedule.definitions import view_definition
from noonmark.adapter.schedule.failing import Failing, failing_now
from noonmark.compute.jvm.session import Session, import_spark
from noonmark.errors import NoonmarkError, SourceStalled, Stopped
from noonmark.persist.log.state import State
from noonmark.storage.transaction import RETAIN_MS
from noonmark.supervise import Task

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.compute.view.view import TickRecord, View

LOG = logging.getLogger("noonmark.work")

_RECORDS_MAX = 1_000
_PAUSE_FIRST_S = 0.25
_PAUSE_LARGEST_S = 30.0
#: How often, at most, it is looked whether a row has its turn.
_TURN_PAUSE_S = 0.2


@dataclass(frozen=True)
class Failure:
    """A tick that failed."""

    name: str
    error: NoonmarkError


class ViewWorker:
    """See the module."""

    def __init__(self, database: Database, item: Item) -> None:
        self._database = database
        self.item = item
        self.name = item.collection
        self.view: View | None = None
        self.error: NoonmarkError | None = None
        #: Why it has no answer though it is maintained: errors are data.
        self.failing: Failing | None = None
        self.records: deque[TickRecord] = deque(maxlen=_RECORDS_MAX)
        self._task: Task | None = None
        self._tick: asyncio.Future[TickRecord | None] | None = None
        self._failed: asyncio.Future[Failure] | None = None
        self._retry = asyncio.Event()
        self._waits = False

    def start(self) -> None:
        """Begin."""
        self._task = self._database.supervisor.task(
            "view", self.name, self._run, on_death=self._note, ends=(Stopped,)
        )

    async def stop(self) -> None:
        """End; a tick that is under way is given up, and is not waited for."""
        self._database.work.rounds.give_up(self.name)
        if self._task is not None:
            await self._task.stop()
        if self._tick is not None:
            self._tick.cancel()

    def retry(self) -> None:
        """Try again at once, if it waits to."""
        self._retry.set()

    async def next_failure(self) -> Failure:
        """The next tick that fails; one that has failed is tried again at once."""
        self._retry.set()
        if self._failed is None:
            self._failed = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._failed)

    def is_about_to_tick(self, state: State) -> bool:
        """Whether the view waits, and what it waits for is there."""
        return self._waits and self.view is not None and _can_go_on(self.view, state)

    async def _run(self) -> None:
        pause_s = _PAUSE_FIRST_S
        while True:
            try:
                await self._step()
            except Stopped:
                raise
            except Exception as error:
                # Also what Spark itself raises: nothing is lost by trying again.
                self._note(error)
                await self._pause(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_LARGEST_S)
            else:
                if self.error is not None:
                    LOG.info('view "%s" is maintained again', self.name)
                self.error = None
                pause_s = _PAUSE_FIRST_S

    async def _pause(self, seconds: float) -> None:
        """Until the next try; not as long when somebody waits for the view."""
        self._retry.clear()
        sleep = asyncio.ensure_future(self._database.clock.sleep(seconds))
        asked = asyncio.ensure_future(self._retry.wait())
        try:
            await asyncio.wait({sleep, asked}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            asked.cancel()

    async def _step(self) -> None:
        """Wait until the view can go on, and let it."""
        if self.view is None:
            self.view = await asyncio.to_thread(self.take_up)
            await self._look_for_errors()
        view = self.view
        client = self._database.client

        def can_go_on(state: State) -> bool:
            return _can_go_on(view, state)

        tables = self._database.work.tables_below(view.definition.inputs)

        def is_ready(state: State) -> bool:
            return can_go_on(state) or bool(_left_behind(view, state, tables))

        while not can_go_on(client.state):
            ready = asyncio.wrap_future(client.runtime.submit(client.journal.wait_for(is_ready)))
            self._waits = True
            try:
                await self._until_turn(view, ready, tables)
            finally:
                self._waits = False
            await self._pull(_left_behind(view, client.state, tables))
        self._database.engine.want()
        self._tick = asyncio.ensure_future(self._database.work.rounds.tick(view))
        record = await asyncio.shield(self._tick)
        if record is not None:
            self.records.append(record)
            self._database.work.totals.add(record)
            self._database.telemetry.tick(record, self._database.clock.now_ms())
            if record.errors:
                await self._look_for_errors()

    async def _look_for_errors(self) -> None:
        """Learn what the view cannot compute now, and tell operators when that begins or ends."""
        before = self.failing
        self.failing = await asyncio.to_thread(failing_now, self._database.client, self.name)
        if self.failing is not None and before is None:
            LOG.warning('view "%s" has no answer: %s', self.name, self.failing.message)
        elif self.failing is None and before is not None:
            LOG.info('view "%s" has an answer again', self.name)

    async def _until_turn(
        self, view: View, ready: asyncio.Future[State], tables: dict[str, list[str]]
    ) -> None:
        """Wait for the inputs; when a row has its turn before, bring the tables up to it."""
        clock = self._database.clock
        try:
            while not ready.done() and (turn := view.turns.next()) is not None:
                left_s = (turn - clock.now_ms()) / 1000
                pause_s = min(max(left_s, _TURN_PAUSE_S), _PAUSE_LARGEST_S)
                sleep = asyncio.ensure_future(clock.sleep(pause_s))
                waiting: tuple[asyncio.Future[Any], ...] = (ready, sleep)
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                sleep.cancel()
                now = clock.now_ms()
                if not ready.done() and await asyncio.to_thread(view.is_due, now):
                    below = {table for names in tables.values() for table in names}
                    await self._database.tables.advance(now, below)
                    break
            await ready
        finally:
            ready.cancel()

    async def _pull(self, behind: dict[str, int]) -> None:
        """Tables move when somebody wants them to; a source beside them does."""
        if behind:
            await self._database.tables.advance(max(behind.values()), behind)

    def alter(self, item: Item) -> None:
        """Keep more history, or less."""
        self.item = item
        if self.view is not None:
            self.view.retain_ms = RETAIN_MS if item.retain_ms is None else item.retain_ms

    def taken_up(self) -> View:
        """The view, also before its first tick. Blocks."""
        return self.view or self.take_up()

    def take_up(self) -> View:
        """The view as the catalog defines it now."""
        import_spark()  # many views are taken up at once when a server starts
        # door: Spark's modules: a server starts without them
        from noonmark.compute.view.view import View

        database, item = self._database, self.item
        definition = view_definition(database.catalog, item)
        retain_ms = RETAIN_MS if item.retain_ms is None else item.retain_ms
        strict = item.definition.get("maintenance") == "strict"
        view = View(
            database.client, self._session, definition, retain_ms=retain_ms, strict=strict
        )  # fmt: skip
        view.adopt()
        return view

    def _session(self) -> Session:
        """Called in the thread of a tick that needs Spark."""
        return self._database.started_spark()

    def _note(self, error: Exception) -> None:
        wrapped = error if isinstance(error, NoonmarkError) else SourceStalled(str(error))
        if self.error is None or str(self.error) != str(wrapped):
            LOG.warning('view "%s" failed: %s', self.name, wrapped)
        self.error = wrapped
        self.view = None  # taken up again, as it is stored
        failed, self._failed = self._failed, None
        if failed is not None and not failed.done():
            failed.set_result(Failure(self.name, wrapped))


def _left_behind(view: View, state: State, tables: dict[str, list[str]]) -> dict[str, int]:
    """The tables that hold a view back while other inputs went on, and how far those are."""
    own = state.collection(view.name).upper.only()
    uppers = {name: state.collection(name).upper.only() for name in view.definition.inputs}
    if own is None:
        return {}
    ahead = [upper for upper in uppers.values() if upper is not None and upper > own]
    behind = [name for name, upper in uppers.items() if upper is not None and upper <= own]
    if not ahead or not behind:
        return {}
    wanted = min(ahead) - 1
    found = [table for name in behind for table in tables.get(name, ())]
    return {name: wanted for name in found if state.collection(name).upper.less_equal(wanted)}


def _can_go_on(view: View, state: State) -> bool:
    """Whether every input is complete at the view's next time, or it is itself to be filled."""
    if view.lacks:
        return True
    own = state.collection(view.name).upper.only()
    uppers = [state.collection(name).upper.only() for name in view.inputs]
    return own is not None and all(upper is None or upper > own for upper in uppers)
