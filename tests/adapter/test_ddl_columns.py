"""ALTER TABLE ADD COLUMN beside everything that reads and writes the table, without Spark.

The law: a row has the columns of the table, and NULL in those that were added after it was written;
a statement sees the columns of the catalog that it was planned against; nothing else is noticed.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from noonmark.adapter.contract import CopyOut, Prepared, Rows
from noonmark.adapter.database import Database
from noonmark.adapter.statement.dml.copy import CopyFrom
from noonmark.errors import SerializationFailure, Unsupported
from support.serve.reading import Conversation, connect, with_database


async def read_table(opened: Database) -> Conversation:
    """A table that was read: it is in memory."""
    client = await connect(opened)
    await client.ask("create table t (a int primary key, b text)")
    await client.ask("insert into t values (1, 'one'), (2, 'two')")
    assert await client.ask("select * from t where a = 1") == [(1, "one")]
    assert len(await client.ask("select * from t")) == 2
    return client


@with_database
async def test_every_statement_goes_on_after_a_column_is_added(opened: Database) -> None:
    client = await read_table(opened)
    await client.ask("alter table t add column c int")
    assert await client.ask("select * from t order by a") == [(1, "one", None), (2, "two", None)]
    assert await client.ask("select c, a from t where a = 2") == [(None, 2)]
    assert await client.ask("update t set c = 5 where a = 1") == "UPDATE 1"
    assert await client.ask("insert into t values (3, 'three', 3)") == "INSERT 0 1"
    assert await client.ask("insert into t values (3, 'x') on conflict (a) do update set c = 4")
    assert await client.ask("delete from t where a = 2 returning *") == [(2, "two", None)]
    assert await client.ask("select * from t order by a") == [(1, "one", 5), (3, "three", 4)]
    await client.ask("alter table t add column d numeric")
    assert await client.ask("truncate t") == "TRUNCATE TABLE"
    assert await client.ask("select * from t") == []


async def prepared(client: Conversation, sql: str) -> Prepared:
    return await client.session.prepare(sql)


@with_database
async def test_a_prepared_statement_whose_columns_change_is_refused_before_it_acts(
    opened: Database,
) -> None:
    client, other = await read_table(opened), await connect(opened)
    star = await prepared(client, "select * from t where a = $1")
    named = await prepared(client, "select b from t where a = $1")
    insert = await prepared(client, "insert into t values ($1, 'x') returning *")
    await client.ask("prepare p as delete from t returning *")
    await client.ask("prepare q (int) as select count(*) from t where a < $1")
    await other.ask("alter table t add column c int")
    for statement, values in ((star, [1]), (insert, [9])):
        with pytest.raises(Unsupported, match="cached plan must not change result type"):
            await client.session.execute(statement, values, fixed=True)
    with pytest.raises(Unsupported, match="cached plan must not change result type"):
        await client.ask("execute p")
    assert await client.ask("execute q(100)") == [(2,)]
    outcome = await client.session.execute(named, [1], fixed=True)
    assert isinstance(outcome, Rows)
    assert [row async for chunk in outcome.chunks for row in chunk] == [("one",)]


@with_database
async def test_a_transaction_that_began_before_the_column(opened: Database) -> None:
    client, other = await read_table(opened), await connect(opened)
    await client.ask("begin")
    await client.ask("update t set b = 'uno' where a = 1")
    await client.ask("insert into t values (3, 'three')")
    await other.ask("alter table t add column c int")
    assert await client.ask("select * from t order by a") == [
        (1, "uno", None), (2, "two", None), (3, "three", None),
    ]  # fmt: skip
    await client.ask("update t set c = 7 where a = 3")
    await client.ask("commit")
    assert await other.ask("select * from t order by a") == [
        (1, "uno", None), (2, "two", None), (3, "three", 7),
    ]  # fmt: skip


@with_database
async def test_copy_cursor_and_history_over_the_change(opened: Database) -> None:
    client, other = await read_table(opened), await connect(opened)
    copy = await client.session.execute(await prepared(client, "copy t from stdin"))
    assert isinstance(copy, CopyFrom)
    await copy.write([(4, "four")])
    ((before,),) = await other.ask("select mz_now()::text::bigint")
    await other.ask("begin")
    await other.ask("declare c cursor for select * from t order by a")
    third = await connect(opened)
    await third.ask("alter table t add column c int")
    await copy.finish()
    assert await other.ask("fetch all from c") == [(1, "one"), (2, "two")]
    await other.ask("commit")
    assert (4, "four", None) in await other.ask("select * from t")
    assert await other.ask(f"select * from t where a = 1 as of {before}") == [(1, "one", None)]
    out = await client.session.execute(await prepared(client, "copy t to stdout"))
    assert isinstance(out, CopyOut)
    assert len(out.fields) == 3


@with_database
async def test_views_and_subscriptions_keep_their_columns(opened: Database) -> None:
    client, other = await read_table(opened), await connect(opened)
    await client.ask("create view v as select * from t")
    whole = await client.stream("subscribe t")
    kept = await other.stream("subscribe (select b, count(*) from t group by b)")
    rows, groups = aiter(whole.chunks), aiter(kept.chunks)
    assert len(await anext(rows)) == len(await anext(groups)) == 2
    third = await connect(opened)
    await third.ask("alter table t add column c int")
    assert await third.ask("select * from v where a = 1") == [(1, "one")]
    await third.ask("insert into t values (3, 'two', 3)")
    assert [row[2:] for row in await anext(rows)] == [(3, "two")]
    assert sorted(row[1:] for row in await anext(groups)) == [(-1, "two", 1), (1, "two", 2)]
    await third.ask("update t set c = 9 where a = 1")  # not a column of the subscriptions
    await third.ask("delete from t where a = 1")
    assert [row[1:] for row in await anext(rows)] == [(-1, 1, "one")]
    await whole.chunks.aclose()
    await kept.chunks.aclose()


@with_database
async def test_a_name_that_means_another_table_by_now_is_not_written(opened: Database) -> None:
    client, other = await read_table(opened), await connect(opened)
    await client.ask("begin")
    await client.ask("insert into t values (7, 'seven')")
    await other.ask("alter table t rename to u")
    await other.ask("create table t (a int, b text)")
    with pytest.raises(SerializationFailure):
        await client.ask("commit")
    assert await other.ask("select * from t") == []
    await client.ask("create table x (n bigint)")
    await client.ask("begin")
    await client.ask("insert into x select count(*) from u")
    await other.ask("alter table u rename to w")
    await other.ask("insert into w values (8, 'eight')")
    with pytest.raises(SerializationFailure):
        await client.ask("commit")


@with_database
async def test_a_path_that_is_reset_or_set_by_a_function_is_followed(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create schema s")
    await client.ask("create table s.t (a text)")
    await client.ask("create table t (a text)")
    await client.ask("insert into t values ('public')")
    await client.ask("insert into s.t values ('s')")
    assert await client.ask("select * from t") == [("public",)]
    await client.ask("select set_config('search_path', 's, public', false)")
    assert await client.ask("select * from t") == [("s",)]
    await client.ask("reset search_path")
    assert await client.ask("select * from t") == [("public",)]


SESSIONS, STATEMENTS, COLUMNS = 6, 60, 12


@with_database
async def test_columns_come_while_others_read_write_and_subscribe(opened: Database) -> None:
    first = await connect(opened)
    await first.ask("create table t (a int primary key, b int)")
    await first.ask("create table log (n int)")
    await first.ask("create view v as select b, count(*) as n from t group by b")
    added: list[str] = []

    def change(chance: random.Random) -> list[str]:
        a, c = chance.randrange(12), chance.choice(["b", *added])
        return chance.choice(
            [
                [f"insert into t (a, {c}) values ({a}, 1) on conflict (a) do update set {c} = 2"],
                [f"update t set {c} = coalesce({c}, 0) + 1 where a >= {a}"],
                [f"delete from t where a = {a}"],
                [f"select * from t where a = {a}", "select * from t"],
                ["select * from v", "select sum(n) from v"],
                [
                    "begin",
                    "select * from t",
                    f"update t set {c} = 5 where a = {a}",
                    f"insert into t (a) values ({1000 + chance.randrange(10**6)})",
                    "commit",
                ],
                ["begin", "insert into log select count(*) from t", "commit"],
            ]
        )

    async def session(seed: int) -> None:
        chance, client = random.Random(seed), await connect(opened)
        for _ in range(STATEMENTS):
            for sql in change(chance):
                try:
                    await client.ask(sql)
                except SerializationFailure:
                    if client.session.status != "idle":
                        await client.ask("rollback")
                    break

    async def adding() -> None:
        client = await connect(opened)
        for n in range(COLUMNS):
            await asyncio.sleep(0.02)
            await client.ask(f"alter table t add column c{n} int")
            added.append(f"c{n}")

    stream = await (await connect(opened)).stream("subscribe t")
    told: dict[Any, int] = {}

    async def following() -> None:
        async for chunk in stream.chunks:
            for _, diff, *row in chunk:
                told[tuple(row)] = told.get(tuple(row), 0) + diff

    follower = asyncio.ensure_future(following())
    await asyncio.gather(*(session(seed) for seed in range(SESSIONS)), adding())
    final = await first.ask("select * from t")
    assert all(len(row) == 2 + COLUMNS for row in final)
    assert len({row[0] for row in final}) == len(final), "a key is there once"
    read = opened.client.create_or_load("t")[1]
    last = (read.upper.only() or 0) - 1
    stored = (await asyncio.wrap_future(read.snapshot(last))).counts()
    assert stored == dict.fromkeys(final, 1), "memory and storage have the same rows"
    now = sorted(await first.ask("select a, b from t"), key=repr)
    async with asyncio.timeout(10):
        while sorted((r for r, n in told.items() if n), key=repr) != now:
            assert not follower.done(), follower.exception()
            await asyncio.sleep(0.05)
    assert all(n in (0, 1) for n in told.values())
    follower.cancel()
    await asyncio.gather(follower, return_exceptions=True)
    await stream.chunks.aclose()
