"""Event loops go first: the laws of `noonmark.loops`, and of threads that plan beside them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from noonmark import loops
from noonmark.clock import SYSTEM
from noonmark.sql import turns


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Loops of other tests do not count."""
    before = set(loops.WORKING)
    loops.WORKING.clear()
    yield
    loops.WORKING.clear()
    loops.WORKING.update(before)
    turns._TURN.holder, turns._TURN.kept_until_s = None, 0.0


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=loops.new_loop) as runner:
        runner.run(main())


class Planning:
    """A thread that takes steps, as one that plans does."""

    def __init__(self) -> None:
        self.steps, self.over = 0, False
        self._thread = threading.Thread(target=self._plan, daemon=True)
        self._thread.start()

    def _plan(self) -> None:
        turns.enter()
        while not self.over:
            self.steps += 1
            if turns.WAITING or loops.WORKING:
                turns.pass_on()
        turns.leave()

    def end(self) -> None:
        self.over = True
        self._thread.join(10)


def test_a_thread_plans_while_the_loop_sleeps_and_rests_while_it_works() -> None:
    async def main() -> None:
        planning = Planning()
        try:
            await asyncio.sleep(0.05)
            asleep = planning.steps
            assert asleep > 100
            begun = planning.steps
            rests = loops.PATIENCE_S / 2
            until = SYSTEM.monotonic() + rests
            taken = threading.Event()
            while SYSTEM.monotonic() < until:
                taken.wait(0.0005)  # the lock is free, as in a call of the system
            assert planning.steps - begun <= 2, "the step that it was at, and no more"
        finally:
            planning.end()

    run(main)


def test_beside_a_loop_that_never_rests_a_thread_has_a_part_of_the_time() -> None:
    async def main() -> None:
        planning = Planning()
        try:
            begun, taken = planning.steps, threading.Event()
            until = SYSTEM.monotonic() + 10 * loops.PATIENCE_S
            while SYSTEM.monotonic() < until:
                taken.wait(0.0005)
            assert planning.steps - begun > 100
        finally:
            planning.end()

    run(main)


def test_a_loop_that_is_closed_is_waited_for_by_nobody() -> None:
    loop = loops.new_loop()
    loop.run_until_complete(asyncio.sleep(0.001))
    assert loops.WORKING
    loop.close()
    assert not loops.WORKING
    assert loops.await_rest()
