"""C12 with Kafka and PostgreSQL: fifty kills while both are written to.

A process ingests two tables that money moves between, a keyed table, and a topic of balances, and
is killed with kill -9 fifty times (`support.ingest.upstream_kills`): in the end the contents are
those of upstream, at every time in between the totals are right, and every split that was read is
counted: none begins below what was durable when its process started.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, options
from support.ingest.killed_ingestion import kill_often
from support.ingest.upstream_kills import UpstreamKills
from support.neighbour.upstreams import both_upstreams

KILLS = 50


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, KILLS, "kills")
    with tempfile.TemporaryDirectory() as folder, both_upstreams() as (upstream, kafka):
        run = UpstreamKills(Path(folder) / "run", chosen.seed, upstream=upstream, kafka=kafka)
        try:
            violations = kill_often(run, chosen.count, chosen.seed)
        finally:
            run.close()
    note = f"{run.splits} splits read, totals right at {run.times} times"
    goal = f"0 in {chosen.count} kills"
    return answer("Kafka and PostgreSQL: nothing lost, nothing twice, nothing read again",
                  goal, violations, run.faults, note)  # fmt: skip


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
