"""Event loops that go first: threads that plan work while no loop of the process has work.

Python's interpreter lock is nobody's in particular. A loop gives it up at every call of the system,
ten or twenty times a request, and each time waits until the thread that took it gives it back: a
switch interval if that thread has a processor, and as long as the scheduler likes if it has lost
its processor with the lock in its hand. So the lock is not fought for:

    WORKING         the loops that have something to do; empty while all of them sleep
    new_loop        a loop that says so, by its selector: it sleeps in `select`, and works else
    await_rest      said by a thread that plans, between two steps: go on when WORKING is empty

Law (first): while a loop works, a thread that calls `await_rest` between its steps does not ask for
the lock. So a request waits for it once, when it arrives.
Law (progress): `await_rest` ends after `PATIENCE_S` at the latest. Whoever was not let on by a loop
may then work for a slice: beside loops that never rest, a thread has a part of the time.

Nothing here is locked: an exception may be raised into a thread that waits, at any moment. What is
shared changes by single steps of the interpreter.

Where it runs: `new_loop` where a loop is made, `await_rest` in any other thread.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections import deque
from contextlib import suppress

PATIENCE_S = 0.02

#: The loops that have something to do, by a number of theirs.
WORKING: set[int] = set()
#: What each thread that waits for a rest is woken by.
_WAITING: deque[threading.Lock] = deque()


class _Telling(selectors.DefaultSelector):
    """A selector that tells when its loop sleeps."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return list(super().select(timeout))
        WORKING.discard(id(self))
        if _WAITING and not WORKING:
            _let_on()
        try:
            return list(super().select(timeout))
        finally:
            WORKING.add(id(self))

    def close(self) -> None:
        super().close()
        WORKING.discard(id(self))
        if not WORKING:
            _let_on()


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop that goes first."""
    return asyncio.SelectorEventLoop(_Telling())


def await_rest() -> bool:
    """Wait until no loop works, or `PATIENCE_S`; whether it is so."""
    gate = threading.Lock()
    gate.acquire()
    _WAITING.append(gate)
    is_let = not WORKING or gate.acquire(timeout=PATIENCE_S)
    with suppress(ValueError):
        _WAITING.remove(gate)
    return is_let


def _let_on() -> None:
    while _WAITING:
        with suppress(IndexError, RuntimeError):
            _WAITING.popleft().release()
