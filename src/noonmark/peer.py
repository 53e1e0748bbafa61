"""Calls to the outside: each object makes its own in a thread of its own, and nobody else waits.

A broker, a database upstream, a registry or an object store may take a connection and never answer,
and most clients have no call that can be ended from outside. So a source, a sink or a statement has
a `Peer`, and what it asks of the outside is asked there.

Law (apart): the calls of one peer run one after another in one thread, which is nobody else's. A
call that hangs holds up the calls of its own peer, and takes no thread of any pool.
Law (answered): who waits for a call gets its outcome; or `SourceStalled`, when the deadline has
passed; or `SourceStalled` at once, when the peer was left.
Law (fence): what an abandoned call gives goes nowhere. A call asks, and reads; what it learns is
committed by who waited for it, and nobody waits any more. What it made outside that somebody has to
take away again, `undo` takes away.
Law (seen): a call that was abandoned is logged, and again when it comes back, and counted.

Where it runs: `call` on any loop, `wait` in any thread; the calls in daemon threads, for which the
end of a process does not wait.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakSet

from noonmark.clock import SYSTEM, Clock
from noonmark.errors import SourceStalled

LOG = logging.getLogger("noonmark.work")
T = TypeVar("T")

#: How long a statement or the end of a server waits for what may not answer, before it leaves it.
GRACE_S = 1.0
#: How long somebody who asks a peer how far it is waits for that, where the client itself has not
#: given up before: most do.
ANSWER_S = 90.0
_MOMENT_S = 0.1
#: A thread that has had nothing to do for so long ends.
_IDLE_S = 10.0


@dataclass(eq=False)
class _Call:
    act: Callable[[], Any]
    undo: Callable[[Any], object] | None
    end: Callable[[], object] | None
    outcome: Future[Any] = field(default_factory=Future)
    is_abandoned: bool = False


class Peer:
    """Somebody outside, as one object sees it.

    Args:
        kind: what kind of object asks, for counting: "source".
        name: which one, for the log.
    """

    def __init__(self, kind: str, name: str = "", clock: Clock = SYSTEM) -> None:
        self.kind = kind
        self.name = name
        self._clock = clock
        self._mutex = threading.Lock()
        self._came = threading.Condition(self._mutex)
        self._calls: deque[_Call] = deque()
        self._now: _Call | None = None
        self._began_s = 0.0
        self._has_thread = False
        self._is_left = False
        with _MUTEX:
            _PEERS.add(self)

    async def call(
        self,
        act: Callable[[], T],
        *,
        seconds: float | None = None,
        undo: Callable[[T], object] | None = None,
    ) -> T:
        """Ask, from a loop.

        Args:
            act: what asks; blocks.
            seconds: how long to wait for it, and for the calls before it.
            undo: takes away what an abandoned call has made outside.

        Raises:
            SourceStalled: it took longer, or the peer was left.
        """
        call = self._begin(_Call(act, undo, None))
        outcome: asyncio.Future[T] = asyncio.wrap_future(call.outcome)
        try:
            await asyncio.wait({outcome}, timeout=seconds)
            if not outcome.done():
                raise self._late()
            return outcome.result()
        finally:
            outcome.cancel()
            if call.outcome.cancel():
                self._abandon(call)

    def wait(
        self,
        act: Callable[[], T],
        *,
        seconds: float | None = None,
        end: Callable[[], object] | None = None,
    ) -> T:
        """As `call`, from a thread; `end` ends the call where something can, if it is abandoned."""
        call = self._begin(_Call(act, None, end))
        try:
            found: T = call.outcome.result(seconds)
        except TimeoutError:
            if call.outcome.done():
                raise
            raise self._late() from None
        finally:
            if call.outcome.cancel():
                self._abandon(call)
        return found

    def leave(self, last: Callable[[], object] | None = None) -> Future[Any]:
        """Wait for nothing more of it, from now on; from any thread.

        Args:
            last: what is still to be done there, once what is under way has come back.

        Returns:
            Done when that was done.
        """
        call = _Call(last or (lambda: None), None, None)
        with self._mutex:
            calls = [*([self._now] if self._now is not None else []), *self._calls]
            self._is_left = True
        for each in calls:
            with suppress(InvalidStateError):
                each.outcome.set_exception(SourceStalled(f"{self} was left"))
                self._abandon(each)
        self._enter(call)
        return call.outcome

    @property
    def is_silent(self) -> bool:
        """Whether a call that nobody waits for any more is under way."""
        return self._now is not None and self._now.is_abandoned

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".strip()

    # -- calls -----------------------------------------------------------------------------------

    def _begin(self, call: _Call) -> _Call:
        if self._is_left:
            raise SourceStalled(f"{self} was left")
        return self._enter(call)

    def _enter(self, call: _Call) -> _Call:
        with self._mutex:
            self._calls.append(call)
            if not self._has_thread:
                self._has_thread = True
                threading.Thread(target=self._work, name=f"peer of {self}", daemon=True).start()
            self._came.notify()
        return call

    def _late(self) -> SourceStalled:
        with self._mutex:
            took_s = self._clock.monotonic() - self._began_s if self._now is not None else 0.0
        return SourceStalled(f"{self}: no answer from outside for {took_s:.0f} s")

    def _abandon(self, call: _Call) -> None:
        """Nobody waits for a call any more. One that has not begun never will."""
        with self._mutex:
            if self._now is not call or call.is_abandoned:
                return
            call.is_abandoned = True
        with _MUTEX:
            _ABANDONED[self.kind] += 1
        LOG.warning("%s: a call to the outside is abandoned: it does not come back", self)
        if call.end is not None:
            call.end()

    def _work(self) -> None:
        while (call := self._next()) is not None:
            try:
                found = call.act()
            except BaseException as error:
                with suppress(InvalidStateError):
                    call.outcome.set_exception(error)
            else:
                self._settle(call, found)
            self._back(call)
            del call

    def _settle(self, call: _Call, found: Any) -> None:
        try:
            call.outcome.set_result(found)
        except InvalidStateError:
            if call.undo is not None:
                try:
                    call.undo(found)
                except Exception as error:
                    LOG.warning("%s: what was made outside is still there: %s", self, error)

    def _next(self) -> _Call | None:
        """The next call that somebody waits for; None when there was none for a while."""
        with self._mutex:
            while True:
                while not self._calls:
                    if not self._came.wait(0 if self._is_left else _IDLE_S) and not self._calls:
                        self._has_thread = False
                        return None
                call = self._calls.popleft()
                if not call.outcome.done():
                    self._now, self._began_s = call, self._clock.monotonic()
                    return call

    def _back(self, call: _Call) -> None:
        with self._mutex:
            self._now = None
            took_s = self._clock.monotonic() - self._began_s
        if call.is_abandoned:
            LOG.info("%s: the call that was abandoned came back after %.1f s", self, took_s)


async def ask(
    kind: str,
    name: str,
    act: Callable[[], T],
    *,
    seconds: float | None = None,
    undo: Callable[[T], object] | None = None,
) -> T:
    """One call to somebody who is asked once: see `Peer.call`."""
    peer = Peer(kind, name)
    try:
        return await peer.call(act, seconds=seconds, undo=undo)
    finally:
        peer.leave()


async def closed(left: Iterable[Future[Any]], seconds: float) -> None:
    """Wait for what `leave` gave for so long, and a moment: most is closed at once."""
    waiting = [asyncio.wrap_future(each) for each in left]
    await asyncio.wait(waiting, timeout=max(_MOMENT_S, seconds))


# -- all of a process ----------------------------------------------------------------------------

_MUTEX = threading.Lock()
_PEERS: WeakSet[Peer] = WeakSet()
_ABANDONED: Counter[str] = Counter()


def silent() -> Counter[str]:
    """How many calls are under way that nobody waits for any more, by kind."""
    with _MUTEX:
        peers, found = list(_PEERS), Counter(dict.fromkeys(_ABANDONED, 0))
    found.update(each.kind for each in peers if each.is_silent)
    return found


def abandoned() -> Counter[str]:
    """How many calls were abandoned, by kind."""
    with _MUTEX:
        return Counter(_ABANDONED)
