"""The runtime: the event loop on which one process's persist lives.

Persist is a fat client: its work is done in the process that uses it, on one event loop in a
thread of its own, so that callers may be threads, coroutines of another loop, or Spark's driver.
Long work on the CPU (sorting, Parquet) is handed to worker threads with `offload`.

A simulation gives its own loop and runs offloaded work in place: then everything happens on one
thread, in an order that the loop decides.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from noonmark.clock import SYSTEM, Clock

T = TypeVar("T")

#: Threads for sorting and Parquet; pyarrow releases the interpreter lock.
WORKERS = 4


class Runtime:
    """A loop to run on, a way to run CPU-bound work, and a clock."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Clock, *, in_place: bool = False
    ) -> None:
        self.loop = loop
        self.clock = clock
        self.in_place = in_place
        self._thread: threading.Thread | None = None
        self._workers = None if in_place else ThreadPoolExecutor(WORKERS, "noonmark-worker")

    @classmethod
    def start(cls, clock: Clock = SYSTEM) -> Runtime:
        """A loop of its own, in a daemon thread."""
        runtime = cls(asyncio.new_event_loop(), clock)
        runtime._thread = threading.Thread(
            target=runtime.loop.run_forever, name="noonmark-persist", daemon=True
        )
        runtime._thread.start()
        return runtime

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop; callable from any thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    async def offload(self, work: Callable[..., T], *args: Any) -> T:
        """Run CPU-bound `work` without holding up the loop."""
        if self._workers is None:
            return work(*args)
        return await self.loop.run_in_executor(self._workers, work, *args)

    def on_loop(self) -> bool:
        """Whether the caller runs on the loop's thread, where waiting for it would never end."""
        return self._thread is not None and threading.current_thread() is self._thread

    def stop(self) -> None:
        """End the loop and its threads, if they are ours."""
        if self._thread is None:
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        if self._workers is not None:
            self._workers.shutdown()
        self.loop.close()
        self._thread = None
