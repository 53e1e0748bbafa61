"""The only door to wall time, waiting, randomness and fresh ids.

Everything else takes a ``Clock``. A simulation hands in a virtual one, so that the same seed gives
the same trace. ``tests/simulation`` has that double; the ban on every other door is in
``pyproject.toml``.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from typing import Protocol


class Clock(Protocol):
    """What the rest of the code may know of time and chance."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch. May stand still or jump: the oracle makes it monotone."""

    def monotonic(self) -> float:
        """Seconds since some start, also while the machine sleeps; never goes back.

        For durations, deadlines and leases: what others may do when a lease has run out, they do
        also while its owner's machine is suspended.
        """

    async def sleep(self, seconds: float) -> None:
        """Wait without blocking the event loop."""

    def random(self) -> float:
        """A uniform float in [0, 1), for jitter."""

    def fresh_id(self) -> str:
        """A new unique id: 26 lower-case characters that sort by creation time (in ms)."""


class SystemClock:
    """The machine's clock and entropy."""

    def now_ms(self) -> int:
        """See `Clock.now_ms`."""
        return time.time_ns() // 1_000_000  # noqa: TID251 - this is the door

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return time.clock_gettime(_MONOTONIC)

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        await asyncio.sleep(seconds)

    def random(self) -> float:
        """See `Clock.random`."""
        return random.random()  # noqa: TID251 - this is the door

    def fresh_id(self) -> str:
        """See `Clock.fresh_id`."""
        return format_id(self.now_ms(), secrets.randbits(80))


#: Linux's CLOCK_MONOTONIC stands still while the machine is suspended; that of macOS goes on.
_MONOTONIC: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

SYSTEM = SystemClock()

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def format_id(now_ms: int, entropy: int) -> str:
    """48 bits of time and 80 of entropy in base 32: sorts by time, fits in a file name.

    >>> format_id(0, 0)
    '00000000000000000000000000'
    """
    value = (now_ms & (1 << 48) - 1) << 80 | entropy & (1 << 80) - 1
    digits = []
    for _ in range(26):
        digits.append(_ALPHABET[value & 31])
        value >>= 5
    return "".join(reversed(digits))
