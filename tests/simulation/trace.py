"""The trace of a run: everything that happened, as a digest, and as text when somebody looks."""

from __future__ import annotations

from collections.abc import Callable

import xxhash


class Trace:
    """Events, folded into one number; two runs are the same when their digests are."""

    def __init__(self, now: Callable[[], float], *, print_events: bool = False) -> None:
        self._now = now
        self._print = print_events
        self._digest = xxhash.xxh3_64()
        self.events = 0

    def note(self, *event: object) -> None:
        """Something happened."""
        self.events += 1
        text = f"{self._now():.6f} {' '.join(map(str, event))}\n"
        self._digest.update(text.encode())
        if self._print:
            print(text, end="")

    def digest(self) -> str:
        """The number of the trace so far."""
        return str(self._digest.hexdigest())
