"""Ctrl-C in the demo, and being told to end.

It comes once, and never between the start of a process and the note of it: so whatever was started
is stopped, and nothing interrupts that.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupts:
    """See the module; of the main thread."""

    def __init__(self) -> None:
        self._is_held = False
        self._came = False

    def watch(self) -> None:
        """From now on the first one is a KeyboardInterrupt; what it ends is not interrupted."""
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, self._handle)

    def end(self) -> None:
        """All is stopped. One that comes while the interpreter ends would kill it: none does."""
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)

    @contextmanager
    def held(self) -> Iterator[None]:
        """One that comes inside of the block is raised at its end."""
        before, self._is_held = self._came, True
        try:
            yield
        finally:
            self._is_held = False
        if self._came and not before:
            raise KeyboardInterrupt

    def _handle(self, *_: object) -> None:
        if self._came:
            return
        self._came = True
        if not self._is_held:
            raise KeyboardInterrupt


INTERRUPTS = Interrupts()
