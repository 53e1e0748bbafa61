"""pg_relation_size and its kin: what is stored, of a name or an oid; and bytes in words."""

from __future__ import annotations

import asyncio
import random

import psycopg
import pytest

from noonmark.adapter.system.sizes import in_words
from noonmark.errors import UndefinedTable
from support.neighbour.servers import PostgresServer
from support.serve.reading import connect, database


def test_sizes_are_those_of_what_is_stored() -> None:
    async def main() -> None:
        async with asyncio.timeout(60), database("memory:sizes") as opened:
            client = await connect(opened)
            await client.ask("create table t (a int, b text)")
            assert await client.ask("select pg_relation_size('t')") == [(0,)]
            await client.ask("insert into t select n, 'text' from generate_series(1, 1000) n")
            ((own, same, total, all_of_it),) = await client.ask(
                "select pg_table_size('public.t'), pg_relation_size('t'::regclass),"
                " pg_total_relation_size('t'), pg_database_size('noonmark')"
            )
            batches = opened.client.state.collection("t").batches
            assert own == same == total == sum(each.bytes for each in batches)
            assert all_of_it > own > 1000
            assert await client.ask("select pg_relation_size(1)") == [(None,)]
            with pytest.raises(UndefinedTable):
                await client.ask("select pg_relation_size('nothing')")

    asyncio.run(main())


def test_words_are_those_of_postgresql(postgres_server: PostgresServer) -> None:
    chance = random.Random(7)
    sizes = [chance.randrange(-(2**bits), 2**bits) for bits in range(63) for _ in range(20)]
    sizes += [
        limit * 1024**power + more
        for limit in (10, 20)
        for power in range(6)
        for more in (-1, 0, 1)
    ]
    with psycopg.connect(postgres_server.dsn) as connection:
        rows = connection.execute(
            "select pg_size_pretty(unnest(%s::bigint[]))", (sizes,)
        ).fetchall()
    assert [in_words(size) for size in sizes] == [text for (text,) in rows]
