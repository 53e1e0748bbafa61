"""C7 over Kafka and PostgreSQL: 2,000 writes to each, each followed by a CONSISTENT read.

A read is stale when it lacks what upstream had acknowledged before it was sent. After every fifth
pair both are written, and a view that joins them is read.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, options
from support.ingest.upstream_recency import count_stale
from support.neighbour.upstreams import both_upstreams


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 2000, "trials of each")
    with both_upstreams() as (upstream, kafka):
        stale = asyncio.run(count_stale(upstream, kafka, chosen.count))
    violations = [f"{count} stale over {kind}" for kind, count in stale.items() if count]
    trials = {
        "trials over PostgreSQL": chosen.count,
        "trials over Kafka": chosen.count,
        "trials over a join": chosen.count // 5,
    }
    return answer("CONSISTENT reads over Kafka and PostgreSQL", "0 stale", violations, trials)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
