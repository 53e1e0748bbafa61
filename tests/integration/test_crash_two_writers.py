"""C8 in small: two writers on one location; ``tests/prove/c8_two_writers.py`` has the full number.

The last test shows that the figure can fail: without the check of epochs it would.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from noonmark.errors import Fenced
from noonmark.persist.log import machine
from support.kill.clocks_apart import run_in_memory
from support.kill.two_writers import WORKLOADS, Book, run_processes
from support.store.history import Violation

OPERATIONS = 80
TAKEOVERS = ("takeover by id", "takeover from the dead", "takeover from the stopped")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["files, open and close", "files, killed", "files, paused", "leased, reentrance"]
)
def test_the_loser_changes_nothing_and_the_winner_loses_nothing(name: str, tmp_path: Path) -> None:
    book = Book()
    for _ in run_processes(name, tmp_path / "data", 3, OPERATIONS, book):
        pass
    assert name in WORKLOADS
    if name.endswith("open and close"):
        assert book.faults["LockHeld"] > 0
    else:
        assert sum(book.faults[takeover] for takeover in TAKEOVERS) > 0


def test_clocks_that_disagree_pass_the_lock_on_and_nothing_is_lost() -> None:
    book = Book()
    for _ in run_in_memory(3, OPERATIONS, book):
        pass
    assert book.faults["refused Fenced"] > 0
    assert book.faults["answer lost"] > 0
    assert book.faults["LockHeld"] > 0


def test_a_product_that_does_not_look_at_epochs_would_be_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = machine.check_epoch

    def blind(state: machine.State, entry: machine.c.Entry) -> None:
        try:
            real(state, entry)
        except Fenced:
            if isinstance(entry.transactions[0][0], machine.c.TakeLock):
                raise

    monkeypatch.setattr(machine, "check_epoch", blind)
    with pytest.raises(Violation):
        sum(1 for _ in run_in_memory(3, 10 * OPERATIONS, Book()))
