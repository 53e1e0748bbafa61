"""How fast a worker goes on: what takes long waits for what does not.

Law (short first): a job that takes more than `LONG_S` of the processor goes on at a lower priority,
and at a lower one still when it takes much more, so that many long ones do not keep short ones, and
the adapter's loop, from the processor. What waits for a processor that others have is not long: its
worker, which would have to be replaced, is as good as before.

Where it runs: the adapter's loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from pathlib import Path

from noonmark.clock import SYSTEM

#: A job that takes more of the processor makes room for shorter ones.
LONG_S = 0.1
#: How low its priority is after so much; workers begin with that of `child`.
PRIORITIES = ((LONG_S, 12), (5 * LONG_S, 15))
#: How soon it is looked again at a job that has nearly taken so much.
_LOOK_S = 0.02


class Pace:
    """Lowers the priority of a worker by the processor time that its job has taken."""

    def __init__(self, pid: int) -> None:
        self.is_lowered = False
        self._pid = pid
        self._begun_s, self._since_s = _processor_s(pid), SYSTEM.monotonic()
        self._steps = deque(PRIORITIES)
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(LONG_S, self._look)

    def spent_s(self) -> tuple[float, float]:
        """What the job has taken, of the processor and of the clock."""
        return _processor_s(self._pid) - self._begun_s, SYSTEM.monotonic() - self._since_s

    def end(self) -> None:
        """The job has ended."""
        self._timer.cancel()

    def _look(self) -> None:
        spent_s = _processor_s(self._pid) - self._begun_s
        while self._steps and spent_s >= self._steps[0][0]:
            self._lower(self._steps.popleft()[1])
        if self._steps:
            wait_s = max(_LOOK_S, self._steps[0][0] - spent_s)
            self._timer = self._loop.call_later(wait_s, self._look)

    def _lower(self, priority: int) -> None:
        """It cannot be taken back."""
        self.is_lowered = True
        with contextlib.suppress(OSError):
            # Linux has a priority for each thread, and the one that works is not the first.
            for thread in _threads(self._pid):
                os.setpriority(os.PRIO_PROCESS, thread, priority)


def _processor_s(pid: int) -> float:
    """The processor time of a process; where the system does not say it, the time."""
    try:
        # As Linux numbers the clock of a process (clock_getcpuclockid).
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return SYSTEM.monotonic()


def _threads(pid: int) -> list[int]:
    """The threads of a process; where the system does not list them, the process."""
    folder = Path(f"/proc/{pid}/task")
    return [int(each.name) for each in folder.iterdir()] if folder.is_dir() else [pid]
