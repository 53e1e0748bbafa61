"""Background work: one place starts it, sees it die, and begins it again.

A piece of work is a coroutine or a function in a thread that is meant to go on until it is stopped.
It ends well by returning, by an error that it names as its end, or by `stop`. Everything else is a
*death*: an exception that nobody foresaw, or a cancel that did not come through `stop`.

Law (nobody waits for the dead): a death is told to `on_death` before the work begins again, so that
whoever waits for something that the work held gets an error instead of nothing.
Law (seen): a death is logged with its traceback under a number (`noonmark.defect`), and counted.
Law (back): work that died begins again, at once the first time, then after pauses that grow up to
`PAUSE_LARGEST_S`; work that lived for `STEADY_S` has no past.
Law (told): work that died `FAILING_DEATHS` times without a steady life between is *failing*, with
its last error, until it has lived for `STEADY_S`: a server that has failing work is not ready.

Where it runs: tasks on the loop that starts them; threads by themselves. `Supervisor` itself may be
asked from any thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from noonmark import defect
from noonmark.clock import SYSTEM, Clock
from noonmark.errors import InternalError

#: Told of a death, with the error for those who wait.
OnDeath = Callable[[InternalError], None]
Expected = tuple[type[BaseException], ...]

PAUSE_FIRST_S = 0.05
PAUSE_LARGEST_S = 5.0
STEADY_S = 30.0
FAILING_DEATHS = 3


class Killed(Exception):
    """A task was cancelled by somebody who does not own it."""


@dataclass(eq=False)
class Life:
    """What is known of one piece of work: how often it died, and whether that goes on.

    Attributes:
        name: which it is: "view sales".
        kind: what kind of work, for counting: "view".
        deaths: how often it died, in all.
        recent: how often since it last lived for `STEADY_S`.
        began_s: when its present life began, by the monotonic clock.
        error: its last death, in the words of the log.
    """

    name: str
    kind: str
    clock: Clock
    on_death: OnDeath | None = None
    deaths: int = 0
    recent: int = 0
    began_s: float = 0.0
    error: str = ""
    ended: bool = False

    def begin(self) -> None:
        """A life begins."""
        self.began_s = self.clock.monotonic()

    def is_failing(self) -> bool:
        """Whether it keeps dying."""
        lived_s = self.clock.monotonic() - self.began_s
        return not self.ended and self.recent >= FAILING_DEATHS and lived_s < STEADY_S

    def died(self, error: BaseException) -> float:
        """Note a death, tell who waits, and say how long to pause before the next life."""
        if self.clock.monotonic() - self.began_s >= STEADY_S:
            self.recent = 0
        self.deaths += 1
        self.recent += 1
        told = defect.report(error, self.name)
        self.error = f"{self.name} keeps failing: {told.message}"
        if self.on_death is not None:
            self.on_death(told)
        if self.recent == 1:
            return 0.0
        return min(PAUSE_FIRST_S * float(1 << min(self.recent - 2, 10)), PAUSE_LARGEST_S)


class Task:
    """Supervised work on an event loop; made by `Supervisor.task`."""

    def __init__(
        self, life: Life, work: Callable[[], Coroutine[Any, Any, object]], ends: Expected
    ) -> None:
        self.life = life
        self._work = work
        self._ends = ends
        #: Its present life.
        self.alive: asyncio.Task[object] | None = None
        self._keeper = asyncio.get_running_loop().create_task(self._keep())

    async def _keep(self) -> None:
        try:
            while (error := await self._live()) is not None:
                await self.life.clock.sleep(self.life.died(error))
        finally:
            self.life.ended = True

    async def _live(self) -> BaseException | None:
        """One life; what it died of, None where it ended well."""
        self.life.begin()
        alive = self.alive = asyncio.get_running_loop().create_task(self._work())
        try:
            await asyncio.wait({alive})
        except asyncio.CancelledError:
            # The keeper is ended: the end of the work is wanted.
            alive.cancel()
            await asyncio.gather(alive, return_exceptions=True)
            raise
        if alive.cancelled():
            return Killed(f"{self.life.name} was cancelled")
        error = alive.exception()
        return None if isinstance(error, self._ends) else error

    def cancel(self) -> None:
        """End the work, without waiting for its end."""
        self._keeper.cancel()

    async def stop(self) -> None:
        """End the work, and wait for its end."""
        self.cancel()
        await self.ended()

    async def ended(self) -> None:
        """Return when the work has ended by itself or was stopped."""
        await asyncio.gather(self._keeper, return_exceptions=True)


class Thread:
    """Supervised work in a thread of its own; made by `Supervisor.thread`."""

    def __init__(self, life: Life, work: Callable[[], None], stopping: threading.Event) -> None:
        self.life = life
        self._work = work
        self._stopping = stopping
        self._over: Future[None] = Future()
        self._thread = threading.Thread(target=self._keep, name=life.name, daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        while not self._stopping.is_set():
            self.life.begin()
            try:
                self._work()
                break
            except BaseException as error:
                pause_s = self.life.died(error)
            self._stopping.wait(pause_s)
        self.life.ended = True
        self._over.set_result(None)

    @property
    def number(self) -> int | None:
        """The thread's, by which the interpreter knows it."""
        return self._thread.ident

    async def ended(self, seconds: float | None = None) -> bool:
        """Wait for the end of the work, so long at most; whoever stops it sets the event first."""
        over = asyncio.wrap_future(self._over)
        done, _ = await asyncio.wait({over}, timeout=seconds)
        return bool(done)


_W = TypeVar("_W", Task, Thread)


@dataclass
class Supervisor:
    """All background work of one database. See the module."""

    clock: Clock = SYSTEM
    _works: list[Task | Thread] = field(default_factory=list)
    _gone: Counter[str] = field(default_factory=Counter)
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def task(
        self,
        kind: str,
        name: str,
        work: Callable[[], Coroutine[Any, Any, object]],
        *,
        on_death: OnDeath | None = None,
        ends: Expected = (),
    ) -> Task:
        """Begin work on the running loop.

        Args:
            kind: what kind of work it is; there are few kinds.
            name: which of that kind; may be empty.
            work: makes the coroutine of one life.
            on_death: told of every death.
            ends: errors by which the work ends well.
        """
        return self._add(Task(self._life(kind, name, on_death), work, ends))

    def thread(
        self,
        kind: str,
        name: str,
        work: Callable[[], None],
        stopping: threading.Event,
        on_death: OnDeath | None = None,
    ) -> Thread:
        """Begin work in a thread, until it returns or `stopping` is set."""
        return self._add(Thread(self._life(kind, name, on_death), work, stopping))

    def _life(self, kind: str, name: str, on_death: OnDeath | None) -> Life:
        return Life(f"{kind} {name}".strip(), kind, self.clock, on_death)

    def _add(self, work: _W) -> _W:
        with self._mutex:
            for each in self._works:
                if each.life.ended:
                    self._gone[each.life.kind] += each.life.deaths
            self._works = [each for each in self._works if not each.life.ended]
            self._works.append(work)
        return work

    def works(self) -> list[Task | Thread]:
        """What is at work now."""
        with self._mutex:
            return [each for each in self._works if not each.life.ended]

    def failing(self) -> list[str]:
        """Why the database is not ready: the work that keeps dying."""
        return [each.life.error for each in self.works() if each.life.is_failing()]

    def deaths(self) -> Counter[str]:
        """How often work died, by kind."""
        with self._mutex:
            counts = Counter(self._gone)
            for each in self._works:
                counts[each.life.kind] += each.life.deaths
        return counts
