"""C3: power loss at every point of recorded runs, 2,000 states by default.

Everything acknowledged and everything that a reader saw is there, nothing is there in part, the
location opens without help and can be written. Of unsynced file data any part is lost, of unsynced
names any combination (strict) or any tail (ordered).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, bar, options
from support.store.history import Violation
from support.store.power_loss import PowerLoss, memory_folder

#: So many states of one recorded run; the next run begins with one of them.
STATES_PER_RUN = 500


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 2_000, "states")
    violations = []
    with memory_folder() as folder, bar("states", chosen.count) as advance:
        run = PowerLoss(folder, chosen.seed)
        try:
            for _ in run.states(chosen.count, STATES_PER_RUN):
                advance()
        except Violation as violation:
            violations.append(str(violation))
    note = f"{run.prefixes} prefixes; {run.kept} unacknowledged operations were there"
    return answer("power loss", f"0 in {chosen.count} states", violations, run.faults, note)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
