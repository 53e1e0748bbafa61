"""The laws of `noonmark.supervise`, with a clock that does not wait."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from noonmark import supervise
from noonmark.clock import SystemClock
from noonmark.errors import InternalError, Stopped
from noonmark.supervise import FAILING_DEATHS, STEADY_S, Supervisor


class Impatient(SystemClock):
    """Notes how long it was asked to wait, and does not; time passes when told."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def test_a_death_is_told_logged_and_counted_and_the_work_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[InternalError] = []

    async def test() -> None:
        supervisor, lives = Supervisor(Impatient()), 0
        done = asyncio.Event()

        async def work() -> None:
            nonlocal lives
            lives += 1
            if lives == 1:
                raise ZeroDivisionError("a secret of the insides")
            done.set()
            await asyncio.Event().wait()

        task = supervisor.task("committer", "", work, on_death=told.append)
        await asyncio.wait_for(done.wait(), 5)
        assert supervisor.deaths() == {"committer": 1}
        assert supervisor.failing() == []
        await task.stop()
        assert supervisor.works() == []
        assert supervisor.deaths() == {"committer": 1}

    with caplog.at_level(logging.ERROR, "noonmark"):
        run(test)
    assert "secret" not in str(told[0])
    assert told[0].fields["number"] in caplog.text
    assert "ZeroDivisionError: a secret of the insides" in caplog.text


def test_work_that_keeps_dying_is_failing_until_it_lives() -> None:
    async def test() -> None:
        clock = Impatient()
        supervisor, deaths = Supervisor(clock), 0
        steady = asyncio.Event()

        async def work() -> None:
            nonlocal deaths
            if deaths < FAILING_DEATHS:
                deaths += 1
                raise KeyError(deaths)
            steady.set()
            await asyncio.Event().wait()

        task = supervisor.task("view", "v", work)
        await asyncio.wait_for(steady.wait(), 5)
        (why,) = supervisor.failing()
        assert why.startswith("view v keeps failing: internal error")
        assert clock.waits == [0.0, supervise.PAUSE_FIRST_S, 2 * supervise.PAUSE_FIRST_S]
        clock.now_s += STEADY_S
        assert supervisor.failing() == []
        await task.stop()

    run(test)


def test_a_cancel_from_elsewhere_is_a_death_and_a_stop_is_none() -> None:
    async def test() -> None:
        supervisor = Supervisor(Impatient())
        lives: list[int] = []
        began = asyncio.Event()

        async def work() -> None:
            lives.append(1)
            began.set()
            await asyncio.Event().wait()

        task = supervisor.task("pulse", "", work)
        await began.wait()
        began.clear()
        assert task.alive is not None
        task.alive.cancel()
        await asyncio.wait_for(began.wait(), 5)
        await task.stop()
        assert len(lives) == 2
        assert supervisor.deaths() == {"pulse": 1}

    run(test)


def test_work_ends_by_returning_and_by_an_error_that_it_names() -> None:
    async def test() -> None:
        supervisor = Supervisor(Impatient())

        async def returns() -> None:
            return

        async def ends() -> None:
            raise Stopped("the database is closing")

        await supervisor.task("a", "", returns).ended()
        await supervisor.task("b", "", ends, ends=(Stopped,)).ended()
        assert supervisor.works() == []
        assert sum(supervisor.deaths().values()) == 0

    run(test)


def test_ending_the_loop_ends_the_work() -> None:
    lives: list[int] = []

    async def test() -> None:
        async def work() -> None:
            lives.append(1)
            await asyncio.Event().wait()

        Supervisor(Impatient()).task("a", "", work)
        await asyncio.sleep(0.01)

    run(test)  # asyncio.run cancels every task that is left, keepers too
    assert lives == [1]


def test_a_thread_that_dies_begins_again() -> None:
    supervisor, stopping, lives = Supervisor(), threading.Event(), 0
    alive, told = threading.Event(), []

    def work() -> None:
        nonlocal lives
        lives += 1
        if lives < 3:
            raise IndexError(lives)
        alive.set()
        stopping.wait()

    thread = supervisor.thread("source", "s", work, stopping, told.append)
    assert alive.wait(5)
    assert supervisor.deaths() == {"source": 2}
    assert len(told) == 2
    stopping.set()
    assert asyncio.run(thread.ended(5))
    assert supervisor.works() == []
