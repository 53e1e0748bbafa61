"""Whoever spoils a commit of tables fails alone, and the committer is back when it dies."""

from __future__ import annotations

import asyncio

import pytest

from noonmark.adapter.database import Database
from noonmark.adapter.table.lookups import Stored
from noonmark.errors import InternalError
from support.serve.reading import connect, with_database

Keys = Stored._keys_of


@with_database
async def test_a_table_without_columns_has_rows(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table e ()")
    await client.ask("insert into e default values")
    await client.ask("insert into e default values")
    assert await client.ask("select count(*) from e") == [(2,)]
    assert await client.ask("delete from e") == "DELETE 2"
    assert await client.ask("select count(*) from e") == [(0,)]


@with_database
async def test_what_cannot_be_drafted_fails_alone(opened: Database) -> None:
    client = await connect(opened)
    for name in ("good", "bad"):
        await client.ask(f"create table {name} (a int primary key)")

    async def spoiled(self: Stored, collection: object, writes: object) -> object:
        if collection.name == "bad":  # type: ignore[attr-defined]
            raise TypeError("nobody expected this")
        return await Keys(self, collection, writes)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Stored, "_keys_of", spoiled)
        good = [opened.tables.commit({"good": [((n,), 1)]}) for n in range(30)]
        bad = opened.tables.commit({"bad": [((1,), 1)]})
        both = opened.tables.commit({"good": [((99,), 1)], "bad": [((1,), 1)]})
        answers = await asyncio.gather(bad, *good, both, return_exceptions=True)
    assert [type(each) for each in answers] == [InternalError, *[int] * 30, InternalError]
    assert "nobody expected this" not in str(answers[0])
    assert await client.ask("select count(*) from good") == [(30,)]


@with_database
async def test_a_defect_of_what_is_committed_beside_fails_alone(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int)")

    def beside(*_: object) -> None:
        raise ZeroDivisionError

    answers = await asyncio.gather(
        opened.tables.commit({"t": [((1,), 1)]}),
        opened.tables.commit({"t": [((2,), 1)]}, beside=beside),
        opened.tables.commit({"t": [((3,), 1)]}),
        return_exceptions=True,
    )
    assert [type(each) for each in answers] == [int, InternalError, int]
    assert await client.ask("select a from t order by a") == [(1,), (3,)]


@with_database
async def test_a_committer_that_dies_is_back_and_nobody_waits_for_ever(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int)")
    (committer,) = [work for work in opened.supervisor.works() if work.life.kind == "committer"]
    said = 0
    for n in range(6):
        writes = [opened.tables.commit({"t": [((n,), 1)]}) for _ in range(3)]
        gathered = asyncio.gather(*writes, return_exceptions=True)
        for _ in range(n):
            await asyncio.sleep(0)
        committer.alive.cancel()  # type: ignore[union-attr]
        answers = await asyncio.wait_for(gathered, 10)
        assert all(isinstance(each, int | InternalError) for each in answers)
        said += sum(isinstance(each, int) for each in answers)
    assert opened.supervisor.deaths()["committer"] >= 3  # it may be dead already
    # What was said to be there is there; what was told to be in doubt, at most once.
    ((count,),) = await client.ask("select count(*) from t")
    assert said <= count <= 18
    assert await client.ask("insert into t values (100)") == "INSERT 0 1"
