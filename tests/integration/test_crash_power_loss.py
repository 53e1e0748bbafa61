"""C3 in small: power loss at points of a run; ``tests/prove/c3_power_loss.py`` has the full number.

The last test shows that the figure can fail: a product that left out an fsync would be caught.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from support.store.disk import Change, Disk
from support.store.history import Violation
from support.store.power_loss import PowerLoss, memory_folder

STATES = 80
STATES_TO_CATCH = 300


def test_nothing_acknowledged_and_nothing_seen_is_lost_with_the_power() -> None:
    with memory_folder() as folder:
        run = PowerLoss(folder, seed=11)
        assert sum(1 for _ in run.states(STATES, per_run=STATES // 2)) == STATES
    assert run.faults["name lost"] > STATES
    assert run.faults["strict"] > 0
    assert run.faults["ordered"] > 0


@pytest.mark.parametrize("forgotten", ["fsync", "fsync_folder"])
def test_a_product_without_its_fsyncs_would_be_caught(forgotten: str) -> None:
    with memory_folder() as folder:
        run = PowerLoss(folder, seed=12, forgets=frozenset([forgotten]))
        with pytest.raises(Violation):
            sum(1 for _ in run.states(STATES_TO_CATCH, per_run=STATES_TO_CATCH))


def lost(disk: Disk, changes: list[Change], target: Path) -> set[tuple[str, bytes]]:
    """Every state that power loss was seen to leave, as files with their bytes."""
    target.mkdir(exist_ok=True)
    for change in changes:
        disk.replay(change)
    seen = set()
    for seed in range(60):
        disk.lose_power(Random(seed), target / str(seed))
        found = sorted((target / str(seed)).rglob("*"))
        files = [(path.name, path.read_bytes()) for path in found if path.is_file()]
        seen.add((",".join(name for name, _ in files), b"".join(data for _, data in files)))
    return seen


def test_what_was_not_fsynced_may_be_there_or_not(tmp_path: Path) -> None:
    changes = [Change("create", ("", "a", 1)), Change("write", (1, b"xy"))]
    seen = lost(Disk(ordered=False), changes, tmp_path)
    assert seen == {("", b""), ("a", b""), ("a", b"x"), ("a", b"x\0"), ("a", b"\0\0"), ("a", b"xy")}


def test_what_was_fsynced_is_there(tmp_path: Path) -> None:
    changes = [Change("create", ("", "a", 1)), Change("write", (1, b"xy"))]
    changes += [Change("fsync", (1,)), Change("fsync_folder", ("",)), Change("unlink", ("", "a"))]
    assert lost(Disk(ordered=False), changes[:-1], tmp_path / "1") == {("a", b"xy")}
    assert lost(Disk(ordered=False), changes, tmp_path / "2") == {("a", b"xy"), ("", b"")}


def test_only_the_strict_adversary_takes_names_out_of_order(tmp_path: Path) -> None:
    changes = [Change("create", ("", "a", 1)), Change("create", ("", "b", 2))]
    strict = {names for names, _ in lost(Disk(ordered=False), changes, tmp_path / "strict")}
    ordered = {names for names, _ in lost(Disk(ordered=True), changes, tmp_path / "ordered")}
    assert strict == {"", "a", "b", "a,b"}
    assert ordered == {"", "a", "a,b"}
