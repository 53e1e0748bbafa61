"""C7: strict serializability through pgwire while the process is killed, 300,000 operations.

Clients append to lists and read them, alone and in transactions over two tables, while the server
is killed and started again. Two opinions judge: times (every read is the fold of the writes at or
before its time, times respect real time) and dependencies alone (a cycle is a violation). Planted
bugs that only a kill shows must be found; and of 2,000 consistent reads of files and generators
none is stale.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, bar, options
from support.ingest.recency import count_stale
from support.strict.mutants import KILLED
from support.strict.run import run_killed

#: Operations of one run on one folder; then a new one begins.
RUN = 10_000
ERA = 2_500
OPERATIONS_PER_TRIAL = 150
#: A bug that only a kill shows is looked for in so many operations.
HUNTED = 1_000


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 300_000, "operations")
    violations: list[str] = []
    faults: Counter[str] = Counter()
    with bar("operations", chosen.count) as advance:
        for start in range(0, chosen.count, RUN):
            count = min(RUN, chosen.count - start)
            found, done = _run(chosen.seed + start, count)
            violations += [f"seed {chosen.seed + start}: {each}" for each in found]
            faults += done
            advance(count)
    for mutant in sorted(KILLED):
        found, done = _run(chosen.seed, HUNTED, mutant)
        faults["mutants"] += 1
        if not found:
            violations.append(f"nobody saw the planted bug: {mutant}")
    trials = max(50, chosen.count // OPERATIONS_PER_TRIAL)
    with tempfile.TemporaryDirectory() as folder:
        stale = asyncio.run(count_stale(Path(folder), trials, consistent=True, seed=chosen.seed))
    faults["recency trials"] = trials
    violations += [f"{stale} of {trials} consistent reads were stale"] if stale else []
    return answer("strict serializability", f"0 in {chosen.count} operations", violations, faults)


def _run(seed: int, count: int, mutant: str | None = None) -> tuple[list[str], Counter[str]]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "data"
        return asyncio.run(run_killed(place, count, seed, era=ERA, kills=2, mutant=mutant))


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
