"""C12 at the other end: sinks share a progress topic, and one is killed inside of a transaction.

Two servers with a sink each, and one server with two: whatever one leaves open, the topic of every
sink has every change once (`support.sink.sinks_beside`).
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, options
from support.ingest.killed_ingestion import kill_often
from support.neighbour.upstreams import one_kafka
from support.sink.sinks_beside import SinksBeside

ROUNDS = 20
#: Locations, and sinks of each.
KINDS = ((2, 1), (1, 2))


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, ROUNDS, "rounds, with one to three kills each")
    violations: list[str] = []
    faults: Counter[str] = Counter()
    transfers = messages = 0
    with tempfile.TemporaryDirectory() as folder, one_kafka() as kafka:
        for at, (locations, sinks) in enumerate(KINDS):
            run = SinksBeside(Path(folder) / str(at), kafka, chosen.seed, locations, sinks)
            count = (chosen.count + 1 - at) // len(KINDS)
            violations += kill_often(run, count, chosen.seed)
            faults += run.faults
            transfers += sum(bank.transfers for bank in run.banks)
            messages += sum(topic.messages for topic in run.topics)
    note = f"{transfers} transfers, {messages} messages"
    goal = f"0 in {chosen.count} rounds"
    return answer("Kafka sinks on one progress topic: no duplicate, no gap", goal, violations,
                  faults, note)  # fmt: skip


if __name__ == "__main__":
    figure = main(sys.argv[1:])
    print(figure["note"])
    sys.exit(0 if figure["met"] else 1)
