"""INSERT, UPDATE, DELETE, TRUNCATE, COPY and transactions of them, without Spark."""

from __future__ import annotations

import asyncio
import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from noonmark.adapter.contract import CopyOut
from noonmark.adapter.database import Database
from noonmark.adapter.statement.dml.copy import CopyFrom
from noonmark.errors import (
    NoonmarkError,
    NotNullViolation,
    SerializationFailure,
    UniqueViolation,
)
from support.serve.reading import Conversation, connect, with_database


async def table(opened: Database) -> Conversation:
    client = await connect(opened)
    await client.ask(
        "create table t (a int primary key, b text not null default 'x', c numeric(10,2))"
    )
    return client


async def refused(client: Conversation, sql: str, *values: Any) -> tuple[str, str]:
    with pytest.raises(NoonmarkError) as caught:
        await client.ask(sql, *values)
    return caught.value.sqlstate, caught.value.message


@with_database
async def test_insert_takes_values_defaults_and_queries(opened: Database) -> None:
    client = await table(opened)
    returned = await client.ask(
        "insert into t values (1, 'one', 1.005), (2, default, null) returning *, a + 1 as z"
    )
    assert returned == [(1, "one", Decimal("1.01"), 2), (2, "x", None, 3)]
    assert await client.ask("insert into t (c, a) values ('2.5', '4')") == "INSERT 0 1"
    assert (
        await client.ask("insert into t select a + 10, b, '7' from t where a < 3") == "INSERT 0 2"
    )
    assert await client.ask("insert into t values (30, (select max(b) from t))") == "INSERT 0 1"
    assert await client.ask("select * from t order by a") == [
        (1, "one", Decimal("1.01")),
        (2, "x", None),
        (4, "x", Decimal("2.50")),
        (11, "one", Decimal("7.00")),
        (12, "x", Decimal("7.00")),
        (30, "x", None),
    ]


@with_database
async def test_assignment_casts_are_postgresqls(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table k (i int, v varchar(3), h char(3), d date, f real, n text)")
    assert await client.ask("insert into k values (2.5, 'ab   ', 'a', now(), 1, 7)") == "INSERT 0 1"
    ((i, v, h, _, f, n),) = await client.ask("select * from k")
    assert (i, v, h, f, n) == (3, "ab ", "a  ", 1.0, "7")
    assert await refused(client, "insert into k (v) values ('abcd')") == (
        "22001",
        "value too long for type character varying(3)",
    )
    assert await refused(client, "insert into k (i) values (true)") == (
        "42804",
        'column "i" is of type integer but expression is of type boolean',
    )
    assert (await refused(client, "insert into k (i) values ('x')"))[0] == "22P02"
    assert (await refused(client, "insert into k (i) values (3000000000)"))[0] == "22003"
    assert (await refused(client, "insert into k (d) values (1)"))[0] == "42804"
    assert (await refused(client, "update k set i = 'one' || 'two'"))[0] == "42804"


@with_database
async def test_constraints_hold_and_say_what_failed(opened: Database) -> None:
    client = await table(opened)
    await client.ask("insert into t values (1, 'a'), (2, 'b')")
    with pytest.raises(UniqueViolation, match="t_pkey") as caught:
        await client.ask("insert into t values (3, 'c'), (1, 'd')")
    assert caught.value.detail == "Key (a)=(1) already exists."
    with pytest.raises(NotNullViolation) as nothing:
        await client.ask("insert into t values (5, null)")
    assert nothing.value.detail == "Failing row contains (5, null, null)."
    with pytest.raises(UniqueViolation):
        await client.ask("update t set a = 1")
    with pytest.raises(NotNullViolation):
        await client.ask("update t set b = null where a = 1")
    assert await client.ask("select a, b from t order by a") == [(1, "a"), (2, "b")]
    assert await client.ask("update t set a = 3 - a") == "UPDATE 2", "keys may change places"
    assert await client.ask("select a, b from t order by a") == [(1, "b"), (2, "a")]


@with_database
async def test_what_is_no_table_is_not_written(opened: Database) -> None:
    client = await table(opened)
    await client.ask("create view v as select * from t")
    for sql in ("insert into v values (1)", "update v set a = 1", "delete from v", "truncate v"):
        state, message = await refused(client, sql)
        assert state == "42809"
        assert 'view "v"' in message
    assert (await refused(client, "insert into nope values (1)"))[0] == "42P01"
    assert (await refused(client, "insert into t (a, zz) values (1, 2)"))[0] == "42703"
    assert (await refused(client, "insert into t (a, a) values (1, 2)"))[0] == "42601"
    assert (await refused(client, "insert into t values (1, 'x', 2, 3)"))[0] == "42601"


@with_database
async def test_update_and_delete_with_other_tables(opened: Database) -> None:
    client = await table(opened)
    await client.ask("create table u (k int, v text)")
    await client.ask("insert into t values (1, 'a'), (2, 'b'), (3, 'c')")
    await client.ask("insert into u values (1, 'z'), (1, 'y'), (1, 'y'), (3, 'w')")
    updated = await client.ask(
        "update t as x set b = u.v, c = default from u where x.a = u.k returning x.a, b"
    )
    assert sorted(updated) == [(1, "y"), (3, "w")], "each row once, by its least match"
    removed = await client.ask("delete from u using t where u.k = t.a and t.a = 1 returning u.*")
    assert sorted(removed) == [(1, "y"), (1, "y"), (1, "z")], "a row as often as it is there"
    assert await client.ask("select * from u") == [(3, "w")]
    assert await client.ask("delete from t where a not in (select k from u)") == "DELETE 2"
    assert await client.ask("truncate t, u") == "TRUNCATE TABLE"
    assert await client.ask("select (select count(*) from t) + (select count(*) from u)") == [(0,)]


@with_database
async def test_on_conflict_is_exact_by_the_key(opened: Database) -> None:
    client = await table(opened)
    await client.ask("insert into t values (1, 'a', 1)")
    upsert = "insert into t values ($1, $2) on conflict (a) do update set b = t.b || excluded.b"
    assert await client.ask(upsert, 1, "b") == "INSERT 0 1"
    assert await client.ask(upsert, 2, "c") == "INSERT 0 1"
    assert await client.ask("select a, b from t order by a") == [(1, "ab"), (2, "c")]
    nothing = "insert into t values (2, 'n'), (3, 'n'), (3, 'm') on conflict do nothing returning a"
    assert await client.ask(nothing) == [(3,)]
    guarded = "insert into t values (1, 'g') on conflict (a) do update set b = 'g' where t.a > 1"
    assert await client.ask(guarded) == "INSERT 0 0"
    assert (await refused(client, f"{upsert[:21]} (5, 'x'), (5, 'y') {upsert[30:]}"))[0] == "21000"
    assert (await refused(client, "insert into t values (1) on conflict (b) do nothing"))[
        0
    ] == "42P10"
    await client.ask("create table u (k int)")
    assert await client.ask("insert into u values (1) on conflict do nothing") == "INSERT 0 1"
    assert (await refused(client, "insert into u values (1) on conflict (x) do nothing"))[0] == (
        "42703"
    )


@with_database
async def test_parameters_take_the_types_of_their_columns(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table k (i bigint, n numeric(6,1), v varchar(5), d date, a int[])")
    prepared = await client.session.prepare("insert into k values ($1, $2, $3, $4, $5)")
    types = [str(kind) for kind in prepared.parameters]
    assert types == ["bigint", "numeric", "character varying", "date", "integer[]"]
    values = (1, Decimal("2.25"), "abc", dt.date(2020, 1, 2), [1, None])
    await client.session.execute(prepared, values)
    await client.session.execute(prepared, (None,) * 5)
    rows = await client.ask("select * from k where i = $1", 1)
    assert rows == [(1, Decimal("2.3"), "abc", dt.date(2020, 1, 2), [1, None])]
    prepared = await client.session.prepare("update k set n = $1 where v = $2 and i < $3")
    assert [str(kind) for kind in prepared.parameters] == ["numeric", "character varying", "bigint"]


# --- transactions


@with_database
async def test_a_transaction_of_writes_is_one_commit(opened: Database) -> None:
    client, other = await table(opened), await connect(opened)
    await client.ask("create table u (k int)")
    for sql in ("begin", "insert into t values (1, 'a')", "insert into u values (1)"):
        await client.ask(sql)
    assert await client.ask("update t set b = b || '!' where a = 1") == "UPDATE 1", "its own row"
    assert await other.ask("select * from t") == []
    await client.ask("commit")
    assert await other.ask("select b, k from t, u") == [("a!", 1)]
    for sql in ("begin", "delete from t", "rollback"):
        await client.ask(sql)
    assert await other.ask("select count(*) from t") == [(1,)]


@with_database
async def test_savepoints_undo_what_came_after(opened: Database) -> None:
    client = await table(opened)
    await client.ask("begin")
    await client.ask("insert into t values (1, 'kept')")
    await client.ask("savepoint s")
    await client.ask("insert into t values (2, 'undone')")
    assert (await refused(client, "select nothing"))[0] == "42703"
    assert (await refused(client, "insert into t values (3, 'x')"))[0] == "25P02"
    await client.ask("rollback to s")
    await client.ask("insert into t values (4, 'kept too')")
    await client.ask("release savepoint s")
    assert (await refused(client, "rollback to s"))[0] == "3B001"
    await client.ask("rollback")
    assert await client.ask("select * from t") == []
    for sql in (
        *("begin", "savepoint s", "insert into t values (1, 'a')", "rollback to s"),
        *("insert into t values (2, 'b')", "commit"),
    ):
        await client.ask(sql)
    assert await client.ask("select a from t") == [(2,)]


@with_database
async def test_a_transaction_whose_reads_changed_fails_at_commit(opened: Database) -> None:
    client, other = await table(opened), await connect(opened)
    await client.ask("insert into t values (1, 'a', 1)")
    await client.ask("begin")
    await client.ask("update t set c = c + 1 where a = 1")
    await other.ask("update t set c = c + 10 where a = 1")
    with pytest.raises(SerializationFailure):
        await client.ask("commit")
    assert await client.ask("select c from t") == [(Decimal(11),)]


@with_database
async def test_no_update_is_lost(opened: Database) -> None:
    """The law of `adapter.statement.dml.read`: concurrent increments all count."""
    client = await table(opened)
    await client.ask("insert into t values (1, 'a', 0), (2, 'b', 0)")
    clients = [await connect(opened) for _ in range(6)]

    async def increments(each: Conversation) -> None:
        for at in range(8):
            await each.ask("update t set c = c + 1 where a = 1")
            await each.ask("update t set c = (select c + 1 from t where a = 1) where a = 2")
            await each.ask(f"insert into t values ({id(each) % 100_000 + at * 100_000 + 10}, 'n')")

    await asyncio.gather(*(increments(each) for each in clients))
    assert await client.ask("select c from t where a = 1") == [(Decimal(48),)]
    ((last,),) = await client.ask("select c from t where a = 2")
    assert last <= 49
    assert await client.ask("select count(*) from t") == [(50,)]


@with_database
async def test_returning_does_not_take_other_tables_for_its_own(opened: Database) -> None:
    client = await table(opened)
    await client.ask("create table o (a int, d int)")
    await client.ask("insert into t values (1, 'b', 1)")
    await client.ask("insert into o values (1, 7)")
    both = "update t set c = 2 from o where o.a = t.a returning *"
    assert await client.ask(both) == [(1, "b", Decimal("2.00"), 1, 7)]
    theirs = "update t set c = 2 from o where o.a = t.a returning o.*"
    assert await client.ask(theirs) == [(1, 7)]
    unclear = "update t set c = 2 from o where o.a = t.a returning a"
    assert (await refused(client, unclear))[0] == "42702"
    nowhere = "delete from t as x using o where o.a = x.a returning t.a"
    assert (await refused(client, nowhere))[0] == "42P01"
    own = "update t as X set c = 2 from o where o.a = x.a returning x.*, X.a"
    assert await client.ask(own) == [(1, "b", Decimal("2.00"), 1)]
    assert await client.ask("update t set c = 3 returning *") == [(1, "b", Decimal("3.00"))]


@with_database
async def test_a_transaction_reads_and_writes_as_if_at_one_moment(opened: Database) -> None:
    client, other = await table(opened), await connect(opened)
    await client.ask("insert into t values (1, 'a', 1)")
    await client.ask("begin")
    ((before,),) = await client.ask("select c from t where a = 1")
    await client.ask("update t set c = $1 where a = 1", before + 1)
    await client.ask("insert into t values (2, 'b', 2)")
    assert await client.ask("select a, c from t order by a") == [(1, 2), (2, 2)], "its own writes"
    assert await client.ask("select count(*) from t where a = 2") == [(1,)]
    assert await other.ask("select a, c from t") == [(1, 1)]
    await client.ask("commit")
    assert await other.ask("select a, c from t order by a") == [(1, 2), (2, 2)]


@with_database
async def test_no_two_transactions_miss_each_other(opened: Database) -> None:
    """Each looks for the other's row and writes its own: one must see the other, or fail."""
    first, second = await connect(opened), await connect(opened)
    await first.ask("create table x (n int)")
    await first.ask("create table y (n int)")
    for order in ("read first", "write first"):
        for client, mine, theirs in ((first, "x", "y"), (second, "y", "x")):
            steps = [f"select count(*) from {theirs}", f"insert into {mine} values (1)"]
            await client.ask("begin")
            for step in steps if order == "read first" else reversed(steps):
                await client.ask(step)
        await first.ask("commit")
        with pytest.raises(SerializationFailure):
            await second.ask("commit")
        await first.ask("truncate x, y")


@with_database
async def test_a_transaction_that_read_what_moves_by_itself_does_not_write(
    opened: Database,
) -> None:
    client = await table(opened)
    await client.ask("create source s from load generator counter (tick interval '1h')")
    assert (await refused(client, "insert into t select counter, 'x' from s"))[0] == "0A000"
    await client.ask("begin")
    await client.ask("select * from s")
    assert (await refused(client, "insert into t values (1, 'a')"))[0] == "25006"
    await client.ask("rollback")
    await client.ask("begin")
    await client.ask("insert into t values (1, 'a')")
    assert (await refused(client, "select * from s"))[0] == "25006"
    await client.ask("rollback")


# --- COPY


async def copied(client: Conversation, sql: str, *chunks: list[tuple[Any, ...]]) -> str:
    coming = await client.session.execute(await client.session.prepare(sql))
    assert isinstance(coming, CopyFrom)
    for rows in chunks:
        await coming.write(rows)
    return (await coming.finish()).tag


@with_database
async def test_copy_in_is_one_commit(opened: Database) -> None:
    client = await table(opened)
    assert (
        await copied(client, "copy t (a, c) from stdin", [(1, None)], [(2, Decimal(3))]) == "COPY 2"
    )
    assert await client.ask("select * from t order by a") == [(1, "x", None), (2, "x", Decimal(3))]
    with pytest.raises(UniqueViolation):
        await copied(client, "copy t from stdin", [(5, "a", None), (1, "b", None)])
    with pytest.raises(NotNullViolation):
        await copied(client, "copy t from stdin", [(6, None, None)])
    given_up = await client.session.execute(await client.session.prepare("copy t from stdin"))
    assert isinstance(given_up, CopyFrom)
    await given_up.write([(7, "x", None)])
    await given_up.fail()
    assert await client.ask("select count(*) from t") == [(2,)]


@with_database
async def test_copy_out_has_the_columns_that_are_asked_for(opened: Database) -> None:
    client = await table(opened)
    await client.ask("insert into t values (1, 'a')")
    for sql in ("copy t (b, a) to stdout", "copy (select b, a from t) to stdout csv header"):
        going = await client.session.execute(await client.session.prepare(sql))
        assert isinstance(going, CopyOut)
        assert [field.name for field in going.fields] == ["b", "a"]
        assert [row async for chunk in going.chunks for row in chunk] == [("a", 1)]
        assert going.format.header is ("csv" in sql)
    assert (await refused(client, "copy t to stdout (delimiter 'ab')"))[0] == "42601"
