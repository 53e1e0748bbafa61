"""C10: bugs planted in a copy of the product, each found by the tests that are named for it.

One bug in each rewrite rule, and in kernels, in the digest of an arrangement, in bindings, holds, a
sink's resumption and the registration of a read (`support.house.planted_bugs`). The same tests pass
over the source as it is, or nothing is shown.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.planted_bugs import BUGS, passes, plant
from support.house.proving import bar


def main(argv: Sequence[str]) -> dict[str, Any]:
    del argv  # there is nothing random about it
    wrong = [tests for tests in dict.fromkeys(bug.tests for bug in BUGS) if not passes(tests)]
    survived = []
    with bar("bugs", len(BUGS)) as advance:
        for bug in BUGS:
            with tempfile.TemporaryDirectory() as folder:
                if passes(bug.tests, plant(bug, Path(folder))):
                    survived.append(bug.name)
            advance(1)
    caught = len(BUGS) - len(survived)
    for name in survived:
        print(f"not found: {name}")
    for tests in wrong:
        print(f"fails without a bug: {' '.join(tests)}")
    print(f"{caught} of {len(BUGS)} planted bugs were found")
    return {
        "title": "planted bugs that are found",
        "value": caught,
        "unit": "bugs",
        "goal": f"{len(BUGS)} of {len(BUGS)}",
        "met": caught == len(BUGS) and not wrong,
        "note": f"{len(BUGS)} bugs; {len(wrong)} of the tests fail without a bug",
    }


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
