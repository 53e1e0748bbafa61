"""Threads that plan take turns: the laws of `noonmark.sql.turns`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import groupby

import pytest

from noonmark.clock import SYSTEM
from noonmark.sql import turns


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    yield
    turns._TURN.holder = None
    turns.WAITING.clear()


def started(act: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


def test_one_works_and_all_get_on() -> None:
    steps: list[int] = []
    until = SYSTEM.monotonic() + 0.6

    def plan() -> None:
        turns.enter()
        while SYSTEM.monotonic() < until:
            steps.append(threading.get_ident())
            if turns.WAITING:
                turns.pass_on()
        turns.leave()

    for thread in [started(plan) for _ in range(3)]:
        thread.join(10)
    assert not turns.WAITING
    assert turns._TURN.holder is None
    pieces = [len(list(each)) for _, each in groupby(steps)]
    assert len(set(steps)) == 3
    assert len(pieces) >= 9, "each has several turns"
    assert len(steps) / len(pieces) > 50, "a turn is many steps"


def test_a_long_step_keeps_nobody_for_ever() -> None:
    entered, done = threading.Event(), threading.Event()

    def long() -> None:
        turns.enter()
        entered.set()
        done.wait(10)
        turns.leave()

    first = started(long)
    assert entered.wait(10)
    begun = SYSTEM.monotonic()
    turns.enter()
    assert SYSTEM.monotonic() - begun >= turns.PATIENCE_S * 0.9
    turns.leave()
    done.set()
    first.join(10)
    assert turns._TURN.holder is None


def test_who_lost_the_turn_in_a_long_step_waits_for_it_again() -> None:
    entered, overtaken = threading.Event(), threading.Event()
    waits: list[float] = []

    def long() -> None:
        turns.enter()
        entered.set()
        overtaken.wait(10)
        begun = SYSTEM.monotonic()
        if turns.WAITING:
            turns.pass_on()
        waits.append(SYSTEM.monotonic() - begun)
        turns.leave()

    first = started(long)
    assert entered.wait(10)
    turns.enter()
    overtaken.set()
    while not any(gate.locked() for gate in list(turns.WAITING)):
        assert first.is_alive()
    turns.leave()
    first.join(10)
    assert len(waits) == 1
    assert turns._TURN.holder is None


def test_a_thread_that_was_ended_in_the_middle_is_not_waited_for() -> None:
    turns._TURN.holder = -1
    turns.WAITING.append(threading.Lock())  # of one that waits no more
    turns.enter()
    turns.leave()
    turns.enter()
    turns.leave()
    assert turns._TURN.holder is None


def test_others_never_wait() -> None:
    turns._TURN.holder = -1
    turns.WAITING.append(threading.Lock())
    begun = SYSTEM.monotonic()
    turns.pass_on()
    assert SYSTEM.monotonic() - begun < turns.PATIENCE_S / 2
