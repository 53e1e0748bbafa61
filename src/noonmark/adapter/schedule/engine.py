"""Spark behind a database: begun when it is needed, watched, and begun again when it is lost.

Law (truth): while Spark is not there, `trouble` says why, unless it is starting for the first time;
whoever asks for the session waits for the next one.
Law (back): a session that is lost (`noonmark.compute.jvm.lost`) is noticed within `WATCH_S`, and
the end of its JVM at once; another is started at once, then after pauses that grow up to
`PAUSE_LARGEST_S`. `on_back` is called then: what failed meanwhile has no reason to wait longer.

A session that the caller made is the caller's to make again: until there is another one in this
process, whoever asks gets an error that says so.

Where it runs: the adapter's loop; Spark starts in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from noonmark.adapter.pool import DaemonPool
from noonmark.clock import Clock
from noonmark.compute.jvm.lost import jvm_of, let_go, why_lost
from noonmark.compute.jvm.session import OpenSession, Session, active_session
from noonmark.errors import ConfigError, Stopped
from noonmark.supervise import Supervisor, Task

LOG = logging.getLogger("noonmark.spark")

#: Spark starts when it is first needed, or so long after the rest: its start takes all cores for
#: seconds, and the first statements, which mostly do not need it, would wait for their share.
AFTER_S = 1.0
#: How often it is looked whether Spark is still there.
WATCH_S = 1.0
PAUSE_FIRST_S = 0.5
PAUSE_LARGEST_S = 30.0


class Engine:
    """See the module."""

    def __init__(self, start: OpenSession, supervisor: Supervisor, clock: Clock) -> None:
        """An engine of one database.

        Args:
            start: starts a session; blocks.
            supervisor: sees the watching die, and begins it again.
            clock: the door to time.
        """
        self._start = start
        self._supervisor = supervisor
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._session = self._fresh()
        self._wanted = asyncio.Event()
        #: Spark starts where a process, when it ends, does not wait for it.
        self._thread = DaemonPool(1, "noonmark-spark")
        self._task: Task | None = None
        #: Called when a session is there, the first one and every later one.
        self.on_back: Callable[[], None] = lambda: None
        #: Why there is no session, although there was to be one.
        self.trouble: str | None = None
        self.restarts = 0

    def open(self, *, soon: bool = True) -> None:
        """Begin to watch; Spark itself begins when it is wanted, or `soon`."""
        self._task = self._supervisor.task("spark", "", self._run)
        if soon:
            self._loop.call_later(AFTER_S, self._wanted.set)

    async def stop(self) -> None:
        """Watch no more; the session stays as it is."""
        if self._task is not None:
            await self._task.stop()

    async def session(self) -> Session:
        """The session, once it has started.

        Raises:
            ConfigError: it does not start; says why.
        """
        self.want()
        return await asyncio.shield(self._session)

    def want(self) -> None:
        """Begin to start Spark, if it has not begun."""
        self._wanted.set()

    @property
    def present(self) -> Session | None:
        """The session, if there is one now; from any thread."""
        future = self._session
        return future.result() if future.done() and not future.exception() else None

    def started(self) -> Session:
        """The session, for threads: waits for its start."""
        asking = self.session()
        try:
            return asyncio.run_coroutine_threadsafe(asking, self._loop).result()
        except RuntimeError:  # the loop has ended under a thread that nobody waits for
            asking.close()
            raise Stopped("the database is closed") from None

    @property
    def has_started(self) -> bool:
        """Whether `session` answers at once."""
        return self.present is not None

    def _fresh(self) -> asyncio.Future[Session]:
        future: asyncio.Future[Session] = self._loop.create_future()
        # Nobody may ask for it before it failed.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return future

    # -- the watch -------------------------------------------------------------------------------

    async def _run(self) -> None:
        await self._wanted.wait()
        if (present := self.present) is not None:  # this watch died, and not Spark
            await self._watch(present)
        pause_s = PAUSE_FIRST_S
        while True:
            try:
                session = await self._thread.run(self._start)
            except Exception as error:
                await self._not_started(error, pause_s)
                pause_s = min(2 * pause_s, PAUSE_LARGEST_S)
                continue
            pause_s = PAUSE_FIRST_S
            self.trouble = None
            if self._session.done():
                self._session = self._fresh()
            self._session.set_result(session)
            self.on_back()
            await self._watch(session)

    async def _not_started(self, error: Exception, pause_s: float) -> None:
        self.trouble = f"Spark does not start: {error}"
        LOG.error("%s", self.trouble)
        if self._session.done():
            self._session = self._fresh()
        self._session.set_exception(error)
        await self._clock.sleep(pause_s)

    async def _watch(self, session: Session) -> None:
        """Return when the session is lost, and forgotten."""
        with _ended(session) as ended:
            while (why := await asyncio.to_thread(why_lost, session)) is None:
                await self._ended_or_later(ended)
        self.trouble = f"Spark is being started again: {why}"
        LOG.error("%s", self.trouble)
        self.restarts += 1
        self._session = self._fresh()
        await self._thread.run(lambda: let_go(session))

    async def _ended_or_later(self, ended: asyncio.Event) -> None:
        sleep = asyncio.ensure_future(self._clock.sleep(WATCH_S))
        told = asyncio.ensure_future(ended.wait())
        try:
            await asyncio.wait({sleep, told}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            told.cancel()


@contextmanager
def _ended(session: Session) -> Iterator[asyncio.Event]:
    """Set as soon as the JVM of a session ends, where the system tells that."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    number = jvm_of(session)
    if number is None or not hasattr(os, "pidfd_open"):
        yield ended
        return
    try:
        watched = os.pidfd_open(number)
    except OSError:  # it has ended already, or the system does not tell
        yield ended
        return

    def tell() -> None:
        loop.remove_reader(watched)
        ended.set()

    loop.add_reader(watched, tell)
    try:
        yield ended
    finally:
        loop.remove_reader(watched)
        os.close(watched)


def starting(given: Session | None, start: OpenSession) -> OpenSession:
    """How sessions are had: those of the caller, if there is one, else our own.

    Args:
        given: the session that the caller made.
        start: starts our own.
    """
    if given is None:
        return start
    waiting = [given]

    def of_caller() -> Session:
        found = waiting.pop() if waiting else active_session()
        if found is None:
            raise ConfigError(
                "the Spark session that this database was opened with has ended",
                hint="Start another one in this process, or open the database again.",
            )
        return found

    return of_caller
