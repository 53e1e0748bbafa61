"""The runtime: the event loop on which one process's persist lives.

Persist is a fat client: its work is done in the process that uses it, on one event loop in a
thread of its own, so that callers may be threads, coroutines of another loop, or Spark's driver.
Long work on the CPU (sorting, Parquet) is handed to worker threads with `offload`.

A simulation gives its own loop and runs offloaded work in place: then everything happens on one
thread, in an order that the loop decides.

Stopping ends every call that is under way with `Stopped`, also one that waits for a time to become
complete, and every later one: nobody is left waiting for a loop that has ended.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from noonmark.clock import SYSTEM, Clock
from noonmark.errors import Stopped
from noonmark.loops import new_loop

T = TypeVar("T")

#: Threads for sorting and Parquet; pyarrow releases the interpreter lock.
WORKERS = 4


def _close_unstarted(coroutine: Coroutine[Any, Any, Any]) -> None:
    """A call that was cancelled before its first step is let go of without a warning."""
    if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
        coroutine.close()


class Runtime:
    """A loop to run on, a way to run CPU-bound work, and a clock."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Clock, *, in_place: bool = False
    ) -> None:
        self.loop = loop
        self.clock = clock
        self.in_place = in_place
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._mutex = threading.Lock()
        self._workers = None if in_place else ThreadPoolExecutor(WORKERS, "noonmark-worker")

    @classmethod
    def start(cls, clock: Clock = SYSTEM) -> Runtime:
        """A loop of its own, in a daemon thread."""
        runtime = cls(new_loop(), clock)
        runtime._thread = threading.Thread(
            target=runtime.loop.run_forever, name="noonmark-persist", daemon=True
        )
        runtime._thread.start()
        return runtime

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop; callable from any thread."""
        with self._mutex:
            if not self._stopping:
                call = asyncio.run_coroutine_threadsafe(self._answered(coroutine), self.loop)
                call.add_done_callback(lambda _: _close_unstarted(coroutine))
                return call
        coroutine.close()
        refused: Future[T] = Future()
        refused.set_exception(stopped())
        return refused

    async def _answered(self, coroutine: Coroutine[Any, Any, T]) -> T:
        try:
            return await coroutine
        except asyncio.CancelledError:
            task = asyncio.current_task()
            # Not the caller's own wish: the runtime, or what the call waited for, was closed.
            if self._stopping or (task is not None and not task.cancelling()):
                raise stopped() from None
            raise

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Call back on the loop, from any thread; not at all once the loop has ended."""
        with self._mutex:
            if not self._stopping:
                self.loop.call_soon_threadsafe(callback)

    async def offload(self, work: Callable[..., T], *args: Any) -> T:
        """Run CPU-bound `work` without holding up the loop."""
        if self._workers is None:
            return work(*args)
        return await self.loop.run_in_executor(self._workers, work, *args)

    def on_loop(self) -> bool:
        """Whether the caller runs on the loop's thread, where waiting for it would never end."""
        return self._thread is not None and threading.current_thread() is self._thread

    def stop(self) -> None:
        """End the loop and its threads, if they are ours; every call under way gets `Stopped`."""
        if self._thread is None:
            return
        with self._mutex:
            self._stopping = True
        # Workers may wait for the loop, so it runs until the last of them has its answer.
        asyncio.run_coroutine_threadsafe(_cancel_all(), self.loop).result()
        if self._workers is not None:
            self._workers.shutdown()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
        self._thread = None


async def _cancel_all() -> None:
    """Cancel every other task of the loop and wait for its end."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def stopped() -> Stopped:
    """What a call on a runtime that was stopped gets."""
    return Stopped(
        "this persist runtime was stopped",
        detail="What had been queued before was finished; this call did nothing.",
        hint="Open the location again.",
    )
