"""Threads for long work, which a process does not wait for when it ends.

Like a `ThreadPoolExecutor`, except that its threads are daemons: work that never ends, or that
waits for a Spark that never answers, does not keep a server from stopping. Threads stay: PySpark
pairs each with one in the JVM.

Where it runs: asked on the adapter's loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

_Job = tuple[asyncio.AbstractEventLoop, asyncio.Future[Any], Callable[[], Any]]


class DaemonPool:
    """At most `size` threads, begun as they are needed."""

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._name = name
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._mutex = threading.Lock()

    async def run(self, act: Callable[[], T]) -> T:
        """Do it in one of the threads, to its end, also when the caller is cancelled."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((loop, future, act))
        with self._mutex:
            wanted = self._idle < self._jobs.qsize() and self._threads < self._size
            self._threads += wanted
        if wanted:
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        return await future

    def stop(self) -> None:
        """Let the threads end when they have nothing left to do."""
        for _ in range(self._size):
            self._jobs.put(None)

    def _work(self) -> None:
        while True:
            with self._mutex:
                self._idle += 1
            job = self._jobs.get()
            with self._mutex:
                self._idle -= 1
            if job is None:
                return
            loop, future, act = job
            try:
                call: Callable[..., None] = future.set_result
                what: Any = act()
            except BaseException as error:
                call, what = future.set_exception, error
            with suppress(RuntimeError):  # the loop has ended, and nobody waits
                loop.call_soon_threadsafe(_tell, future, call, what)


def _tell(future: asyncio.Future[Any], call: Callable[..., None], what: Any) -> None:
    if not future.done():
        call(what)
