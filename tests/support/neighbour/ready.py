"""Waiting for a descriptor of any number: `select.select` knows none beyond 1,023."""

from __future__ import annotations

import select


def ready(file: int, seconds: float | None = None, *, to_write: bool = False) -> bool:
    """Whether a descriptor can be read (or written) within so long; None waits for ever."""
    waiting = select.poll()
    waiting.register(file, select.POLLOUT if to_write else select.POLLIN)
    return bool(waiting.poll(None if seconds is None else seconds * 1000))
