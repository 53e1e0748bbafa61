"""Tables in files: kept while nothing changes, made anew when it does, within their limit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from noonmark.adapter.database import Database
from noonmark.adapter.peek.tables import TableFiles
from noonmark.adapter.worker import scratch
from support.serve.reading import Conversation, connect, insert, with_database

ROWS = 5_000


def files_of(opened: Database) -> dict[str, int]:
    """The files by name, and their inodes."""
    folder = opened.reads.answers.files._folder
    return {} if folder is None else {each.name: each.stat().st_ino for each in folder.iterdir()}


async def filled(opened: Database, numbers: Iterable[int] = range(ROWS)) -> Conversation:
    client = await connect(opened)
    await client.ask("create table t (n int, half int)")
    await insert(opened, "t", *((n, n // 2) for n in numbers))
    return client


@with_database
async def test_a_file_serves_until_something_changes(opened: Database) -> None:
    client = await filled(opened)
    lines = [line for (line,) in await client.ask("explain select sum(half) from t")]
    assert "Answered: columns" in lines
    total = sum(n // 2 for n in range(ROWS))
    assert await client.ask("select sum(half) from t") == [(total,)]
    first = files_of(opened)
    assert len(first) == 1
    assert await client.ask("select max(half) from t") == [((ROWS - 1) // 2,)]
    assert await client.ask("select count(*) from t where half = 7") == [(2,)]
    assert files_of(opened) == first, "the same columns, and nothing changed"
    await client.ask("insert into t values (-1, -100)")
    assert await client.ask("select sum(half) from t") == [(total - 100,)]
    assert await client.ask("delete from t where n < 10") == "DELETE 11"
    assert await client.ask("select count(*), min(half) from t") == [(ROWS - 10, 5)]
    assert len(files_of(opened)) == 1, "what is old is gone"


@with_database
async def test_an_older_time_has_its_own_rows(opened: Database) -> None:
    client = await filled(opened)
    await client.ask("select sum(half) from t")
    ((before,),) = await client.ask("select mz_now()")
    await client.ask("delete from t where n >= 3000")
    assert await client.ask("select count(*) from t") == [(3000,)]
    assert await client.ask(f"select count(*) from t as of {before}") == [(ROWS,)]
    assert await client.ask("select count(*) from t") == [(3000,)]


@with_database
async def test_files_stay_within_their_limit(opened: Database) -> None:
    client = await filled(opened)
    opened.reads.answers.files = TableFiles(opened.reads.gatherer, bytes_max=100_000)
    for sql in ("select sum(n) from t", "select sum(half) from t", "select sum(n + half) from t"):
        await client.ask(sql)
    sizes = sum(each.bytes for each in opened.reads.answers.files._files.values())
    assert 0 < sizes <= 100_000


@with_database
async def test_many_at_once_have_one_file(opened: Database) -> None:
    client = await filled(opened)
    others = [await connect(opened) for _ in range(6)]
    answers = await asyncio.gather(*(each.ask("select sum(n) from t") for each in others))
    assert answers == [[(sum(range(ROWS)),)]] * 6
    assert len(files_of(opened)) == 1
    del client


def test_folders_of_processes_that_are_gone_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    gone = tmp_path / "noonmark-scratch-99999999-abc"
    mine = tmp_path / f"noonmark-scratch-{os.getpid()}-abc"
    other = tmp_path / "something-else"
    for each in (gone, mine, other):
        each.mkdir()
    made = scratch.scratch_folder()
    assert made.parent == tmp_path
    assert not gone.exists()
    assert mine.exists()
    assert other.exists()
