"""C5: views against their definition at every time, 500 generated queries x 100 times by default.

Generated queries over generated histories (inserts, deletes, updates, several times a tick),
against the plain-Python meaning of the query at every time. The walks are those of a task; that
Spark's own operators give the same is shown by the tests.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.proving import answer, bar, options
from support.views_generated import run

TIMES, VIEWS = 100, 25


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 500, "generated queries")
    violations: list[str] = []
    compared = filled = failed = 0
    with bar("queries", chosen.count) as advance:
        for at in range(0, chosen.count, VIEWS):
            count = min(VIEWS, chosen.count - at)
            with tempfile.TemporaryDirectory() as folder:
                done = run(Path(folder), chosen.seed * 1_000_000 + at, count, TIMES)
            violations += done.wrong
            compared, filled = compared + done.compared, filled + done.filled
            failed += done.failed
            advance(count)
    note = f"{compared} answers compared, {filled} of them with rows, {failed} errors"
    goal = f"0 in {chosen.count} queries x {TIMES} times"
    return answer("views at every time", goal, violations, {"answers": compared}, note)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
