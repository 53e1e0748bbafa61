"""What a source or a sink said of itself since the server started.

Law: two neighbours differ, in state or error; the newest is what its status relation says. The
newest `KEPT_MAX` are kept, so that one that stalls and recovers for a year needs no more memory.
"""

from __future__ import annotations

from collections import deque

KEPT_MAX = 200


class StatusHistory:
    """See the module. Written by the one thread of its worker, read by any."""

    def __init__(self, started_ms: int) -> None:
        self._kept: deque[tuple[int, str, str | None]] = deque(maxlen=KEPT_MAX)
        self.note(started_ms, "starting", None)

    def note(self, now_ms: int, state: str, error: str | None) -> None:
        """It is in that state now."""
        if not self._kept or self._kept[-1][1:] != (state, error):
            self._kept.append((now_ms, state, error))

    def entries(self) -> list[tuple[int, str, str | None]]:
        """(time, state, error), oldest first."""
        return list(self._kept)
