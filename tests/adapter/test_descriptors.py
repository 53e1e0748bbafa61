"""A database that is closed leaves no descriptor open, whatever it had open."""

from __future__ import annotations

import gc
import os
import threading
from collections import Counter
from pathlib import Path

import pytest

import noonmark

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def descriptors() -> Counter[str]:
    """How many there are of each kind; those of files are told apart."""
    gc.collect()  # PySpark's connections are those of threads
    found: Counter[str] = Counter()
    for each in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(each)
        except FileNotFoundError:
            continue  # that of the listing itself
        found[target if target.startswith("/") else target.partition(":")[0]] += 1
    return found


def live(folder: Path, files: Path) -> None:
    with noonmark.open(str(folder)) as database:
        database.execute("create table t (k int, v int)")
        database.execute("insert into t values (1, 2), (3, 4)")
        database.execute(f"create source s (a int) from files '{files}' format csv")
        database.execute("create materialized view w as select k, sum(v) from t group by k")
        assert database.sql("select count(*) from s, w").rows() == [(2,)]


def test_what_was_opened_is_closed(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.csv").write_text("1\n")
    live(tmp_path / "warm", files)  # what a process has once
    before = descriptors()
    for turn in range(3):
        live(tmp_path / f"location{turn}", files)
    # Executors of this process keep some locations open (`persist.task`); nothing else is left,
    # once the threads that were told to end have ended.
    for _ in range(100):
        more = descriptors() - before
        places = {name for name in more if str(tmp_path) in name}
        rest = more.total() - sum(more[name] for name in places)
        if rest <= 2 and not any("/oracle" in name for name in places):
            return
        threading.Event().wait(0.1)
    raise AssertionError(f"these are left: {more}")
