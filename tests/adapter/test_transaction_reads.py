"""Transactions and the time of reads, as sessions see them."""

from __future__ import annotations

import asyncio

import pytest

from noonmark.adapter.database import Database
from noonmark.adapter.session import holds
from noonmark.adapter.session.transaction import OpenTransaction
from noonmark.errors import (
    BeforeSince,
    InFailedTransaction,
    InvalidSyntax,
    InvalidValue,
    NoActiveTransaction,
    QueryCanceled,
    ReadOnly,
    UndefinedColumn,
)
from support.serve.reading import Conversation, connect, insert, with_database


async def two(opened: Database) -> Conversation:
    client = await connect(opened)
    await client.ask("create table a (n int)")
    await client.ask("create table b (n int)")
    return client


@with_database
async def test_all_reads_of_a_transaction_are_at_one_time(opened: Database) -> None:
    client = await two(opened)
    await insert(opened, "a", (1,))
    await client.ask("begin")
    assert await client.ask("select n from a") == [(1,)]
    await opened.tables.commit({"a": [((2,), 1)], "b": [((2,), 1)]})
    assert await client.ask("select n from b") == [], "not even what was not read before"
    assert await client.ask("select count(*) from a") == [(1,)]
    (line,), *_ = await client.ask("explain timestamp for select * from a")
    assert line.startswith("the transaction reads at ")
    assert await client.ask("commit") == "COMMIT"
    assert await client.ask("select n from b") == [(2,)]
    assert not opened.reads.holds.living


@with_database
async def test_what_begins_later_is_not_in_the_transaction(opened: Database) -> None:
    client = await two(opened)
    await client.ask("begin")
    await client.ask("select * from a")
    await (await connect(opened)).ask("create table c (n int)")
    with pytest.raises(BeforeSince, match='"c" cannot be read'):
        await client.ask("select * from c")
    assert client.session.status == "failed"
    with pytest.raises(InFailedTransaction):
        await client.ask("select 1")
    assert await client.ask("commit") == "ROLLBACK"
    assert client.session.status == "idle"
    assert await client.ask("select * from c") == []


@with_database
async def test_a_read_only_transaction_does_not_write(opened: Database) -> None:
    client = await two(opened)
    await client.ask("begin")
    await client.ask("insert into a values (1)")
    await client.ask("rollback")
    assert await client.ask("select * from a") == [], "nothing of it happened"
    await client.ask("begin read only")
    with pytest.raises(ReadOnly):
        await client.ask("insert into a values (1)")
    await client.ask("rollback")


@with_database
async def test_writes_of_a_transaction_are_one_commit(opened: Database) -> None:
    client = await two(opened)
    other = await connect(opened)
    await client.ask("begin")
    transaction = client.session.transaction
    assert isinstance(transaction, OpenTransaction)
    await transaction.write({"a": [((1,), 1)]})
    await transaction.write({"b": [((1,), 1)]})
    assert await other.ask("select * from a") == []
    await client.ask("commit")
    ends = [opened.client.state.collection(name).batches[-1].time_max for name in ("a", "b")]
    assert ends[0] == ends[1]
    assert await other.ask("select a.n from a join b using (n)") == [(1,)]


@with_database
async def test_beginning_and_ending_say_what_postgresql_says(opened: Database) -> None:
    client = await two(opened)
    warned = await client.session.execute(await client.session.prepare("commit"))
    assert [notice.sqlstate for notice in warned.notices] == ["25P01"]
    await client.ask("begin")
    again = await client.session.execute(await client.session.prepare("begin"))
    assert [notice.sqlstate for notice in again.notices] == ["25001"]
    await client.ask("set transaction isolation level serializable")
    lines = [line for (line,) in await client.ask("explain timestamp for select * from a")]
    assert lines[1].split(":")[1].strip() == "serializable"
    await client.ask("rollback")
    with pytest.raises(InvalidSyntax):
        await client.ask("begin isolation level chaos")
    with pytest.raises(NoActiveTransaction):
        await client.ask("declare c cursor for select 1")


@with_database
async def test_times_are_asked_for_by_the_millisecond_and_by_the_clock(opened: Database) -> None:
    client = await two(opened)
    first = await insert(opened, "a", (1,))
    second = await insert(opened, "a", (2,))
    assert await client.ask(f"select count(*) from a as of {first}") == [(1,)]
    assert await client.ask(f"select count(*) from a as of {second}") == [(2,)]
    assert await client.ask(f"select count(*) from a as of at least {first}") == [(2,)]
    moment = f"timestamptz 'epoch' + interval '{first} milliseconds'"
    assert await client.ask(f"select count(*) from a as of {moment}") == [(1,)]
    prepared = await client.session.prepare("select n from a where n = $2 as of $1")
    assert [str(kind) for kind in prepared.parameters] == ["bigint", "integer"]
    assert await client.ask("select n from a where n = $2 as of $1", first, 2) == []
    assert await client.ask("select n from a where n = $2 as of $1", second, 2) == [(2,)]
    with pytest.raises(BeforeSince, match="the earliest readable time is"):
        await client.ask("select * from a as of 1000")
    with pytest.raises(InvalidValue, match="is not a time"):
        await client.ask("select * from a as of '1 day'::interval")


@with_database
async def test_a_read_in_the_future_can_be_ended(opened: Database) -> None:
    client = await two(opened)
    far = await insert(opened, "a", (1,)) + 3_600_000
    client.session.variables["statement_timeout"] = "50"
    with pytest.raises(QueryCanceled, match="statement timeout"):
        await client.ask(f"select * from a as of {far}")
    client.session.variables["statement_timeout"] = "0"
    waiting = asyncio.ensure_future(client.ask(f"select * from a as of {far}"))
    await asyncio.sleep(0.05)
    client.session.cancel()
    with pytest.raises(QueryCanceled, match="user request"):
        await waiting
    assert await client.ask("select * from a") == [(1,)], "and the session goes on"


@with_database
async def test_an_error_ends_an_explicit_transaction_only(opened: Database) -> None:
    client = await two(opened)
    with pytest.raises(UndefinedColumn):
        await client.ask("select shoe from a")
    assert client.session.status == "idle"
    await client.ask("begin")
    with pytest.raises(UndefinedColumn):
        await client.ask("select shoe from a")
    client.session.fail()
    assert client.session.status == "failed"
    await client.ask("rollback")


@with_database
async def test_holds_keep_history_for_as_long_as_they_live(opened: Database) -> None:
    await two(opened)
    client = opened.client
    time = await insert(opened, "a", (1,))
    held = await opened.reads.holds.take(["a", "b"], time, non_blocking=True)
    assert len(read_holds(opened)) == 2
    write = client.create_or_load("a")[0]
    later = await insert(opened, "a", (2,))
    await asyncio.wrap_future(write.allow_compaction(later))
    assert client.state.collection("a").since.less_equal(time), "the hold binds"
    await held.advance(later)
    await opened.reads.holds.release(held)
    await opened.reads.holds.release(held)
    assert client.state.collection("a").since.only() == later
    with pytest.raises(BeforeSince):
        await opened.reads.holds.take(["a"], time)


def read_holds(opened: Database) -> list[str]:
    return [each.id for each in opened.client.state.holds.values() if not each.writes]


@with_database
async def test_a_hold_that_lives_becomes_durable(opened: Database) -> None:
    await two(opened)
    time = await insert(opened, "a", (1,))
    held = holds.Held(opened.client, time, (opened.client.state.collection("a").id,))
    held.durable_after(opened.clock, 0.02)
    async with asyncio.timeout(10):
        while not read_holds(opened):
            await asyncio.sleep(0.01)
    await held.release()
    assert not read_holds(opened)
    early = holds.Held(opened.client, time, (opened.client.state.collection("a").id,))
    early.durable_after(opened.clock, 0.02)
    await early.release()
    await asyncio.sleep(0.1)
    assert not read_holds(opened), "what was let go first is never taken"


@with_database
async def test_a_row_with_nan_that_the_transaction_took_back_is_gone_for_a_worker_too(
    opened: Database,
) -> None:
    client = await connect(opened)
    await client.ask("create table a (k int primary key, c real, x float8[], d int)")
    await client.ask("insert into a values (1, 'NaN', '{NaN,-0}', 1), (2, '-0', null, 2)")
    await client.ask("begin")
    await client.ask("update a set d = d + 5")
    much = "select c::text, x::text, d, count(*) from a, generate_series(1, 30000) group by 1, 2, 3"
    assert await client.ask(f"{much} order by d") == [
        ("NaN", "{NaN,-0}", 6, 30000),
        ("-0", None, 7, 30000),
    ]
    await client.ask("delete from a where d = 6")
    assert await client.ask(f"{much} order by d") == [("-0", None, 7, 30000)]
    await client.ask("commit")
