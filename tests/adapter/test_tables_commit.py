"""Tables: group commit, keys, and no lost update."""

from __future__ import annotations

import asyncio

import pytest

from noonmark.adapter.database import Database
from noonmark.errors import (
    InvalidValue,
    SchemaMismatch,
    SerializationFailure,
    Stopped,
    UndefinedTable,
    UniqueViolation,
)
from support.serve.reading import connect, database, with_database


@with_database
async def test_what_waits_together_commits_together(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int)")
    before = opened.tables.commits
    writes = [opened.tables.commit({"t": [((n,), 1)]}) for n in range(100)]
    times = await asyncio.gather(*writes)
    assert len(set(times)) < 5
    assert opened.tables.commits - before < 5
    assert await opened.oracle.read_ts() >= max(times)
    assert len(await client.ask("select * from t")) == 100


@with_database
async def test_several_tables_are_written_at_one_time(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int)")
    await client.ask("create table u (b text)")
    time = await opened.tables.commit({"t": [((1,), 1)], "u": [(("x",), 1)]})
    assert await client.ask(f"select * from t, u as of {time}") == [(1, "x")]
    with pytest.raises(UndefinedTable):
        await opened.tables.commit({"t": [((2,), 1)], "missing": [((2,), 1)]})
    assert await client.ask("select * from t") == [(1,)]


@with_database
async def test_one_bad_row_refuses_its_own_write_alone(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int not null)")
    good = [opened.tables.commit({"t": [((n,), 1)]}) for n in range(5)]
    bad = opened.tables.commit({"t": [((6,), 1), ((None,), 1)]})
    answers = await asyncio.gather(*good, bad, return_exceptions=True)
    assert all(isinstance(each, int) for each in answers[:5])
    assert isinstance(answers[5], SchemaMismatch | InvalidValue)
    assert len(await client.ask("select * from t")) == 5


@with_database
async def test_a_key_is_there_once(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int, b text, c int, primary key (a, b))")
    commit = opened.tables.commit
    await commit({"t": [((1, "x", 1), 1)]})
    with pytest.raises(UniqueViolation) as refused:
        await commit({"t": [((1, "x", 2), 1)]})
    assert refused.value.detail == "Key (a, b)=(1, x) already exists."
    assert "t_pkey" in refused.value.message
    # Of two in one group the first wins; others beside them are not touched.
    answers = await asyncio.gather(
        commit({"t": [((2, "x", 1), 1)]}),
        commit({"t": [((2, "x", 2), 1)]}),
        commit({"t": [((2, "y", 1), 1)]}),
        return_exceptions=True,
    )
    assert [isinstance(each, UniqueViolation) for each in answers] == [False, True, False]
    # A row may be replaced, in one write and in any order of its parts.
    await commit({"t": [((1, "x", 9), 1), ((1, "x", 1), -1)]})
    with pytest.raises(UniqueViolation):
        await commit({"t": [((7, "z", 1), 1), ((7, "z", 1), 1)]})
    rows = await client.ask("select * from t order by a, b")
    assert rows == [(1, "x", 9), (2, "x", 1), (2, "y", 1)]


@with_database
async def test_what_was_read_must_still_be_true(opened: Database) -> None:
    client = await connect(opened)
    for name in ("t", "u"):
        await client.ask(f"create table {name} (a int)")
    commit = opened.tables.commit
    read_at = await commit({"t": [((1,), 1)], "u": [((1,), 1)]})
    await commit({"t": [((2,), 1)]}, read_at=read_at)
    with pytest.raises(SerializationFailure) as refused:
        await commit({"t": [((3,), 1)]}, read_at=read_at)
    assert '"t" was written after' in str(refused.value.detail)
    with pytest.raises(SerializationFailure):
        await commit({"u": [((3,), 1)]}, read_at=read_at, reads=["t"])
    await commit({"u": [((3,), 1)]}, read_at=read_at)
    # In one group: the second was computed without the first.
    now = await opened.oracle.read_ts()
    answers = await asyncio.gather(
        commit({"t": [((4,), 1)]}, read_at=now),
        commit({"t": [((5,), 1)]}, read_at=now),
        return_exceptions=True,
    )
    assert [isinstance(each, SerializationFailure) for each in answers] == [False, True]


@with_database
async def test_tables_become_complete_when_somebody_asks(opened: Database) -> None:
    client = await connect(opened)
    for name in ("t", "u"):
        await client.ask(f"create table {name} (a int)")
    time = await opened.tables.commit({"t": [((1,), 1)]})
    assert not opened.tables.complete_at(time, ["u"])
    before = opened.tables.commits
    await asyncio.gather(*(opened.tables.advance(time) for _ in range(50)))
    assert opened.tables.complete_at(time, ["t", "u"])
    assert opened.tables.commits - before <= 2
    await opened.tables.advance(time)
    assert opened.tables.commits - before <= 2


@with_database
async def test_a_time_that_is_to_come_closes_no_table(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int)")
    soon = await opened.oracle.write_ts() + 300
    waiting = asyncio.ensure_future(opened.tables.advance(soon))
    await asyncio.sleep(0.05)
    written = await opened.tables.commit({"t": [((1,), 1)]})
    assert not waiting.done()
    assert written < soon
    await waiting
    assert opened.tables.complete_at(soon, ["t"])


def test_what_is_queued_is_committed_before_the_end() -> None:
    async def go() -> None:
        async with database() as opened:
            client = await connect(opened)
            await client.ask("create table t (a int)")
            writes = [
                asyncio.ensure_future(opened.tables.commit({"t": [((n,), 1)]})) for n in range(20)
            ]
            await asyncio.sleep(0)
            await opened.tables.stop()
            assert all(isinstance(time, int) for time in await asyncio.gather(*writes))
            with pytest.raises(Stopped):
                await opened.tables.commit({"t": [((1,), 1)]})

    asyncio.run(go())
