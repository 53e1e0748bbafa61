"""C12: bounded input reliance: what is durable is never read again from upstream.

Two parts. Histories: generated sources (partitions added, transactions, several outputs, formats
and envelopes) whose process dies at any call of the source, the engine or the store, 20,000 by
default; every guarantee of ingestion is checked in each (`support.ingest.world`). Processes: a real
process that ingests COUNTER, KEY VALUE and growing FILES, in place, is killed with kill -9 fifty
times; every split that it reads is counted (`support.ingest.kills`).
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, bar, options
from support.ingest.killed_ingestion import kill_often
from support.ingest.kills import IngestKills
from support.ingest.world import World

KILLS = 50
CHUNK = 50


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 20_000, "histories")
    violations: list[str] = []
    faults: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    first = chosen.seed * 1_000_000
    starts = range(first, first + chosen.count, CHUNK)
    # A fresh interpreter each: a fork would take the threads' locks along, and not the threads.
    pool = ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn"))
    with bar("histories", chosen.count) as advance, pool:
        work = [pool.submit(histories, at, min(CHUNK, starts.stop - at)) for at in starts]
        for done in work:
            found, crashes, counts = done.result()
            violations += found
            faults.update(crashes)
            totals.update(counts)
            advance(CHUNK)
    splits = kills(chosen.seed, min(KILLS, chosen.count), violations, faults)
    note = f"{totals['ticks']} ticks, {totals['reads']} offsets read; {splits} splits read by "
    note += "processes that were killed"
    goal = f"0 in {chosen.count} histories and {KILLS} kills"
    return answer("nothing durable is read again", goal, violations, faults, note)


def histories(first: int, count: int) -> tuple[list[str], Counter[str], Counter[str]]:
    """Runs in a process of its own: violations, crashes by kind, and what was done."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    violations: list[str] = []
    crashes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for seed in range(first, first + count):
        world = World(seed)
        try:
            world.run()
        except AssertionError as error:
            violations.append(f"seed {seed}: {error}")
        crashes.update(world.fuse.crashes)
        counts.update(ticks=world.ticks, reads=world.reads)
    return violations, crashes, counts


def kills(seed: int, count: int, violations: list[str], faults: Counter[str]) -> int:
    """How many splits were read by processes that were killed so many times."""
    with tempfile.TemporaryDirectory() as folder:
        run = IngestKills(Path(folder) / "run", seed)
        violations += kill_often(run, count, seed)
        faults.update(run.faults)
        return run.splits


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
