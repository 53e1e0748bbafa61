"""Rounds: the views that one commit lets go on tick together.

A view's worker says when its view can go on. A round waits, shortly, for all views that can go on
by what is known at its beginning; then

    those whose inputs did not change     move on in one commit
    small changes                         go to resident tasks together, and are one commit
    a large change, a first hydration,
    a walk that takes longer than others  has jobs and a commit of its own

Where residents are cold, processes beside Spark do small changes, and where residents are not to be
had, one Spark job does them: the jobs of a tick of everything are at most as many as there are
levels of views over views. A view whose walk takes long has a job of its own, and leaves the
residents to the others. No part of a round waits for another, and a
round does not wait for the one before: a slow view holds back nobody who does not read it. What
fails is told to its own worker alone.

A tick has an end. What several views do together is ended after `TOGETHER_S`, and each of them
ticks alone then: one row that a view does not get past holds its neighbours back so long, once. A
small change of one view is ended after its deadline, with `TickExceeded`; before any tick of this
process ended well that is `COLD_S` at least, for then it is processes that are slow to start, and
no row is to blame. `give_up` ends a tick at once, so nobody waits for one to stop or drop a view.

Where it runs: the adapter's loop; ticks in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from noonmark import defect
from noonmark.adapter.pool import DaemonPool
from noonmark.adapter.schedule.engine import Engine
from noonmark.clock import Clock
from noonmark.compute.runner.limit import Limit, TickExceeded
from noonmark.supervise import Supervisor

if TYPE_CHECKING:
    from noonmark.compute.runner.limit import Limit
    from noonmark.compute.runner.processes import LocalProcesses
    from noonmark.compute.runner.resident.runner import ByResidents
    from noonmark.compute.runner.runner import Runner
    from noonmark.compute.view.dataflow import Done, Tick
    from noonmark.compute.view.view import TickRecord, View

#: Views that tick at once: Spark plans in the driver, and more only wait for each other.
TICKS_MAX = 8
#: How long a round waits for views that can go on: they need no longer to say so.
_GATHER_S = 0.05
#: How long small changes of several views may take together: they are quick ones.
TOGETHER_S = 2.0
#: How long the first small changes may take: a busy machine starts processes slowly.
COLD_S = 180.0
#: A walk that is expected to take longer is no work for a resident.
_RESIDENT_MS_MAX = 1000.0

Answer: TypeAlias = "asyncio.Future[TickRecord | None]"
Waiting: TypeAlias = "tuple[View, Answer]"


class Rounds:
    """See the module.

    Args:
        clock: of the database.
        ready: the names of the views that wait, and can go on by now.
        tick_timeout_s: how long a small change of one view may take.
        supervisor: of the residents.
        engine: Spark; small changes do not wait for it.
        memory_mb: what a process may use that does ticks without Spark.
    """

    def __init__(
        self,
        clock: Clock,
        ready: Callable[[], set[str]],
        tick_timeout_s: Callable[[], float],
        supervisor: Supervisor,
        *,
        engine: Callable[[], Engine],
        memory_mb: int,
    ) -> None:
        self._clock = clock
        self._ready = ready
        self._tick_timeout_s = tick_timeout_s
        self._waiting: dict[str, Waiting] = {}
        self._came = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        #: For ticks alone: nobody else waits behind them for a thread, nor they for slow ones.
        self._quick = DaemonPool(TICKS_MAX, "noonmark-view")
        self._slow = DaemonPool(TICKS_MAX, "noonmark-slow-view")
        self._supervisor = supervisor
        self._engine = engine
        self._memory_mb = memory_mb
        self._beside: LocalProcesses | None = None
        self._by_residents: ByResidents | None = None
        #: Whether a tick ended well: before, processes and Spark may still be on their way up.
        self._is_warm = False
        #: What ends the ticks that are under way, by view.
        self._limits: dict[str, Limit] = {}

    def stop(self) -> None:
        """Begin no more, and end what is under way."""
        for name in list(self._limits):
            self.give_up(name)
        self._quick.stop()
        self._slow.stop()
        if self._by_residents is not None:
            self._by_residents.stop()
        if self._beside is not None:
            self._beside.close()

    def give_up(self, name: str) -> None:
        """End the tick of a view, if one is under way; nothing of it will be committed."""
        limit = self._limits.get(name)
        if limit is not None:
            limit.give_up()

    async def tick(self, view: View) -> TickRecord | None:
        """Bring a view up to its inputs, in the next round."""
        future: Answer = asyncio.get_running_loop().create_future()
        first = not self._waiting
        self._waiting[view.name] = view, future
        self._came.set()
        if first:
            self._start(self._gather())
        return await future

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _gather(self) -> None:
        """Wait for the views that can go on too, and let all of them."""
        enough = asyncio.ensure_future(self._clock.sleep(_GATHER_S))
        while not enough.done() and self._ready() - set(self._waiting):
            self._came.clear()
            came = asyncio.ensure_future(self._came.wait())
            await asyncio.wait({enough, came}, return_when=asyncio.FIRST_COMPLETED)
            came.cancel()
        enough.cancel()
        waiting, self._waiting = list(self._waiting.values()), {}
        try:
            await self._round(waiting)
        except Exception as error:  # nobody foresaw it, and nobody is to wait for ever
            told = defect.report(error, "a round of ticks")
            for _, answer in waiting:
                _tell(answer, told)

    async def _round(self, waiting: Sequence[Waiting]) -> None:
        # door: Spark's modules: a server starts without them
        from noonmark.compute.runner.processes import LocalProcesses

        # door: Spark's modules: a server starts without them
        from noonmark.compute.runner.resident.runner import ByResidents
        from noonmark.compute.view import dataflow  # door: Spark's modules: a server starts without

        answers = {view.name: answer for view, answer in waiting}
        begins = [self._quick.run(view.begin) for view, _ in waiting]
        ticks: list[Tick] = []
        for (view, answer), begun in zip(
            waiting, await asyncio.gather(*begins, return_exceptions=True), strict=True
        ):
            if begun is None or isinstance(begun, BaseException):
                _tell(answer, begun)
            else:
                ticks.append((view, begun))
        if ticks and self._by_residents is None:
            self._beside = LocalProcesses(self._memory_mb, self._clock)
            self._by_residents = ByResidents(self._supervisor, self._beside)
        shares = dataflow.shared(ticks, apart=True)
        await asyncio.gather(
            self._settle(
                self._quick, dataflow.advance_together, shares.still, answers, works=False
            ),
            self._together(shares.walks, answers),
            *(self._alone(each, answers) for each in shares.alone),
        )

    async def _together(self, walks: Sequence[Tick], answers: dict[str, Answer]) -> None:
        """Small changes in one job; those that it does not end with, each alone."""
        from noonmark.compute.view import dataflow  # door: Spark's modules: a server starts without

        if len(walks) == 1:
            await self._alone(walks[0], answers, self._quick)
            return
        again: list[Tick] = []

        def tick(ticks: Sequence[Tick]) -> Sequence[Done]:
            done = dataflow.tick_together(ticks, seconds=TOGETHER_S, runner=self._runner(ticks))
            late = {view.name for view, outcome in done if isinstance(outcome, TickExceeded)}
            again.extend(each for each in ticks if each[0].name in late)
            return [each for each in done if each[0].name not in late]

        await self._settle(self._quick, tick, walks, answers)
        await asyncio.gather(*(self._alone(each, answers, by_job=True) for each in again))

    async def _alone(
        self,
        tick: Tick,
        answers: dict[str, Answer],
        pool: DaemonPool | None = None,
        *,
        by_job: bool = False,
    ) -> None:
        from noonmark.compute.view import dataflow  # door: Spark's modules: a server starts without

        name, limit = tick[0].name, Limit()
        self._limits[name] = limit
        runner = self._runner([] if by_job else [tick])
        seconds = self._tick_timeout_s()
        seconds = seconds if self._is_warm else max(seconds, COLD_S)
        how = partial(dataflow.tick_alone, limit=limit, seconds=seconds, runner=runner)
        try:
            if tick[1].work is None:  # large: it needs Spark, and holds no thread until then
                await self._engine().session()
            await self._settle(pool or self._slow, how, [tick], answers)
        except Exception as error:  # there is no Spark
            _tell(answers[name], error)
        finally:
            if self._limits.get(name) is limit:
                del self._limits[name]

    def _runner(self, ticks: Sequence[Tick]) -> Runner:
        """Who does the works: residents, if none of them takes long; never only Spark."""
        # door: Spark's modules: a server starts without them
        from noonmark.compute.runner.processes import (
            OrLocalProcesses,  # Spark's modules: a server starts without
        )

        # door: Spark's modules: a server starts without them
        from noonmark.compute.runner.runner import JOBS
        from noonmark.compute.view.dataflow import expected_ms  # door: as above

        quick = all((expected_ms(each) or 0.0) <= _RESIDENT_MS_MAX for each in ticks)
        usual = self._by_residents if ticks and quick and self._by_residents else JOBS
        if self._beside is None:
            return usual
        return OrLocalProcesses(usual, self._beside, lambda: self._engine().present)

    async def _settle(
        self,
        pool: DaemonPool,
        how: Callable[[Sequence[Tick]], Sequence[Done]],
        ticks: Sequence[Tick],
        answers: dict[str, Answer],
        *,
        works: bool = True,
    ) -> None:
        """Do some ticks, and tell each view's worker how its own went.

        Where it `works`, a tick that ends well shows that processes are up.
        """
        if not ticks:
            return
        work = pool.run(lambda: how(ticks))
        (done,) = await asyncio.gather(work, return_exceptions=True)
        if isinstance(done, BaseException):
            for view, _ in ticks:
                _tell(answers[view.name], done)
            return
        for view, outcome in done:
            self._is_warm |= works and not isinstance(outcome, BaseException)
            _tell(answers[view.name], outcome)


def _tell(answer: Answer, outcome: TickRecord | BaseException | None) -> None:
    if answer.done():
        return
    if isinstance(outcome, BaseException):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
