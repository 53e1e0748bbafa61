"""C6: internal consistency: bank transfers under kill -9; every published answer is of one time.

The views and what must hold of them are in `support.bank`. By default 3,000 transfers and 10 kills.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.bank import Bank
from support.proving import answer, options

KILLS = 10


def main(argv: Sequence[str], kills: int = KILLS) -> dict[str, Any]:
    chosen = options(argv, 3000, "transfers")
    with tempfile.TemporaryDirectory() as folder:
        bank = Bank(Path(folder), chosen.seed, chosen.count, kills)
        bank.run()
    note = ", ".join(f"{count} {kind}" for kind, count in sorted(bank.counts.items()))
    faults = {"kill -9": bank.counts["kill -9"]}
    goal = f"0 wrong of all outputs of {chosen.count} transfers"
    return answer("internal consistency", goal, bank.violations, faults, note)


if __name__ == "__main__":
    figure = main(sys.argv[1:])
    print(figure["note"])
    sys.exit(0 if figure["met"] else 1)
