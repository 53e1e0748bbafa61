"""DDL in transactions: seen by its own statements, then by all, or never."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from noonmark.adapter.catalog.store import SYSTEM_COLLECTIONS
from noonmark.adapter.database import Database
from noonmark.errors import (
    InTransaction,
    NoonmarkError,
    ReadOnly,
    SerializationFailure,
    UndefinedTable,
    UniqueViolation,
    Unsupported,
)
from support.serve.reading import Conversation, connect, database, with_database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


async def run_all(client: Conversation, *statements: str) -> list[Any]:
    return [await client.ask(sql) for sql in statements]


def names(opened: Database) -> list[str]:
    return [item.name for item in opened.catalog.items() if item.kind != "system"]


@with_database
async def test_rollback_undoes_every_kind_of_change(opened: Database) -> None:
    client, other = await connect(opened), await connect(opened)
    await run_all(client, "create table kept (a int)", "create view over as select a from kept")
    before, seqno = opened.catalog, opened.client.state.names
    await run_all(
        client,
        "begin",
        "create schema s",
        "create table s.t (a int primary key)",
        "insert into s.t values (1)",
        "create view w as select a from s.t",
        "comment on table kept is 'said'",
        "create role somebody",
        "grant select on kept to somebody",
        "drop view over",
        "drop table kept",
    )
    assert await client.ask("select * from w") == [(1,)]
    with pytest.raises(UndefinedTable):
        await other.ask("select * from w")
    assert await other.ask("select * from over") == []
    assert await client.ask("rollback") == "ROLLBACK"
    assert opened.catalog is before
    assert opened.client.state.names == seqno
    assert await client.ask("select * from over") == []


@with_database
async def test_commit_makes_the_objects_and_their_rows_one_commit(opened: Database) -> None:
    client, other = await connect(opened), await connect(opened)
    await client.ask("create table old (a int)")
    await run_all(
        client,
        "begin",
        "create table t (a int primary key, b text default 'x')",
        "insert into t values (1, 'one')",
        "insert into t (a) values (2) returning b",
        "insert into old select a from t",
        "update t set b = 'two' where a = 2",
        "create view v as select sum(a) as s from t",
    )
    assert await client.ask("select * from t order by a") == [(1, "one"), (2, "two")]
    assert await client.ask("select t.b from t join old using (a) order by 1") == [
        ("one",),
        ("two",),
    ]
    assert await client.ask("select s from v") == [(3,)]
    assert names(opened) == ["old"]
    commits = opened.client.state.seqno
    assert await client.ask("commit") == "COMMIT"
    assert opened.client.state.seqno - commits <= 3, "the commit, the oracle's, a seal"
    assert await other.ask("select * from t order by a") == [(1, "one"), (2, "two")]
    assert await other.ask("select count(*) from old") == [(2,)]
    assert await other.ask("select s from v") == [(3,)]
    assert await other.ask("insert into t values (3)") == "INSERT 0 1"
    with pytest.raises(UniqueViolation):
        await other.ask("insert into t values (2, 'again')")


@with_database
async def test_a_table_that_is_dropped_and_made_again(opened: Database) -> None:
    client = await connect(opened)
    await run_all(client, "create table t (a int)", "insert into t values (1)")
    await run_all(
        client,
        "begin",
        "insert into t values (9)",
        "drop table if exists t",
        "create table t (a int, b int)",
        "insert into t values (2, 3)",
    )
    assert await client.ask("select * from t") == [(2, 3)]
    await client.ask("commit")
    assert await client.ask("select * from t") == [(2, 3)]


@with_database
async def test_savepoints_take_objects_back_too(opened: Database) -> None:
    client = await connect(opened)
    await run_all(client, "begin", "create table t (a int)", "insert into t values (1)")
    await run_all(client, "savepoint s", "insert into t values (2)", "drop table t")
    with pytest.raises(UndefinedTable):
        await client.ask("select * from t")
    await client.ask("rollback to s")
    assert await client.ask("select * from t") == [(1,)]
    await client.ask("commit")
    assert await client.ask("select * from t") == [(1,)]


@with_database
async def test_two_transactions_that_change_the_catalog(opened: Database) -> None:
    one, two = await connect(opened), await connect(opened)
    await run_all(one, "begin", "create table t (a int)")
    await run_all(two, "begin", "create table t (b int)", "commit")
    with pytest.raises(SerializationFailure) as caught:
        await one.ask("commit")
    assert caught.value.sqlstate == "40001"
    assert await one.ask("select b from t") == []
    assert one.session.status == "idle"


@with_database
async def test_transactions_that_change_the_catalog_beside_each_other(opened: Database) -> None:
    """What each makes, renames and drops is its own: both are committed."""
    one, two = await connect(opened), await connect(opened)
    await run_all(one, "create table a (x int)", "create table b (x int)")
    await run_all(one, "begin", "create table c (x int)", "insert into c values (1)")
    await run_all(two, "begin", "create table d (x int)", "insert into d values (2)")
    await run_all(one, "create view v as select x from c", "alter table a rename to a2")
    await run_all(two, "create view w as select x + 1 as y from d", "drop table b", "commit")
    await one.ask("commit")
    assert await one.ask("select x, y from v, w") == [(1, 3)]
    assert sorted(names(opened)) == ["a2", "c", "d", "v", "w"]
    numbers = [item.number for item in opened.catalog.items() if item.kind != "system"]
    assert len(set(numbers)) == 5


@with_database
async def test_a_transaction_is_refused_where_what_it_needs_was_changed(opened: Database) -> None:
    one, two = await connect(opened), await connect(opened)
    for mine, theirs in (
        ("create view v as select x from a", "alter table a rename to b"),
        ("drop table a", "create view v as select x from a"),
        ("alter table a rename to b", "comment on table a is 'said'"),
        ("insert into a values (1)", "alter table a rename to b"),
        ("create table s.t (x int)", "drop schema s"),
        ("drop schema s", "create table s.t (x int)"),
        ("create table taken (x int)", "create table taken (x int)"),
    ):
        await run_all(one, "create table a (x int)", "create schema s")
        await run_all(one, "begin", "create table beside (x int)", mine)
        await two.ask(theirs)
        with pytest.raises(SerializationFailure):
            await one.ask("commit")
        assert ("public", "beside") not in opened.catalog.by_name, mine
        for item in [item for item in opened.catalog.items() if item.kind != "system"]:
            kind = item.kind if item.kind != "schema" else "schema"
            await one.ask(f"drop {kind} if exists {item.full_name} cascade")


@with_database
async def test_renames_in_a_transaction_are_seen_inside_and_committed_at_once(
    opened: Database,
) -> None:
    client, other = await connect(opened), await connect(opened)
    await run_all(client, "create table t (a int)", "insert into t values (1)")
    await run_all(client, "create view v as select a from t")
    await run_all(
        client,
        "begin",
        "create table t_new (a int, b text)",
        "insert into t_new values (2, 'two')",
        "alter table t rename to t_old",
        "alter table t_new rename to t",
        "insert into t values (3, 'three')",
        "insert into t_old values (10)",
        "create table t_new (c int)",  # the name is free again
        "insert into t_new values (7)",
    )
    assert await client.ask("select a, b from t order by a") == [(2, "two"), (3, "three")]
    assert await client.ask("select a from t_old order by a") == [(1,), (10,)]
    assert await client.ask("select * from v order by a") == [(1,), (10,)]  # it is of the old one
    assert await client.ask("select * from t_new") == [(7,)]
    assert await other.ask("select * from t") == [(1,)]
    await client.ask("commit")
    for each in (client, other):
        assert await each.ask("select a, b from t order by a") == [(2, "two"), (3, "three")]
        assert await each.ask("select * from v order by a") == [(1,), (10,)]
        assert await each.ask("select * from t_new") == [(7,)]
    assert {"t", "t_old", "t_new"} <= opened.client.state.names.keys()
    await run_all(client, "begin", "drop table t_old cascade", "commit")
    assert "t_old" not in opened.client.state.names


@with_database
async def test_names_change_places_in_a_transaction(opened: Database) -> None:
    client = await connect(opened)
    await run_all(client, "create table a (x int)", "create table b (x int)")
    await run_all(client, "insert into a values (1)", "insert into b values (2)")
    swap = ("alter table a rename to c", "alter table b rename to a", "alter table c rename to b")
    await run_all(client, "begin", *swap, "insert into a values (20)", "rollback")
    assert await client.ask("select * from a") == [(1,)]
    await run_all(client, "begin", "savepoint s", *swap, "rollback to s", "commit")
    assert await client.ask("select * from a") == [(1,)]
    await run_all(client, "begin", *swap, "insert into a values (20)", "commit")
    assert await client.ask("select * from a order by x") == [(2,), (20,)]
    assert await client.ask("select * from b") == [(1,)]


@with_database
async def test_alter_table_takes_views(opened: Database) -> None:
    client = await connect(opened)
    await run_all(client, "create table t (a int)", "create view v as select a from t")
    assert await client.ask("alter table v rename to w") == "ALTER TABLE"
    await run_all(client, "begin", "drop view w", "create view w as select a + 1 as b from t")
    await run_all(client, "insert into t values (1)", "commit")
    assert await client.ask("select b from w") == [(2,)]


@with_database
async def test_a_key_that_is_there_twice_undoes_all(opened: Database) -> None:
    client = await connect(opened)
    await run_all(client, "begin", "create table t (a int primary key)")
    await client.ask("insert into t values (1)")
    with pytest.raises(UniqueViolation):
        await client.ask("insert into t values (1)")
    await client.ask("commit")
    assert names(opened) == []


@with_database
async def test_what_cannot_be_part_of_a_transaction_says_so(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int)")
    await client.ask("create source c from load generator counter")
    for sql in (
        "create source d from load generator counter",
        "create secret s as 'x'",
        "drop source c",
        "drop table t, c",
    ):
        await client.ask("begin")
        with pytest.raises(NoonmarkError) as caught:
            await client.ask(sql)
        if "t, c" not in sql:
            assert isinstance(caught.value, InTransaction), sql
            assert caught.value.sqlstate == "25001"
            assert caught.value.hint
        assert await client.ask("commit") == "ROLLBACK"
    await client.ask("begin read only")
    with pytest.raises(ReadOnly):
        await client.ask("create table u (a int)")
    await client.ask("rollback")
    assert set(names(opened)) >= {"t", "c"}


async def send(client: Conversation, *statements: str) -> list[Any]:
    """Statements as one message of the simple protocol."""
    client.session.begin_implicit()
    try:
        found = await run_all(client, *statements)
    except NoonmarkError:
        await client.session.end_implicit(False)
        raise
    await client.session.end_implicit(True)
    return found


@with_database
async def test_statements_that_are_sent_as_one(opened: Database) -> None:
    client, other = await connect(opened), await connect(opened)
    found = await send(
        client, "create table t (a int)", "insert into t values (1)", "select * from t"
    )
    assert found == ["CREATE TABLE", "INSERT 0 1", [(1,)]]
    with pytest.raises(NoonmarkError):
        await send(client, "create table u (a int)", "insert into t values (2)", "select 1 / 0")
    assert names(opened) == ["t"]
    assert await other.ask("select * from t") == [(1,)]
    # A read after a write sees it, and an error after that still undoes both.
    with pytest.raises(NoonmarkError):
        await send(client, "insert into t values (2)", "select count(*) from t", "select 1 / 0")
    assert await other.ask("select * from t") == [(1,)]
    found = await send(client, "update t set a = a + 1", "select a from t", "select a + 1 from t")
    assert found == ["UPDATE 1", [(2,)], [(3,)]]
    # What no transaction can do ends one, and begins the next.
    await send(client, "insert into t values (7)", "create source c from load generator counter")
    await send(client, "select count(*) >= 0 from c", "insert into t values (8)")
    assert await other.ask("select a from t order by 1") == [(2,), (7,), (8,)]
    assert not opened.reads.holds.living


@pytest.mark.spark
def test_views_of_tables_that_are_made_with_them(tmp_path: Path, spark: SparkSession) -> None:
    async def go() -> None:
        async with asyncio.timeout(120), database(str(tmp_path), spark) as opened:
            client = await connect(opened)
            await run_all(
                client,
                "begin",
                "create table t (a int, b int)",
                "insert into t values (1, 2), (1, 3)",
                "create materialized view v as select a, sum(b) as s from t group by a",
                "create materialized view w as select max(s) as m from v",
                "create index t_b on t (b)",
            )
            with pytest.raises(Unsupported, match="cannot be read"):
                await client.ask("select * from v")
            await client.ask("rollback")
            assert names(opened) == []
            # The same as one message: the read needs the view, so what is before it is committed.
            found = await send(
                client,
                "create table t (a int, b int)",
                "insert into t values (1, 2), (1, 3)",
                "create materialized view v as select a, sum(b) as s from t group by a",
                "create materialized view w as select max(s) as m from v",
                "create index t_b on t (b)",
                "select m from w",
            )
            assert found[-1] == [(5,)]
            await run_all(
                client,
                "begin",
                "create or replace materialized view w as select min(s) as m from v",
            )
            await run_all(client, "insert into t values (2, 1)", "commit")
            assert await client.ask("select m from w") == [(1,)]
            assert await client.ask("audit materialized view w") == []
            await run_all(client, "begin", "drop table t cascade", "commit")
            assert names(opened) == []
            assert set(opened.client.state.names) == SYSTEM_COLLECTIONS

    asyncio.run(go())


@with_database
async def test_create_table_as(opened: Database) -> None:
    client, other = await connect(opened), await connect(opened)
    await run_all(
        client, "create table t (a int, b text)", "insert into t values (1, 'x'), (2, 'y')"
    )
    assert await client.ask("create table u as select a + 1 as c, b from t") == "SELECT 2"
    assert await other.ask("select * from u order by c") == [(2, "x"), (3, "y")]
    assert await client.ask("create table if not exists u as select 1") == "CREATE TABLE AS"
    assert await client.ask("create table w (n, m) as select 1, null with no data") == (
        "CREATE TABLE AS"
    )
    assert await client.ask("select * from w") == []
    assert await client.ask("select a into x from t order by a limit 1") == "SELECT 1"
    await run_all(
        client, "begin", "create table y as select * from u", "insert into y values (9, '')"
    )
    assert await client.ask("select count(*) from y") == [(3,)]
    await client.ask("rollback")
    assert "y" not in names(opened)


@with_database
async def test_temporary_tables_are_their_sessions_own(opened: Database) -> None:
    client, other = await connect(opened), await connect(opened)
    await run_all(client, "create table t (a int)", "create temp table t (b text)")
    await run_all(client, "insert into t values ('mine')", "insert into public.t values (1)")
    assert await client.ask("select b from t") == [("mine",)]
    assert await client.ask("select * from pg_temp.t") == [("mine",)]
    assert await other.ask("select a from t") == [(1,)]
    await run_all(client, "create temp view w as select b from t")
    await run_all(client, "begin", "create temp table gone on commit drop as select 1 as x")
    assert await client.ask("select x from gone") == [(1,)]
    await client.ask("commit")
    with pytest.raises(UndefinedTable):
        await client.ask("select x from gone")
    await client.session.close()
    assert names(opened) == ["t"]
    assert [name for name in opened.client.state.names if "temp" in name] == []


@with_database
async def test_a_schema_of_the_system_cannot_be_made(opened: Database) -> None:
    client = await connect(opened)
    with pytest.raises(NoonmarkError, match="unacceptable schema name"):
        await client.ask("create schema pg_temp_1")
