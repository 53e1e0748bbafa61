"""How long the event loop was held: the processor time of its longest callback."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def longest_piece() -> Iterator[list[float]]:
    """The processor time of the longest callback of this thread's loop.

    Without collections of garbage: those of a process that has run many tests take longer than
    what is measured. What a server's take is `serve.garbage`'s matter.
    """
    found, run = [0.0], asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        begun = time.thread_time()
        run(handle)
        found[0] = max(found[0], time.thread_time() - begun)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.Handle, "_run", timed)
        gc.collect()
        gc.disable()
        try:
            yield found
        finally:
            gc.enable()
