"""DDL in transactions (`adapter.staged`): seen by its own statements, then by all, or never."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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
from support.reading import Conversation, connect, database, with_database

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
    assert opened.client.state.seqno - commits <= 2, "the commit, and the oracle's or a seal"
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
async def test_a_key_that_is_there_twice_undoes_all(opened: Database) -> None:
    client = await connect(opened)
    await run_all(client, "begin", "create table t (a int primary key)")
    await run_all(client, "insert into t values (1)", "insert into t values (1)")
    with pytest.raises(UniqueViolation):
        await client.ask("commit")
    assert names(opened) == []


@with_database
async def test_what_cannot_be_part_of_a_transaction_says_so(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int)")
    await client.ask("create source c from load generator counter")
    for sql in (
        "create source d from load generator counter",
        "alter table t rename to u",
        "alter table t add column b int",
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
            assert set(opened.client.state.names) == {"noonmark_catalog"}

    asyncio.run(go())
