"""A name that is used again after DROP is another collection: nobody mixes up the two."""

from __future__ import annotations

import asyncio

import pytest

from noonmark.adapter.database import Database
from noonmark.errors import NoonmarkError, UnknownCollection
from support.serve.reading import connect, with_database


@with_database
async def test_a_reader_of_the_old_one_never_sees_the_new_one(opened: Database) -> None:
    client, follower, reader = [await connect(opened) for _ in range(3)]
    await client.ask("create table t (a int)")
    await client.ask("insert into t values (1)")
    before = (await client.ask("select mz_now()"))[0][0]
    number = opened.client.state.names["t"]
    followed = (await follower.stream("subscribe t")).chunks.__aiter__()
    assert [(row[1], row[2]) for row in await anext(followed)] == [(1, 1)]
    await reader.ask("begin")
    assert await reader.ask("select * from t") == [(1,)]

    await client.ask("drop table t")
    await client.ask("create table t (a int, b text)")
    await client.ask("insert into t values (2, 'two')")

    assert opened.client.state.names["t"] != number
    assert await client.ask("select * from t") == [(2, "two")]
    with pytest.raises(NoonmarkError, match="earliest readable time"):
        await client.ask(f"select * from t as of {before}")
    with pytest.raises(NoonmarkError, match="cannot be read at the time of this transaction"):
        await reader.ask("select * from t")
    with pytest.raises(UnknownCollection, match='relation "t" was dropped'):
        await asyncio.wait_for(anext(followed), 10)


@pytest.mark.parametrize("query", ["select * from t", "select a, count(*) from t group by a"])
def test_so_is_one_that_a_rename_has_left(query: str) -> None:
    """Also before its first rows are asked for."""

    @with_database
    async def run(opened: Database) -> None:
        client, follower = [await connect(opened) for _ in range(2)]
        await client.ask("create table t (a int)")
        await client.ask("insert into t values (1)")
        followed = (await follower.stream(f"subscribe ({query})")).chunks.__aiter__()
        await client.ask("alter table t rename to u")
        await client.ask("create table t (a int)")
        await client.ask("insert into t values (3)")
        seen = []
        for value in (1, 2):
            seen += [row[2] for row in await asyncio.wait_for(anext(followed), 10)]
            await client.ask(f"insert into u values ({value + 1})")
        assert seen == [1, 2]

    run()
