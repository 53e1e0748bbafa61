"""Tables in files: kept while nothing changes, made anew when it does, within their limit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pytest

from noonmark.adapter.database import Database
from noonmark.adapter.peek import columns, tables
from noonmark.adapter.peek.tables import TableFiles
from noonmark.adapter.worker import scratch
from noonmark.errors import DivisionByZero
from noonmark.persist.part.run import DIFF
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


def tables_of(*diffs: list[int]) -> list[pa.Table]:
    """Tables of rows that are there so often, one table for each list."""
    starts = [0, *accumulate(map(len, diffs))]
    return [
        pa.table({"n": pa.array(range(start, start + len(each)), pa.int64()), DIFF: each})
        for start, each in zip(starts, diffs, strict=False)
    ]


@pytest.mark.parametrize(
    "diffs",
    [[], [[]], [[1, 1]], [[1, 1, 1], [1, 1, 1, 1]], [[1] * 5, [1, 2], [1]], [[2], [1] * 7, [3, 3]]],
)
def test_a_file_has_the_rows_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, diffs: list[list[int]]
) -> None:
    monkeypatch.setattr(tables, "BATCH_ROWS", 3)
    schema = pa.schema([("n", pa.int64())])
    writer = tables._Writer(tmp_path / "file", schema)
    for table in tables_of(*diffs):
        writer.add(table)
    writer.end()
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    with pa.memory_map(str(tmp_path / "file")) as file:
        reader = pa.ipc.open_file(file)
        batches = [reader.get_batch(at) for at in range(reader.num_record_batches)]
    assert batches, "at least one, if only an empty one"
    assert all(batch.num_rows <= 3 for batch in batches)
    wanted = [each for some in diffs for each in some]
    has_diff = DIFF in batches[0].schema.names
    assert has_diff == any(each != 1 for each in wanted)
    found = [n for batch in batches for n in batch.column("n").to_pylist()]
    assert found == list(range(len(wanted)))
    if has_diff:
        assert [n for batch in batches for n in batch.column(DIFF).to_pylist()] == wanted


@with_database
async def test_large_tables_are_taken_in_pieces(opened: Database) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(columns, "PIECE_ROWS", 700)
        patched.setattr(columns, "_PIECE_ROWS_MIN", 1)
        patched.setattr(tables, "BATCH_ROWS", 1_500)
        client = await filled(opened)
        total = sum(n // 2 for n in range(ROWS))
        sums = "select n % 3, sum(half), count(distinct half) from t group by 1 order by 1"
        shown = [line for (line,) in await client.ask(f"explain {sums}")]
        assert "Answered: columns" in shown
        rows = [range(rest, ROWS, 3) for rest in range(3)]
        assert await client.ask(sums) == [
            (at, sum(n // 2 for n in each), len({n // 2 for n in each}))
            for at, each in enumerate(rows)
        ]
        assert await client.ask("select sum(half) from t") == [(total,)]
        await client.ask("insert into t values (1, 0), (-1, -100)")
        assert await client.ask("select sum(half), count(*) from t where n < 2") == [(-100, 4)]
        found = await client.ask("select half from t where n % 2 = 0")
        assert sorted(found) == sorted((n // 2,) for n in range(0, ROWS, 2))
        fails = client.ask("select 1 / (half - 2400) from t where n > 4000")
        with pytest.raises(DivisionByZero):
            await fails
        assert await client.ask("select n from t order by half desc, n limit 2") == [
            (ROWS - 2,),
            (ROWS - 1,),
        ]


@with_database
async def test_counts_are_those_of_the_time(opened: Database) -> None:
    client = await filled(opened)
    shown = [line for (line,) in await client.ask("explain select count(*) from t")]
    assert "Answered: statistics" in shown
    ((before,),) = await client.ask("select mz_now()")
    await client.ask("delete from t where n >= 3000")
    await client.ask("insert into t values (1, 0), (1, 0)")
    assert await client.ask("select count(*), count(*) + 1 as m from t") == [(3002, 3003)]
    assert await client.ask(f"select count(*) from t as of {before}") == [(ROWS,)]
    assert await client.ask("select count(half) from t") == [(3002,)]
    assert await client.ask("select count(*) from t limit 0") == []
    await client.ask("begin")
    await client.ask("insert into t values (7, null)")
    assert await client.ask("select count(*), count(half) from t") == [(3003, 3002)]
    await client.ask("rollback")
    assert await client.ask("select count(*) from t") == [(3002,)]
