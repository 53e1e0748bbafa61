"""C5: views against their definition at every time, 500 generated queries x 100 ticks by default.

Generated queries over generated histories (inserts, deletes, updates, several times a tick),
against the plain-Python meaning of the query at every time. The ticks are those of a task; of every
fifth set of views each tick is cut over three, as if it were large. Every operator that
`support.view.coverage` names has to be among the queries: what was not met was not proved. While
one of them is missing there are more queries, up to twice as many.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, bar, options
from support.view.coverage import OPERATORS
from support.view.generated import Outcome, run

TICKS, VIEWS, TASKS = 100, 25, 3


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 500, "generated queries")
    done = Outcome()
    asked = 0
    with bar("queries", chosen.count) as advance:
        while asked < chosen.count or (missing(done) and asked < 2 * chosen.count):
            count = min(VIEWS, chosen.count - asked) if asked < chosen.count else VIEWS
            with tempfile.TemporaryDirectory() as folder:
                tasks = TASKS if asked // VIEWS % 5 == 0 else 0
                done += run(Path(folder), chosen.seed * 1_000_000 + asked, count, TICKS, tasks)
            asked += count
            advance(count)
    violations = list(done.wrong)
    violations += [f"no query had {name}" for name in missing(done)]
    seldom = ", ".join(f"{name} {n}" for name, n in reversed(done.operators.most_common()))
    print(f"queries by operator: {seldom}")
    note = f"{done.compared} answers compared, {done.filled} with rows, {done.failed} errors"
    goal = f"0 in {asked} queries x {TICKS} ticks"
    return answer("views at every time", goal, violations, {"answers": done.compared}, note)


def missing(done: Outcome) -> list[str]:
    """The operators that no query had so far."""
    return [name for name in OPERATORS if not done.operators[name]]


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
