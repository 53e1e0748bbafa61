"""How figures measure: rounds of two things side by side, and the median of their ratios.

Machines are noisy and drift. So the work and its peer alternate, after a warm-up of both, and
each round gives one ratio; the figure is the median ratio, whatever the absolute times were.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import time
from collections.abc import Callable, Sequence


def seed_of(argv: Sequence[str]) -> int:
    """The seed that every figure takes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    return int(parser.parse_args(argv).seed)


def end_what_was_started() -> None:
    """A figure that is told to end ends its servers too, as if somebody had interrupted it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def timed(work: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def side_by_side(
    ours: Callable[[], object], peer: Callable[[], object], rounds: int
) -> tuple[float, float, float]:
    """Median seconds of ours, of the peer, and the median of ours / peer."""
    ours(), peer()
    times = []
    for at in range(rounds):
        if at % 2:
            mine, theirs = timed(ours), timed(peer)
        else:
            theirs, mine = timed(peer), timed(ours)
        times.append((mine, theirs))
    return (
        statistics.median(mine for mine, _ in times),
        statistics.median(theirs for _, theirs in times),
        statistics.median(mine / theirs for mine, theirs in times),
    )
