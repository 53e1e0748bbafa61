"""Steady load: one source under a writer of a fixed rate, and whether ingestion keeps up.

A tick begins every second, or at once when the last one took longer, as in a server. The *age* at
the end of a tick is how long ago the tick before it asked upstream how far it is: up to this moment
a reader saw the data of that probe. Ingestion falls behind when the ages of the last quarter are
twice those of the second one, and more than a few seconds: ticks that only grow.

CPU is that of a process and all its descendants, ended ones included once they were waited for.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from noonmark.clock import SYSTEM
from noonmark.ingest.ingestion import Ingestion

INTERVAL_S, CORES = 1.0, 2
T = TypeVar("T")
_AGE_S = 5.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def options(argv: Sequence[str], rate: int, seconds: int) -> argparse.Namespace:
    """The seed, the rate of the writer, and for how long."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1, help="the seed of the writer")
    parser.add_argument("--rate", type=int, default=rate, help="how much is written a second")
    parser.add_argument("--seconds", type=int, default=seconds, help="for how long")
    return parser.parse_args(list(argv))


@dataclass(frozen=True)
class Outcome:
    """What a run under load came to."""

    ages_s: tuple[float, ...]
    rows: int
    seconds: float

    @property
    def keeps_up(self) -> bool:
        """See the module."""
        quarter = max(1, len(self.ages_s) // 4)
        early = statistics.median(self.ages_s[quarter : 2 * quarter])
        late = statistics.median(self.ages_s[-quarter:])
        return late <= max(_AGE_S, 2 * early)

    @property
    def age_p50_s(self) -> float:
        """The median age."""
        return statistics.median(self.ages_s)

    @property
    def age_max_s(self) -> float:
        """The largest age."""
        return max(self.ages_s)


def follow(ingestion: Ingestion, is_over: Callable[[], bool]) -> Outcome:
    """Tick until the writer is done, and once more."""
    pause = threading.Event()
    began = probed = SYSTEM.monotonic()
    ages: list[float] = []
    rows, last = 0, False
    while not last:
        last = is_over()
        before, probed = probed, SYSTEM.monotonic()
        rows += ingestion.tick().rows
        now = SYSTEM.monotonic()
        ages.append(now - before)
        pause.wait(max(0.0, INTERVAL_S - (now - probed)))
    return Outcome(tuple(ages), rows, SYSTEM.monotonic() - began)


@dataclass(frozen=True)
class Load:
    """What a writer wrote, in which time, and what everybody spent on it.

    Attributes:
        what: one of them, such as "record".
    """

    what: str
    count: int
    seconds: float
    cpu_s: Mapping[str, float]


def figure(title: str, load: Load, outcome: Outcome, rate: int, note: str) -> dict[str, Any]:
    """The rate that was written while ingestion kept up, else the one that it managed."""
    written = load.count / load.seconds
    value = written if outcome.keeps_up else load.count / outcome.seconds
    each = {name: 1e6 * spent / load.count for name, spent in load.cpu_s.items()}
    limit = 1e6 * CORES / sum(each.values())
    spent = ", ".join(f"{name} {cpu:.1f}" for name, cpu in each.items())
    print(f"CPU us a {load.what}: {spent}; {CORES} cores have room for {limit:,.0f} a second")
    print(f"age p50 {outcome.age_p50_s:.1f} s, max {outcome.age_max_s:.1f} s")
    print(f"{value:,.0f}")
    return {
        "title": f"{title}, {load.what}s/s that are kept up with",
        "value": value,
        "unit": f"{load.what}s/s",
        "goal": f">= {rate:,} without falling behind",
        "met": outcome.keeps_up and written >= 0.99 * rate,
        "measures": {
            "age p50 s": outcome.age_p50_s,
            "age max s": outcome.age_max_s,
            **{f"{name}, CPU us a {load.what}": cpu for name, cpu in each.items()},
        },
        "note": f"{load.count:,} {load.what}s in {load.seconds:.0f} s, "
        f"{len(outcome.ages_s)} ticks; CPU us a {load.what}: {spent}; {note}",
    }


def cpu_seconds(root: int) -> float:
    """The CPU time of a process and of its descendants."""
    processes = _processes()
    return sum(processes[pid][1] for pid in _family(root, processes) if pid in processes)


def family_of(root: int) -> set[int]:
    """A process and its descendants."""
    return _family(root, _processes())


def _family(root: int, processes: Mapping[int, tuple[int, float]]) -> set[int]:
    family = {root}
    while more := {pid for pid, (up, _) in processes.items() if up in family} - family:
        family |= more
    return family


def parent_of(pid: int) -> int:
    """The process that started another."""
    return _processes()[pid][0]


def children() -> set[int]:
    """The processes that this one started."""
    return {pid for pid, (parent, _) in _processes().items() if parent == os.getpid()}


def _processes() -> dict[int, tuple[int, float]]:
    """The parent and the CPU time of every process."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            spent = sum(map(int, fields[11:15])) / _TICKS_PER_S
            found[int(folder.name)] = (int(fields[1]), spent)
    return found


def paced(items: Iterable[T], per_second: float) -> Iterator[T]:
    """The items, none before its turn."""
    pause = threading.Event()
    began = SYSTEM.monotonic()
    for at, item in enumerate(items):
        pause.wait(max(0.0, began + at / per_second - SYSTEM.monotonic()))
        yield item
