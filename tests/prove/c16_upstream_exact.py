"""C16: 1,000,000 transactions upstream, judged at 1,000 bindings and more.

Eight writers on one PostgreSQL: commits that wait for the disk and commits that do not, savepoints,
large and empty transactions, TRUNCATE, columns that are added. Meanwhile the server, the sessions
that read its log and the process that ingests are killed. At every binding the collections equal
upstream's tables at that position, by a history that upstream itself keeps.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, bar, options
from support.ingest.exact_run import ExactRun
from support.neighbour.servers import server_folder

TRANSACTIONS = 1_000_000
_PER_BINDING = 1000
_PER_SERVER_KILL = 40_000


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, TRANSACTIONS, "transactions upstream")
    with server_folder("exact") as folder:
        kills = max(1, chosen.count // _PER_SERVER_KILL)
        wanted = (chosen.count, chosen.count // _PER_BINDING, kills)
        run = ExactRun(folder / "run", chosen.seed, *wanted)
        try:
            with bar("transactions", chosen.count) as advance:
                violations = run.run(advance)
        finally:
            run.close()
        committed = len(run.upstream.commits)
    note = f"{committed} transactions committed, {run.judged} bindings judged"
    print(note)
    goal = f"0 differences in {chosen.count} transactions"
    return answer("Collections at every bound position of an upstream that is killed",
                  goal, violations, run.faults, note)  # fmt: skip


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
