"""When Python looks for garbage among everything that lives: seldom, and not while it plans.

Everybody waits for the collector. It looks at all that is alive whenever enough was allocated, and
nothing allocates like the planning of a long text, whose trees are all alive: hundreds of
milliseconds for nothing, again and again. So only what is young is looked at by itself; all of it
every `EVERY_S`, at a moment when nothing is planned if there is one, and what the server begins
with (`settle`) never.

Where it runs: a server's own process; not where somebody else's program is.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

#: Young objects are looked at when there are so many more; those that stayed after some such times.
_YOUNG, _STAYED = 10_000, 5
#: Everything, by Python's own count: never.
_ALL = 1_000_000_000
EVERY_S = 300.0
#: How long a quiet moment is waited for.
_PATIENCE_S = 300.0
_PAUSE_S = 1.0


def settle() -> None:
    """What is there now stays: the collector leaves it out."""
    gc.set_threshold(_YOUNG, _STAYED, _ALL)
    gc.collect()
    gc.freeze()


def collect_now_and_then(stopping: threading.Event, is_busy: Callable[[], bool]) -> None:
    """Look for all garbage every `EVERY_S`, until it ends."""
    while not stopping.wait(EVERY_S):
        waited_s = 0.0
        while is_busy() and waited_s < _PATIENCE_S and not stopping.wait(_PAUSE_S):
            waited_s += _PAUSE_S
        gc.collect()
