"""C6 over Kafka and PostgreSQL: money moves in transactions upstream; read at 10,000 times.

Between two tables of PostgreSQL, and between accounts of a topic: no read, now or in the past, has
another total than that which was there at the beginning (`support.ingest.upstream_money`).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, options
from support.ingest.upstream_money import MoneyWriters, read_totals
from support.neighbour.upstreams import both_upstreams


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 10_000, "times")
    with both_upstreams() as (upstream, kafka):
        writers = MoneyWriters(upstream, kafka, chosen.seed)
        writers.start()
        try:
            found = asyncio.run(read_totals(writers, chosen.count))
        finally:
            writers.close()
    moved = {f"transactions in {name}": n for name, n in writers.transactions.items()}
    note = f"{found.reads} reads at {len(found.times)} times"
    goal = f"0 wrong totals at {chosen.count} times"
    return answer("money that moves upstream", goal, found.wrong, moved, note)


if __name__ == "__main__":
    figure = main(sys.argv[1:])
    print(figure["note"])
    sys.exit(0 if figure["met"] else 1)
