"""C12 at the other end: a server that writes to Kafka is killed 50 times while money moves.

What a reader of committed records sees is every change once, and after each transaction the table
at one time (`support.sink.topic`).
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
from support.neighbour.upstreams import one_kafka
from support.sink.kills import SinkKills

KILLS = 50


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, KILLS, "kills")
    with tempfile.TemporaryDirectory() as folder, one_kafka() as kafka:
        run = SinkKills(Path(folder) / "data", kafka, chosen.seed)
        violations = kill_often(run, chosen.count, chosen.seed)
    topic = run.topic
    note = f"{run.bank.transfers} transfers, {topic.messages} messages at {topic.times} times"
    goal = f"0 in {chosen.count} kills"
    return answer("Kafka sink: no duplicate, no gap, consistent groups", goal, violations,
                  run.faults, note)  # fmt: skip


if __name__ == "__main__":
    figure = main(sys.argv[1:])
    print(figure["note"])
    sys.exit(0 if figure["met"] else 1)
