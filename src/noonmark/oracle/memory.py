"""The reference: an oracle that forgets everything when its process ends."""

from __future__ import annotations

import threading

from noonmark.clock import Clock


class MemoryOracle:
    """See `contract.TimestampOracle`. Every later implementation behaves like this one."""

    def __init__(self, clock: Clock, floor: int = 0) -> None:
        self._clock = clock
        self._mutex = threading.Lock()
        self._read = floor
        self._write = floor

    def write_ts(self) -> int:
        """See the contract."""
        with self._mutex:
            self._write = max(self._write + 1, self._read + 1, self._clock.now_ms())
            return self._write

    def read_ts(self) -> int:
        """See the contract."""
        with self._mutex:
            return self._read

    def apply_write(self, time: int) -> None:
        """See the contract."""
        with self._mutex:
            self._read = max(self._read, time)
            self._write = max(self._write, time)

    def close(self) -> None:
        """Nothing to let go of."""
