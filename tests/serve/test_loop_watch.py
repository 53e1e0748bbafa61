"""A loop that is held is told, with who held it."""

from __future__ import annotations

import asyncio
import threading
import time

from noonmark.serve.loop_watch import Late, LoopWatch


def hold(seconds: float) -> None:
    """Work on the loop itself."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_who_holds_the_loop_is_told() -> None:
    told: list[Late] = []

    async def main() -> None:
        stopping = threading.Event()
        watch = LoopWatch(asyncio.get_running_loop(), stopping, tell=told.append)
        thread = threading.Thread(target=watch.run)
        thread.start()
        await asyncio.sleep(0.2)
        hold(0.5)
        await asyncio.sleep(0.2)
        stopping.set()
        await asyncio.to_thread(thread.join)

    asyncio.run(main())
    worst = max(told, key=lambda late: late.busy_s)
    assert worst.late_s >= worst.busy_s > 0.2
    assert "test_loop_watch.py" in str(worst)
    assert "hold" in worst.stacks[0]


def test_a_loop_that_is_closed_ends_the_watch() -> None:
    async def main() -> LoopWatch:
        return LoopWatch(asyncio.get_running_loop(), threading.Event())

    asyncio.run(main()).run()
