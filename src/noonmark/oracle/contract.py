"""The timestamp oracle: the one timeline, handed out a time at a time.

    write_ts()        a time for a write: greater than every time ever given for a write or a read
    read_ts()         a time for a read: at or after every applied write and earlier answer
    apply_write(t)    the write at t is durable: reads from now on are at t or later

Times are milliseconds since the epoch, close to wall time while the clock behaves. When it stands
still or jumps back, times go on by one; when it jumps ahead, times follow it and never return.

Law (writes): if one `write_ts` returned before another was called, anywhere, it returned less.
Law (reads): if `apply_write(t)` or a `read_ts` that gave t returned before a `read_ts` was
called, that gives at least t.
Law (separation): a `write_ts` called after a `read_ts` gave t returns more than t: what was read
as of t never changes.

All three hold across restarts and, for the oracles that say so, across processes.
"""

from __future__ import annotations

from typing import Protocol


class TimestampOracle(Protocol):
    """See the module. Methods may be called from any thread."""

    def write_ts(self) -> int:
        """A time for a write."""

    def read_ts(self) -> int:
        """A time for a read."""

    def apply_write(self, time: int) -> None:
        """The write at `time` is durable."""

    def close(self) -> None:
        """Let go of what the oracle holds."""
