"""C5: views whose maintainer is killed (-9) while it hydrates and while it ticks.

Locations of their own, four kills each, at points that the seed chooses: while Spark works, when
all is stored but not committed, and when it is committed but not known. Then a process is left to
end, and every view is its definition at every time.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, bar, options
from support.view.kills import ViewKills

KILLS = 4


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 40, "kills")
    kills = ViewKills(chosen.seed)
    with tempfile.TemporaryDirectory() as folder, bar("kills", chosen.count) as advance:
        for at in range(0, chosen.count, KILLS):
            kills.seed = chosen.seed * 1_000 + at // KILLS
            count = min(KILLS, chosen.count - at)
            kills.run(Path(folder) / str(at), count)
            advance(count)
    note = f"{kills.compared} answers compared afterwards"
    goal = f"0 after {chosen.count} kills"
    return answer("views under kill -9", goal, kills.violations, kills.faults, note)


if __name__ == "__main__":
    figure = main(sys.argv[1:])
    print(figure["note"])
    sys.exit(0 if figure["met"] else 1)
