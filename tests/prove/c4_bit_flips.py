"""C4: flips, cuts, extensions and swaps of any stored object, 10,000 by default.

Every one is noticed with an error that names the object, or the object was not needed and every
answer is what it was before.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.history import Violation
from support.mutations import Mutations
from support.power_loss import memory_folder
from support.proving import answer, bar, options

#: So many mutations of one location, then another seed builds the next.
MUTATIONS_PER_LOCATION = 2_500


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 10_000, "mutations")
    pa.set_cpu_count(1)  # the tables are small: threads cost more than they give
    violations: list[str] = []
    faults: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    with bar("mutations", chosen.count) as advance:
        for first in range(0, chosen.count, MUTATIONS_PER_LOCATION):
            with memory_folder() as folder:
                run = Mutations(folder, chosen.seed + first)
                for _ in range(min(MUTATIONS_PER_LOCATION, chosen.count - first)):
                    try:
                        run.mutate()
                    except Violation as violation:
                        violations.append(f"seed {run.seed}: {violation}")
                    advance()
            faults += run.faults
            outcomes += run.outcomes
    note = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    goal = f"0 in {chosen.count} mutations"
    return answer("bit flips and truncations", goal, violations, faults, note)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
