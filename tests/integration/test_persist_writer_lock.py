"""The write lock on local disk: who gets it, who is told who has it, and what a loser leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from noonmark import persist
from noonmark.errors import Fenced, LockHeld
from noonmark.rows.schema import Schema

SCHEMA = Schema.of(id="bigint", name="text")
ME = persist.Options(reentrance_id="me")


def test_a_second_writer_is_refused_and_told_who_writes(tmp_path: Path) -> None:
    with persist.open(tmp_path) as first:
        with pytest.raises(LockHeld) as caught:
            persist.open(tmp_path)
        lock = first.state.lock
        assert lock is not None
        assert caught.value.fields["holder"] == lock.holder
        assert str(os.getpid()) in lock.holder
        assert caught.value.detail
        assert caught.value.hint
    persist.open(tmp_path).stop()


def test_who_is_refused_leaves_nothing_open(tmp_path: Path) -> None:
    with persist.open(tmp_path):
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            with pytest.raises(LockHeld):
                persist.open(tmp_path)
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_writer_that_lost_its_lock_can_stop_also_with_holds(tmp_path: Path) -> None:
    loser = persist.open(tmp_path, options=ME)
    write, read = loser.create_or_load("c", SCHEMA)
    write.seal(5).result()
    read.listen(1)
    with persist.open(tmp_path, options=ME) as winner:
        with pytest.raises(Fenced) as caught:
            write.seal(6).result()
        assert caught.value.fields["current"] == winner.state.epoch
        assert caught.value.fields["holder"]
        loser.stop()


def test_the_end_of_a_fenced_process_says_nothing_about_who_fenced_it(tmp_path: Path) -> None:
    fenced = persist.open(tmp_path, options=ME)
    with persist.open(tmp_path, options=ME) as holder:
        fenced.stop()  # only now the file lock is free, but the holder lives
        with pytest.raises(LockHeld) as caught:
            persist.open(tmp_path)
        assert caught.value.fields["epoch"] == holder.state.epoch
        write, _ = holder.create_or_load("c", SCHEMA)
        write.seal(5).result()


def test_a_fenced_process_that_lives_on_keeps_nobody_out(tmp_path: Path) -> None:
    fenced = persist.open(tmp_path, options=ME)
    persist.open(tmp_path, options=ME).stop()
    with persist.open(tmp_path) as third:
        third.create_or_load("c", SCHEMA)
    fenced.stop()
