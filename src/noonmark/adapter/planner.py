"""Where texts are read and planned: here when they are short, else in threads of their own.

A thread has a large stack, because trees are deep, and what runs in it can be ended: a statement
that is cancelled, or whose time is up, stops being planned at the next step. There are three
threads, for what is short, light and heavy: a statement never waits for heavier ones. They take
turns (`noonmark.sql.turns`), because the adapter's loop waits for every thread that works.

What a text weighs says `noonmark.adapter.weight`.

Law (bounded): planning ends after `TIMEOUT_S` of the thread's processor time at the latest, with
`TooComplex`. What waits for its turn, or for a processor that others have, is not refused for that.

Where it runs: `Planner` on the adapter's loop; what it is given in a thread.
"""

from __future__ import annotations

import asyncio
import ctypes
import heapq
import itertools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from noonmark.adapter.worker.child import RECURSION_MAX
from noonmark.clock import SYSTEM
from noonmark.errors import NoonmarkError, TooComplex
from noonmark.sql import turns

P = ParamSpec("P")
T = TypeVar("T")

#: Weights up to this are planned on the adapter's own loop. A weight of 1 takes up to 0.25 ms.
HERE_MAX = 40
#: Weights up to this are short.
SHORT_MAX = 400
#: Weights up to this are light.
LIGHT_MAX = 20_000
TIMEOUT_S = 10.0
_AGAIN_S = 0.1
#: How often it is looked at what planning took, once it may be too much.
_LOOK_S = 0.25
_STACK_BYTES = 512 << 20


class _Ended(BaseException):
    """Raised in a thread: nobody waits for what it does."""


class _Task:
    """One thing to be done, and who waits for it."""

    def __init__(self, act: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.act = act
        self.loop = loop
        self.done: asyncio.Future[Any] = loop.create_future()
        self.thread: int | None = None
        self.begun_s = 0.0
        self.is_over = False

    @property
    def spent_s(self) -> float:
        """The processor time that it took until now; while it waits for its turn, none."""
        thread = self.thread
        return 0.0 if thread is None else _processor_s(thread) - self.begun_s

    def tell(self, result: Any, error: BaseException | None) -> None:
        def tell() -> None:
            if self.done.done():
                return
            if error is None:
                self.done.set_result(result)
            else:
                self.done.set_exception(error)

        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(tell)


def _processor_s(thread: int) -> float:
    """The processor time of a thread; where the system does not say it, the time."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return SYSTEM.monotonic()
    return time.clock_gettime(time.pthread_getcpuclockid(thread))


class _Lane:
    """One thread and what waits for it, the lightest first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._order = itertools.count()
        self._waiting: list[tuple[int, int, _Task]] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        # Whose turn it is. Not the condition: an exception that is raised into the thread may
        # come while that is entered, and it would never be left.
        self._turn = threading.Lock()
        self._is_working = False

    def add(self, weight: int, task: _Task) -> None:
        with self._changed:
            heapq.heappush(self._waiting, (weight, next(self._order), task))
            if self._thread is None:
                self._thread = _large_thread(self._name, self._run)
            self._changed.notify()

    @property
    def is_busy(self) -> bool:
        """Whether there is anything to do."""
        return self._is_working or bool(self._waiting)

    def end(self, task: _Task) -> None:
        """Stop a task, if it runs; it is never begun if it does not."""
        with self._turn:
            task.is_over = True
            if task.thread is not None:
                number, ended = ctypes.c_ulong(task.thread), ctypes.py_object(_Ended)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ended)
                if not task.loop.is_closed():
                    # It is lost where Python swallows exceptions (in the end of an object): again.
                    task.loop.call_later(_AGAIN_S, self.end, task)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                task = heapq.heappop(self._waiting)[2]
            self._is_working = True
            try:
                self._do(task)
            except _Ended:
                with self._turn:
                    task.thread, task.is_over = None, True
                turns.leave()
            finally:
                self._is_working = False

    def _do(self, task: _Task) -> None:
        with self._turn:
            if task.is_over:
                return
            thread = threading.get_ident()
            task.begun_s, task.thread = _processor_s(thread), thread
        result: Any = None
        error: Exception | None = None
        try:
            turns.enter()
            result = task.act()
        except RecursionError:
            error = TooComplex.of_statement()
        except NoonmarkError as found:
            error = _bare(found)
        except Exception as found:
            error = found
        turns.leave()
        with self._turn:
            task.thread, task.is_over = None, True
        for _ in range(10):
            pass  # an end that came too late is raised here, where it does no harm
        task.tell(result, error)
        del result, error  # else this frame and what the error was raised in keep each other


def _bare(error: NoonmarkError) -> NoonmarkError:
    """An error that is told, without the frames that it came through: they hold whole plans."""
    found: BaseException | None = error
    while found is not None:
        found.__traceback__ = None
        found = found.__context__
    return error


def _large_thread(name: str, run: Callable[[], None]) -> threading.Thread:
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_MAX))
    told = sys.unraisablehook

    def tell(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_type is not _Ended:
            told(lost)

    sys.unraisablehook = tell
    before = threading.stack_size(_STACK_BYTES)
    try:
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
    finally:
        threading.stack_size(before)
    return thread


class Planner:
    """See the module. One for a process: what it does has no state."""

    def __init__(self) -> None:
        self._short = _Lane("noonmark-plan-short")
        self._light = _Lane("noonmark-plan-light")
        self._heavy = _Lane("noonmark-plan-heavy")

    @property
    def is_busy(self) -> bool:
        """Whether something is planned in a thread, or waits for it."""
        return any(lane.is_busy for lane in (self._short, self._light, self._heavy))

    async def run(self, weight: int, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do it: here if it is nothing, else in a thread.

        Raises:
            TooComplex: it takes too long, or is nested too deeply.
        """
        if weight <= HERE_MAX:
            return act(*args, **kwargs)
        return await self.aside(weight, lambda: act(*args, **kwargs))

    async def aside(self, weight: int, act: Callable[[], T]) -> T:
        """Do it in a thread."""
        lane = self._heavy
        if weight <= LIGHT_MAX:
            lane = self._short if weight <= SHORT_MAX else self._light
        task = _Task(act, asyncio.get_running_loop())
        lane.add(weight, task)
        try:
            pause_s = TIMEOUT_S
            while not (await asyncio.wait({task.done}, timeout=pause_s))[0]:
                if task.spent_s > TIMEOUT_S:
                    raise too_long()
                pause_s = _LOOK_S
            found: T = task.done.result()
            return found
        finally:
            task.done.cancel()
            lane.end(task)


def too_long() -> TooComplex:
    """The error of what takes more than `TIMEOUT_S`."""
    return TooComplex(
        f"the statement cannot be planned in {TIMEOUT_S:.0f} seconds",
        detail="That is the processor time that planning may take.",
        hint="Make it shorter, or of several statements.",
    )


PLANNER = Planner()
