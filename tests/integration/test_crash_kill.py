"""C2 in small: kill -9 of a writer under load; ``tests/prove/c2_kill.py`` has the full number."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.kill.kills import Kills
from support.store.history import NAMES, Ledger, Step, Violation

KILLS = 5


@pytest.mark.slow
def test_a_killed_writer_loses_nothing_and_shows_nothing_half_done(tmp_path: Path) -> None:
    run = Kills(str(tmp_path / "data"), seed=7)
    run.start_readers()
    try:
        for _ in range(KILLS):
            run.round()
        run.finish()
    finally:
        run.stop_readers()
    assert sum(run.faults.values()) == KILLS + 2
    assert run.ledger.counts["reads"] > 100
    assert run.ledger.counts["acknowledged"] > 50


def told(lines: list[str]) -> Ledger:
    ledger = Ledger(seed=1)
    for line in lines:
        ledger.hear(line)
    return ledger


def after(count: int) -> dict[str, int]:
    """What is read when the first `count` operations are there."""
    steps = [Step(1, number) for number in range(1, count + 1)]
    return {name: sum(step.digest(name) for step in steps) % 2**64 for name in NAMES}


def test_the_ledger_accepts_every_prefix_that_has_what_was_acknowledged() -> None:
    lines = [f"s {number} 0" for number in range(1, 9)] + ["a 1", "a 2", "a 3"]
    for count in range(3, 9):
        assert told(lines).settle(after(count)) >= 3


def test_the_ledger_refuses_what_is_lost_what_is_twice_and_what_is_half() -> None:
    lines = [f"s {number} 0" for number in range(1, 9)] + ["a 1", "a 2", "a 3", "a 4"]
    steps = [Step(1, number) for number in range(1, 9)]
    lost = next(step.number for step in steps if any(step.digest(name) for name in NAMES)) - 1
    atomic = next(step for step in steps if step.kind == "atomic")
    twice = {name: (total + steps[lost].digest(name)) % 2**64 for name, total in after(8).items()}
    half = {**after(atomic.number - 1), NAMES[0]: after(atomic.number)[NAMES[0]]}
    for wrong in (after(lost), twice, half):
        with pytest.raises(Violation):
            told(lines).settle(wrong)


def test_the_ledger_remembers_frontiers_and_answers() -> None:
    ledger = told(["s 1 0", "a 1"])
    ledger.settle(after(1))
    ledger.note_frontiers(NAMES[0], 3, 7)
    with pytest.raises(Violation):
        ledger.note_frontiers(NAMES[0], 2, 7)
    ledger.note_read(NAMES[0], 1, after(1)[NAMES[0]])
    ledger.verify_reads()
    ledger.note_read(NAMES[0], 1, after(1)[NAMES[0]] ^ 1)
    with pytest.raises(Violation):
        ledger.verify_reads()
