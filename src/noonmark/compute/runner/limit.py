"""Ticks with an end: what runs one is told to end it when its time is up, or when it is given up.

Ending a job interrupts its tasks; a Python worker that does not answer is killed by Spark within
two seconds. Nothing is committed by a task, so a tick that was ended has not happened.

Where it runs: driver.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from noonmark.errors import Interrupted

#: A job may begin after its group was ended: it is ended again and again until the end.
_AGAIN_S = 0.5


class TickExceeded(Interrupted, id="tick_exceeded", sqlstate="57014"):
    """A tick of a view took longer than it may, or was given up; nothing of it was committed."""


class Limit:
    """The end of a tick: `over` once it was reached or `give_up` was called."""

    def __init__(self) -> None:
        self._end = threading.Event()
        self._done = threading.Event()
        self.over = False

    def give_up(self) -> None:
        """End it now; from any thread."""
        self._end.set()

    @contextmanager
    def of(self, end: Callable[[], None], seconds: float | None) -> Iterator[None]:
        """Limit what this thread does inside the block, which `end` ends from another thread."""
        watch = threading.Thread(
            target=self._watch, args=(end, seconds), name="noonmark-limit", daemon=True
        )
        watch.start()
        try:
            yield
        finally:
            self._done.set()
            self._end.set()

    def _watch(self, end: Callable[[], None], seconds: float | None) -> None:
        self._end.wait(seconds)
        while not self._done.is_set():
            self.over = True
            end()
            self._done.wait(_AGAIN_S)
