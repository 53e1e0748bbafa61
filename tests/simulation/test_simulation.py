"""The simulation, in small: no law is broken, faults really happen, the same seed is the same run.

``make prove ONLY=C1`` runs 5,000 seeds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from simulation.loop import Stuck, VirtualLoop, pause
from simulation.run import Report, run_seed, run_seeds

ROOT = Path(__file__).resolve().parents[2]

SEEDS = range(40)
#: Found by longer runs: a column added while a read had to plan again; a number of a collection
#: that was to be made and became another's; a rival that died while its lease was waited for.
FOUND = (8801002300, 8801000268, 8801002027, 8801003075, 8801004725, 8801000002)
TWICE = range(20)
IN_OTHER_PROCESSES = 2
OPERATIONS = 120


@pytest.fixture(scope="module")
def reports() -> list[Report]:
    return run_seeds(SEEDS, OPERATIONS)


def test_no_seed_breaks_a_law(reports: list[Report]) -> None:
    broken = [f"{r.violation}\n  again: {r.command}" for r in reports if r.violation]
    assert not broken, "\n".join(broken)


def test_every_kind_of_fault_was_met(reports: list[Report]) -> None:
    faults: Counter[str] = sum((report.faults for report in reports), Counter())
    kinds = ("lost", "in doubt", "answer lost", "late", "delayed", "repeated", "half done")
    assert all(faults[kind] > 10 for kind in kinds), faults


def test_every_kind_of_operation_was_done(reports: list[Report]) -> None:
    counts: Counter[str] = sum((report.counts for report in reports), Counter())
    kinds = """write, seal, compare and append, atomic, transfer, allow compaction, create, evolve,
        refused: below_upper, refused: fenced, long read,
        drop, compact, acquire, downgrade, release, listen, crash, takeover, restart, reader,
        outage, clock jump, suspend, rollup, compaction, deletion of a part,
        refused: behind_failure, storage create, storage update, storage clone, storage renew,
        storage downgrade,
        storage drop, storage acquire, storage close, storage subscribe, refused: name_taken,
        refused: capability_invalid, refused: not_below_frontier, refused: read_only,
        oracle owner, oracle call, oracle pause, oracle fenced"""
    missing = [kind for kind in map(str.strip, kinds.split(",")) if not counts[kind]]
    assert not missing
    assert sum(report.reads for report in reports) > 20 * len(reports)
    assert sum(report.steps_heard for report in reports) > len(reports)
    assert sum(report.times for report in reports) > 10 * len(reports)


@pytest.mark.parametrize("seed", FOUND)
def test_seeds_that_once_broke_a_law(seed: int) -> None:
    report = run_seed(seed, 200)
    assert report.violation is None, report.violation


def test_the_same_seed_gives_the_same_trace(reports: list[Report]) -> None:
    for seed in TWICE:
        assert run_seed(seed, OPERATIONS).digest == reports[seed].digest, f"seed {seed}"
    assert len({report.digest for report in reports}) == len(reports)


@pytest.mark.parametrize("seed", range(IN_OTHER_PROCESSES))
def test_another_process_gives_the_same_trace(seed: int, reports: list[Report]) -> None:
    command = [sys.executable, "-m", "tests.simulation"]
    command += ["--seed", str(seed), "--operations", str(OPERATIONS)]
    environment = {**os.environ, "PYTHONHASHSEED": str(seed + 1)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"seed {seed} {reports[seed].digest} ")


def test_time_is_virtual_and_order_is_seeded() -> None:
    def order(seed: int) -> list[int]:
        loop, seen = VirtualLoop(Random(seed)), []

        async def one(number: int) -> None:
            for _ in range(3):
                seen.append(number)
                await pause(loop, 10.0)

        async def all_of_them() -> None:
            tasks = [loop.create_task(one(number)) for number in range(5)]
            for task in tasks:
                await task

        loop.run_until_complete(all_of_them())
        assert loop.time() == 30.0
        loop.close()
        return seen

    assert order(1) == order(1) != order(2)


def test_a_wait_that_cannot_end_is_found() -> None:
    loop = VirtualLoop(Random(0))
    never = loop.create_future()

    async def wait() -> None:
        await never

    with pytest.raises(Stuck):
        loop.run_until_complete(wait())
    never.cancel()
    loop.drain()
    loop.close()
