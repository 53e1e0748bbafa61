"""What the processes of a server use, for Prometheus: asked when the figures are.

noonmark_processes{part}               processes: server, spark, statement workers, ...
noonmark_memory_resident_bytes{part}   their resident memory; pages that several share count in each

A server is more than one process (`docs/operate/size.md`), and the one that asks for too much is
seldom the one that answers /metrics. Where there is no /proc, nothing is said.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_PROC = Path("/proc")
#: What is on a command line of each kind of process, the first that fits.
_PARTS = (
    ("noonmark.compute.jvm.daemon", "spark workers"),
    ("pyspark.daemon", "spark workers"),
    ("noonmark.adapter.worker", "statement workers"),
    ("noonmark.compute.runner", "tick processes"),
    ("java", "spark"),
)


class ProcessFigures(Collector):
    """See the module."""

    def collect(self) -> Iterable[Metric]:
        """The figures as they are now."""
        number, resident = Counter[str](), Counter[str]()
        for part, size in _family(os.getpid()):
            number[part] += 1
            resident[part] += size
        processes = GaugeMetricFamily(
            "noonmark_processes", "Processes of this server, by what they do.", labels=["part"]
        )
        memory = GaugeMetricFamily(
            "noonmark_memory_resident_bytes",
            "Resident memory of this server's processes; shared pages count in each of them.",
            labels=["part"],
        )
        for part in sorted(number):
            processes.add_metric([part], number[part])
            memory.add_metric([part], resident[part])
        return processes, memory


def _family(root: int) -> Iterator[tuple[str, int]]:
    """The part and the resident bytes of a process and of all below it."""
    below: dict[int, list[int]] = {}
    for found in _PROC.glob("[0-9]*"):
        try:
            above = int((found / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue  # it ended meanwhile
        below.setdefault(above, []).append(int(found.name))
    page = os.sysconf("SC_PAGE_SIZE")
    left = [root]
    while left:
        process = left.pop()
        left += below.get(process, ())
        try:
            words = (_PROC / str(process) / "cmdline").read_bytes().decode(errors="replace")
            resident = int((_PROC / str(process) / "statm").read_text().split()[1]) * page
        except (OSError, IndexError, ValueError):
            continue
        yield "server" if process == root else _part(words), resident


def _part(command: str) -> str:
    return next((part for mark, part in _PARTS if mark in command), "other")
