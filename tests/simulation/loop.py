"""An event loop whose time is virtual and whose order is chosen by a seed, and the clocks on it.

Order. Tasks that are ready run in an order that the seed chooses; a task has at most one step that
is ready, so its own steps stay in order. Plain callbacks stay in order among themselves, because
asyncio promises that of `call_soon`. Time moves only when nothing is ready: then it jumps to the
next timer. So a run needs no waiting, and the same seed gives the same order.

Nothing here touches sockets, threads, wall time or entropy.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from functools import partial
from random import Random
from typing import Any, TypeVar

from noonmark.clock import format_id

T = TypeVar("T")

#: The wall clock when a simulation begins.
EPOCH_MS = 1_700_000_000_000


#: What is left to do at the end of a run is a fraction of this.
DRAIN_STEPS_MAX = 100_000

Tasks = dict[int, "asyncio.Task[Any]"]

#: The unfinished tasks of the process that runs now: those that a crash ends.
TASKS: ContextVar[Tasks | None] = ContextVar("TASKS", default=None)


class Stuck(Exception):
    """Nothing is ready and no timer is set, and yet something is being waited for."""


class VirtualLoop(asyncio.BaseEventLoop):
    """See the module."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random.random
        self._now = 0.0
        self._steps: list[asyncio.Handle] = []
        self._callbacks: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timers_set = 0
        self._tasks_made = 0
        self.steps_run = 0
        self.unhandled: list[BaseException] = []
        self.set_exception_handler(_note_unhandled)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """See `asyncio.loop.create_task`. The task belongs to the process that made it."""
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        tasks = (context or copy_context()).get(TASKS)
        if tasks is not None:
            self._tasks_made += 1
            tasks[self._tasks_made] = task
            task.add_done_callback(partial(_forget, tasks, self._tasks_made))
        return task

    def time(self) -> float:
        """Seconds since the simulation began."""
        return self._now

    def call_soon(
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """See `asyncio.loop.call_soon`."""
        handle = asyncio.Handle(callback, args, self, context)
        is_step = isinstance(getattr(callback, "__self__", None), asyncio.Task)
        (self._steps if is_step else self._callbacks).append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """See `asyncio.loop.call_at`."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timers_set += 1
        heapq.heappush(self._timers, (when, self._timers_set, timer))
        return timer

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """See `asyncio.loop.call_later`."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer stays in the heap and is passed over."""

    def run_until_complete(self, future: Coroutine[Any, Any, T]) -> T:  # type: ignore[override]
        """Run until `future` is done; raise `Stuck` when it never will be."""
        return self.run_task(self.create_task(future))

    def run_task(self, task: asyncio.Task[T]) -> T:
        """Run until `task` is done; raise `Stuck` when it never will be."""
        asyncio.events._set_running_loop(self)
        try:
            while not task.done():
                self._run_one()
            return task.result()
        finally:
            asyncio.events._set_running_loop(None)

    def drain(self) -> None:
        """Run until nothing is left to happen: every task has been told to end."""
        asyncio.events._set_running_loop(self)
        steps_max = self.steps_run + DRAIN_STEPS_MAX
        try:
            while self._steps or self._callbacks or self._timers:
                if self.steps_run > steps_max:
                    raise Stuck("something goes on after the end")
                self._run_one()
        finally:
            asyncio.events._set_running_loop(None)

    def _run_one(self) -> None:
        steps = self._steps
        if not steps and not self._callbacks:
            self._jump()
            return
        place = int(self._random() * (len(steps) + bool(self._callbacks)))
        if place == len(steps):
            handle = self._callbacks.popleft()
        else:
            handle, steps[place] = steps[place], steps[-1]
            steps.pop()
        if not handle._cancelled:
            self.steps_run += 1
            handle._run()

    def _jump(self) -> None:
        if not self._timers:
            raise Stuck(f"nothing can happen any more at {self._now:.3f} s")
        self._now = max(self._now, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._now:
            _, _, timer = heapq.heappop(self._timers)
            if not timer._cancelled:
                self._callbacks.append(timer)


def _forget(tasks: Tasks, number: int, _: asyncio.Task[Any]) -> None:
    tasks.pop(number, None)


def _note_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Keep exceptions that nobody asked for: the simulation judges them at its end."""
    error = context.get("exception")
    if error is not None:
        loop.unhandled.append(error)  # type: ignore[attr-defined]


class VirtualClock:
    """The clock of one process; see `noonmark.clock.Clock`.

    Its wall clock is off by `skew_ms`, which may jump, and stands still while `frozen_ms` is set.
    Both clocks run on while its machine is suspended.
    """

    def __init__(self, loop: VirtualLoop, random: Random, gate: Gate) -> None:
        self._loop = loop
        self._random = random
        self._gate = gate
        #: How fast the monotonic clock runs.
        self.rate = 1.0
        self.skew_ms = 0
        self.frozen_ms: int | None = None
        self.seen_ms = 0

    def now_ms(self) -> int:
        """See `Clock.now_ms`."""
        if self.frozen_ms is not None:
            return self.frozen_ms
        now_ms = EPOCH_MS + int(self._loop._now * 1000) + self.skew_ms
        self.seen_ms = max(self.seen_ms, now_ms)
        return now_ms

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return self._loop._now * self.rate

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        await pause(self._loop, seconds / self.rate)
        await self._gate.passed()

    def random(self) -> float:
        """See `Clock.random`."""
        return self._random.random()

    def fresh_id(self) -> str:
        """See `Clock.fresh_id`."""
        return format_id(self.now_ms(), self._random.getrandbits(80))


class Gate:
    """Between a process and the world: open, closed for a while (paused), or gone (crashed)."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._now = now
        self._paused_at = 0.0
        self._slept_s = 0.0
        self.dead = False

    @property
    def slept_s(self) -> float:
        """How long nothing passed so far: what a clock would lose that stops with its machine."""
        return self._slept_s + (self._now() - self._paused_at if self.paused else 0.0)

    @property
    def paused(self) -> bool:
        """Whether nothing passes now."""
        return not self._open.is_set()

    async def passed(self) -> None:
        """Wait while the process is paused; never return to one that has crashed."""
        if not self._open.is_set():
            await self._open.wait()
        if self.dead:
            raise asyncio.CancelledError

    def pause(self) -> None:
        """Let nothing pass."""
        if not self.paused:
            self._paused_at = self._now()
        self._open.clear()

    def resume(self) -> None:
        """Let everything pass."""
        self._slept_s = self.slept_s
        self._open.set()

    def kill(self) -> None:
        """The process is gone: whatever waits here is cancelled."""
        self.dead = True
        self._open.set()


async def pause(loop: VirtualLoop, seconds: float) -> None:
    """Let virtual time pass."""
    done = loop.create_future()
    timer = loop.call_later(seconds, _resolve, done)
    try:
        await done
    finally:
        timer.cancel()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
