"""Rounds: the views that one commit lets go on tick together.

A view's worker says when its view can go on. A round waits, shortly, for all views that can go on
by what is known at its beginning; then

    those whose inputs did not change     move on in one commit
    small changes                         are one Spark job, a task each, and one commit
    a large change, a first hydration,
    a walk that takes longer than others  has jobs and a commit of its own

So the Spark jobs of a tick of everything are as many as there are levels of views over views. No
part of a round waits for another, and a round does not wait for the one before: a slow view holds
back nobody who does not read it. What fails is told to its own worker alone.

Where it runs: the adapter's loop; ticks in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from noonmark.clock import Clock

if TYPE_CHECKING:
    from noonmark.compute.dataflow import Done, Tick
    from noonmark.compute.view import TickRecord, View

#: Views that tick at once: Spark plans in the driver, and more only wait for each other.
TICKS_MAX = 8
#: How long a round waits for views that can go on: they need no longer to say so.
_GATHER_S = 0.05

_T = TypeVar("_T")
Answer: TypeAlias = "asyncio.Future[TickRecord | None]"
Waiting: TypeAlias = "tuple[View, Answer]"


class Rounds:
    """See the module.

    Args:
        clock: of the database.
        ready: the names of the views that wait, and can go on by now.
    """

    def __init__(self, clock: Clock, ready: Callable[[], set[str]]) -> None:
        self._clock = clock
        self._ready = ready
        self._waiting: dict[str, Waiting] = {}
        self._came = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        #: For ticks alone: nobody else waits behind them for a thread, nor they for slow ones.
        self._quick = ThreadPoolExecutor(TICKS_MAX, "noonmark-view")
        self._slow = ThreadPoolExecutor(TICKS_MAX, "noonmark-slow-view")

    def stop(self) -> None:
        """Begin no more; who has a tick under way waits for it by itself."""
        self._quick.shutdown(wait=False)
        self._slow.shutdown(wait=False)

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
        await self._round(waiting)

    async def _round(self, waiting: Sequence[Waiting]) -> None:
        from noonmark.compute import dataflow

        answers = {view.name: answer for view, answer in waiting}
        begins = [self._in(self._quick, view.begin) for view, _ in waiting]
        ticks: list[Tick] = []
        for (view, answer), begun in zip(
            waiting, await asyncio.gather(*begins, return_exceptions=True), strict=True
        ):
            if begun is None or isinstance(begun, BaseException):
                _tell(answer, begun)
            else:
                ticks.append((view, begun))
        shares = dataflow.shared(ticks, apart=True)
        await asyncio.gather(
            self._settle(self._quick, dataflow.advance_together, shares.still, answers),
            self._settle(self._quick, dataflow.tick_together, shares.walks, answers),
            *(
                self._settle(self._slow, dataflow.tick_alone, [each], answers)
                for each in shares.alone
            ),
        )

    async def _settle(
        self,
        pool: ThreadPoolExecutor,
        how: Callable[[Sequence[Tick]], Sequence[Done]],
        ticks: Sequence[Tick],
        answers: dict[str, Answer],
    ) -> None:
        """Do some ticks, and tell each view's worker how its own went."""
        if not ticks:
            return
        work = self._in(pool, lambda: how(ticks))
        (done,) = await asyncio.gather(work, return_exceptions=True)
        if isinstance(done, BaseException):
            for view, _ in ticks:
                _tell(answers[view.name], done)
            return
        for view, outcome in done:
            _tell(answers[view.name], outcome)

    async def _in(self, pool: ThreadPoolExecutor, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(pool, work)


def _tell(answer: Answer, outcome: TickRecord | BaseException | None) -> None:
    if answer.done():
        return
    if isinstance(outcome, BaseException):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
