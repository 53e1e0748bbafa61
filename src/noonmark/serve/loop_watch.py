"""Who holds the adapter's loop: a line of the log when it does not get to its turn.

The loop speaks protocol, and every client waits while it does anything else. A thread asks it for
a sign of life again and again; when none comes for `LATE_S`, the thread looks what the loop is
doing, and tells when the sign has come:

    the loop was late by 312 ms, busy for 280 ms of it: peek/answer.py:101 answer < ...

*Busy* is the processor time of the loop's own thread. A loop that is late and not busy waits for
the processor, or for another thread that holds the interpreter: the line then says what the others
do.

Where it runs: a thread of its own.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType

from noonmark.clock import SYSTEM, Clock

LOG = logging.getLogger("noonmark.loop")

#: A loop that takes longer to answer is late.
LATE_S = 0.1
#: How long the thread sleeps between two signs of life.
PAUSE_S = 0.05
#: At most one line in so long: the latest of that time.
EVERY_S = 10.0
_FRAMES = 6


@dataclass
class Late:
    """The loop was late once."""

    late_s: float = 0.0
    busy_s: float = 0.0
    stacks: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = f"the loop was late by {self.late_s * 1000:.0f} ms, busy for "
        return told + f"{self.busy_s * 1000:.0f} ms of it: " + "; ".join(self.stacks)


class LoopWatch:
    """See the module.

    Args:
        loop: the loop that runs in the calling thread.
        stopping: ends the watch.
        tell: what becomes of a late loop; a line of the log by default.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        stopping: threading.Event,
        clock: Clock = SYSTEM,
        tell: Callable[[Late], None] | None = None,
    ) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._stopping = stopping
        self._clock = clock
        self._tell = tell or self._log
        self._worst: Late | None = None
        self._told_s = -EVERY_S

    def run(self) -> None:
        """Watch until it is stopped."""
        while not self._stopping.wait(PAUSE_S):
            self._once()
            self._write()

    def _once(self) -> None:
        came = threading.Event()
        begun, busy = self._clock.monotonic(), self._busy_s()
        try:
            self._loop.call_soon_threadsafe(came.set)
        except RuntimeError:  # the loop is closed
            self._stopping.set()
            return
        if came.wait(LATE_S):
            return
        late = Late(stacks=self._stacks(self._busy_s() - busy))
        while not came.wait(LATE_S) and not self._stopping.is_set():
            pass
        late.late_s = self._clock.monotonic() - begun
        late.busy_s = self._busy_s() - busy
        self._tell(late)

    def _busy_s(self) -> float:
        """The processor time of the loop's thread."""
        if not hasattr(time, "pthread_getcpuclockid"):
            return 0.0
        return time.clock_gettime(time.pthread_getcpuclockid(self._thread))

    def _stacks(self, busy_s: float) -> list[str]:
        """What the loop does; and the others, when it is not the loop that works."""
        frames = sys._current_frames()
        own = [f"loop: {shown(frames.get(self._thread))}"]
        if busy_s > LATE_S / 2:
            return own
        names = {each.ident: each.name for each in threading.enumerate()}
        here = threading.get_ident()
        others = {
            names.get(number, "a thread"): shown(frame)
            for number, frame in frames.items()
            if number not in (self._thread, here)
        }
        return own + [f"{name}: {text}" for name, text in others.items() if not _waits(text)]

    def _log(self, late: Late) -> None:
        if self._worst is None or late.late_s > self._worst.late_s:
            self._worst = late

    def _write(self) -> None:
        now = self._clock.monotonic()
        if self._worst is not None and now - self._told_s >= EVERY_S:
            LOG.warning("%s", self._worst)
            self._worst, self._told_s = None, now


def shown(frame: FrameType | None) -> str:
    """A stack in one line, the innermost call first."""
    parts: list[str] = []
    while frame is not None and len(parts) < _FRAMES:
        code = frame.f_code
        file = "/".join(code.co_filename.rsplit("/", 2)[-2:])
        parts.append(f"{file}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return " < ".join(parts)


def _waits(text: str) -> bool:
    """Whether a thread sleeps: its innermost call is one that waits."""
    innermost = text.split(" < ", 1)[0]
    return innermost.endswith((" wait", " select", " accept", " get", " _worker", " readinto"))
