"""When Python looks for garbage: often at what is new, seldom at everything, not while it plans.

Everybody waits for the collector. It looks at all that is alive whenever enough was allocated, and
nothing allocates like the planning of a long text, whose trees are all alive: hundreds of
milliseconds for nothing, again and again. So

    young objects     are looked at by Python's own count
    what is new       every `EVERY_S`, at a moment when nothing is planned if there is one; then
                      what is alive is left out from now on (frozen), as is what the server began
                      with: a plan that is being made is not, it ends soon
    everything        when the process is twice as large as after the last such time; its size is
                      asked of the system, because to count what is left out is to look at it

Law (bounded): a pause follows what came since the last one, not all that is alive; looks at
everything cost, together, at most as much as what was ever left out.

Where it runs: a server's own process; not where somebody else's program is.
"""

from __future__ import annotations

import gc
import resource
import threading
from collections.abc import Callable
from pathlib import Path

#: Young objects are looked at when there are so many more; those that stayed after some such times.
_YOUNG, _STAYED = 10_000, 5
#: Everything, by Python's own count: never.
_ALL = 1_000_000_000
EVERY_S = 4.0
#: How long a quiet moment is waited for: what comes meanwhile makes the pause longer.
_PATIENCE_S = 2.0
_PAUSE_S = 0.05
#: Everything is looked at only when the process is larger by so much.
_MANY_BYTES = 256 << 20


def resident_bytes() -> int:
    """The memory of this process."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # not Linux: the most that it ever was
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return pages * resource.getpagesize()


class Collector:
    """Looks for garbage; knows how large the process was when it last looked at everything."""

    def __init__(self) -> None:
        self._size_bytes = 0

    def settle(self) -> None:
        """What is there now stays: the collector leaves it out."""
        gc.set_threshold(_YOUNG, _STAYED, _ALL)
        self._everything()

    def collect(self, *, quiet: bool = True) -> None:
        """Look at what is new; if it is quiet, at everything when that is due."""
        if quiet and resident_bytes() > max(2 * self._size_bytes, self._size_bytes + _MANY_BYTES):
            self._everything()
            return
        gc.collect()
        if quiet:
            gc.freeze()

    def _everything(self) -> None:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._size_bytes = resident_bytes()

    def run(self, stopping: threading.Event, is_busy: Callable[[], bool]) -> None:
        """Collect every `EVERY_S`, until it ends."""
        while not stopping.wait(EVERY_S):
            waited_s = 0.0
            while is_busy() and waited_s < _PATIENCE_S and not stopping.wait(_PAUSE_S):
                waited_s += _PAUSE_S
            self.collect(quiet=not is_busy())
