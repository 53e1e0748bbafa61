"""C4: flips, cuts, extensions, swaps and removals of any stored object, 10,000 by default.

Half of them are judged by reads (`support.store.mutations`): every one is noticed with an error
that names the object, or the object was not needed and every answer is what it was before. Half of
them are done to any object of a whole location, the oracle's log and the catalog among them, and
judged by `noonmark shard verify` (`support.store.damage`): every one is seen.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, bar, options
from support.store.damage import Damage
from support.store.history import Violation
from support.store.mutations import Mutations
from support.store.power_loss import memory_folder

#: So many mutations of one location, then another seed builds the next.
MUTATIONS_PER_LOCATION = 2_500
DAMAGES_PER_LOCATION = 1_000


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 10_000, "mutations")
    pa.set_cpu_count(1)  # the tables are small: threads cost more than they give
    violations: list[str] = []
    faults: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    with bar("mutations", chosen.count) as advance:
        for first in range(0, chosen.count - chosen.count // 2, MUTATIONS_PER_LOCATION):
            with memory_folder() as folder:
                run = Mutations(folder, chosen.seed + first)
                left = chosen.count - chosen.count // 2 - first
                for _ in range(min(MUTATIONS_PER_LOCATION, left)):
                    try:
                        run.mutate()
                    except Violation as violation:
                        violations.append(f"seed {run.seed}: {violation}")
                    advance()
            faults += run.faults
            outcomes += run.outcomes
        for first in range(0, chosen.count // 2, DAMAGES_PER_LOCATION):
            with memory_folder() as folder:
                whole = Damage(folder, chosen.seed + first)
                for _ in range(min(DAMAGES_PER_LOCATION, chosen.count // 2 - first)):
                    try:
                        whole.damage()
                    except Violation as violation:
                        violations.append(str(violation))
                    advance()
            faults += whole.faults
            outcomes += whole.outcomes
    note = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    goal = f"0 in {chosen.count} mutations"
    return answer("bit flips and truncations", goal, violations, faults, note)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
