"""Threads that plan take turns: one of them works, so the adapter's loop waits for one at most.

Python's interpreter lock is nobody's in particular: a loop that gives it up for a moment, as every
call of the system does, waits for each thread that wants it, and that once for each of the ten or
twenty calls of a request. Beside one thread that is hardly noticed; beside three it is most of the
request.

    enter, leave    a thread begins and ends to plan
    WAITING         those that wait, the first first; empty almost always, and cheap to look at
    pass_on         said by who plans, between two steps, where WAITING or WORKING is not empty: the
                    next one's turn, after a slice

Before each other come the loops of the process (`noonmark.loops`): while one works, who has the
turn rests, except for a slice now and then.

Law (advisory): a thread that waits longer than `PATIENCE_S` goes on; who had the turn then waits
for it at its own next step. So nothing is ever stuck: not by a thread that was ended in the middle
of this, and not by a step that is long.

Nothing here is locked: an exception may be raised into a thread that plans at any moment. What is
shared changes by single steps of the interpreter.

Where it runs: threads that entered. For all others `pass_on` is nothing.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress

from noonmark.clock import SYSTEM
from noonmark.loops import WORKING, await_rest

#: A turn, while others wait, and what is planned beside loops that never rest.
SLICE_S = 0.005
PATIENCE_S = 0.1

#: What each of those who wait is woken by.
WAITING: deque[threading.Lock] = deque()


class _Turn:
    """Whose turn it is, and since when."""

    holder: int | None = None
    since_s = 0.0
    #: Until when it is not given to loops: one had no rest for long.
    kept_until_s = 0.0


_TURN = _Turn()
_MEMBERS: set[int] = set()


def enter() -> None:
    """Begin to plan: now if nobody does, else when it is this thread's turn."""
    me = threading.get_ident()
    _MEMBERS.add(me)
    if _TURN.holder is None:
        _take(me)
    elif _TURN.holder != me:
        _wait(me)


def leave() -> None:
    """It is done: the next one's turn."""
    me = threading.get_ident()
    _MEMBERS.discard(me)
    if _TURN.holder == me:
        _TURN.holder = None
        _wake()


def pass_on() -> None:
    """Let loops work, and the next one plan if this thread has had its slice."""
    me = threading.get_ident()
    if me not in _MEMBERS:
        return
    if WORKING and SYSTEM.monotonic() >= _TURN.kept_until_s and not await_rest():
        _TURN.kept_until_s = SYSTEM.monotonic() + SLICE_S
    if not WAITING:
        return
    if _TURN.holder == me and (SYSTEM.monotonic() - _TURN.since_s < SLICE_S or not _wake()):
        return
    _wait(me)


def _take(me: int) -> None:
    _TURN.holder, _TURN.since_s = me, SYSTEM.monotonic()


def _wait(me: int) -> None:
    gate = threading.Lock()
    gate.acquire()
    WAITING.append(gate)
    is_given = gate.acquire(timeout=PATIENCE_S)
    with suppress(ValueError):
        WAITING.remove(gate)
    _take(me)
    if not is_given:
        WAITING.append(threading.Lock())  # nobody's: who had the turn sees that it is not its own


def _wake() -> bool:
    """Wake the first of those who wait; whether there was one."""
    while WAITING:
        with suppress(IndexError, RuntimeError):
            WAITING.popleft().release()
            return True
    return False
