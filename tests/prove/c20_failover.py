"""C20: the server that writes is killed 50 times, and a standby takes over.

The clients of C7 append to lists and read them, alone and in transactions over two tables, and
reconnect to whoever answers; others read through a read-only server with strict isolation
(`support.kill.failovers`). C7's judge looks at the whole history; and no client waits longer than
ten seconds. With ``--store s3`` the location is in an S3 server and its log in PostgreSQL, where a
lease decides; otherwise it is a folder, where the operating system does.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from noonmark.clock import SYSTEM
from support.house.proving import answer
from support.kill.failovers import fail_over, pair
from support.neighbour.servers import server_folder, start_postgres, start_s3


def main(argv: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1, help="the seed of every generator")
    parser.add_argument("--count", type=int, default=50, help="failovers")
    parser.add_argument("--store", choices=("folder", "s3"), default="folder")
    chosen = parser.parse_args(list(argv))
    with _location(chosen.store) as options:
        wrong, done, waits_s = asyncio.run(_run(options, chosen.count, chosen.seed))
    halfway = statistics.median(waits_s) if waits_s else 0.0
    note = (
        f"{chosen.store}: clients were back after {halfway:.1f} s (median), "
        f"{max(waits_s, default=0.0):.1f} s at most"
    )
    print(note)
    goal = f"0 in {chosen.count} failovers, clients back within 10 s"
    return answer("failover", goal, wrong, done, note)


async def _run(
    options: tuple[str, ...], count: int, seed: int
) -> tuple[list[str], Counter[str], list[float]]:
    async with pair(*options) as servers:
        wrong, done = await fail_over(servers, count, seed)
        return wrong, done, [each for each in servers.waits_s if each > 0.2]


@contextmanager
def _location(store: str) -> Iterator[tuple[str, ...]]:
    if store == "folder":
        with tempfile.TemporaryDirectory() as folder:
            yield ("--data", folder)
        return
    name = SYSTEM.fresh_id()
    with (
        server_folder("s3") as first,
        start_s3(first) as s3,
        server_folder("pg") as second,
        start_postgres(second) as postgres,
    ):
        yield ("--data", s3.url(name), "--consensus", postgres.consensus_url(name))


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
