"""C1: seeded simulation of persist, Storage and the oracle: 5,000 seeds of 200 operations.

The real code on a virtual clock and a seeded scheduler, over storage that loses, delays, repeats or
half does a tenth of its calls, with crashes, takeovers, pauses, suspends, outages, and clocks that
jump both ways, by seconds and by a day. What
must hold is in ``tests/simulation``: in ``model.py`` for collections, in ``ledger.py`` and
``verdicts.py`` for capabilities, in ``timeline.py`` for the oracle. A seed that breaks it is
printed with the command that shows it again.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from simulation.run import OPERATIONS, run_seeds
from support.house.proving import answer, bar, options

#: Seeds that a worker process takes at a time.
CHUNK = 10


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 5000, "seeds")
    first = chosen.seed * 1_000_000
    chunks = [
        range(at, min(at + CHUNK, first + chosen.count))
        for at in range(first, first + chosen.count, CHUNK)
    ]
    faults: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    violations: list[str] = []
    # Arrow keeps memory that a seed has used: a worker that lives too long grows.
    context = multiprocessing.get_context("spawn")
    workers = context.Pool(os.cpu_count(), maxtasksperchild=5)
    with workers as pool, bar("seeds", chosen.count) as advance:
        for reports in pool.imap_unordered(run_seeds, chunks):
            for report in reports:
                faults += report.faults
                counts += report.counts
                counts["read"] += report.reads
                counts["step of a listen"] += report.steps_heard
                counts["answer of the oracle"] += report.times
                if report.violation:
                    violations.append(f"{report.violation}\n  again: {report.command}")
                advance()
    note = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    goal = f"0 in {chosen.count} seeds x {OPERATIONS} operations"
    return answer(
        "seeded simulation of persist, Storage and oracle", goal, violations, dict(faults), note
    )


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
