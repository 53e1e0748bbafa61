"""random, setseed, gen_random_uuid and pg_sleep: for each row, and never in what is kept."""

from __future__ import annotations

import asyncio

import pytest

from noonmark.errors import InvalidArgument, QueryCanceled, Unsupported
from support.serve.reading import Conversation, connect, database


async def chance(client: Conversation) -> None:
    assert await client.ask("select count(distinct random()) from generate_series(1, 200)") == [
        (200,)
    ]
    await client.ask("select setseed(0.5)")
    first = await client.ask("select random(), random()")
    await client.ask("select setseed(0.5)")
    assert await client.ask("select random(), random()") == first
    assert first[0][0] != first[0][1]
    with pytest.raises(InvalidArgument, match="out of allowed range"):
        await client.ask("select setseed(2)")
    # Equal rows have a chance each.
    few = (
        "select count(*) from (select 1 from generate_series(1, 400)) as x(a) where random() < 0.5"
    )
    assert 100 < (await client.ask(few))[0][0] < 300


async def identifiers(client: Conversation) -> None:
    await client.ask("create table u (id uuid primary key default gen_random_uuid(), x int)")
    await client.ask("insert into u (x) select 1 from generate_series(1, 50)")
    found = await client.ask(
        "select count(distinct id), bool_and(id::text ~ '-4...-[89ab]') from u"
    )
    assert found == [(50, True)]
    for text in (
        "create view v as select random()",
        "create materialized view v as select 1 from u where random() < 1",
    ):
        with pytest.raises(Unsupported, match="function random"):
            await client.ask(text)


async def waiting(client: Conversation, other: Conversation) -> None:
    begun = asyncio.get_running_loop().time()
    asleep = asyncio.ensure_future(
        client.ask("select pg_sleep(0.2), n from generate_series(1, 2) as n")
    )
    await asyncio.sleep(0)
    assert await other.ask("select 1") == [(1,)], "others are not kept waiting"
    assert not asleep.done()
    assert await asleep == [("", 1), ("", 2)]
    assert asyncio.get_running_loop().time() - begun >= 0.4
    await client.ask("set statement_timeout = 100")
    with pytest.raises(QueryCanceled):
        await client.ask("select pg_sleep_for('1 hour')")


def test_chance_and_waiting() -> None:
    async def main() -> None:
        async with asyncio.timeout(60), database("memory:chance") as opened:
            client = await connect(opened)
            await chance(client)
            await identifiers(client)
            await waiting(client, await connect(opened))

    asyncio.run(main())
