"""DDL in SQL, without Spark: what each statement does, and what it refuses with which words."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from noonmark.adapter.catalog.store import SYSTEM_COLLECTIONS
from noonmark.adapter.contract import Done
from noonmark.adapter.database import Database
from noonmark.errors import (
    BeforeSince,
    DependentObjects,
    InsufficientPrivilege,
    NameTaken,
    NoonmarkError,
    NotAuthorized,
    WrongObjectType,
)
from support.serve.reading import Conversation, connect, with_database


async def notices(client: Conversation, sql: str) -> list[str]:
    outcome = await client.session.execute(await client.session.prepare(sql))
    assert isinstance(outcome, Done)
    return [notice.message for notice in outcome.notices]


async def refused(client: Conversation, sql: str) -> NoonmarkError:
    with pytest.raises(NoonmarkError) as caught:
        await client.ask(sql)
    return caught.value


@with_database
async def test_if_exists_and_if_not_exists_say_so(opened: Database) -> None:
    client = await connect(opened)
    assert await client.ask("create table t (a int)") == "CREATE TABLE"
    told = await notices(client, "create table if not exists t (b text)")
    assert told == ['relation "t" already exists, skipping']
    error = await refused(client, "create view t as select 1 as x")
    assert (error.sqlstate, str(error)) == ("42P07", 'relation "t" already exists')
    assert await client.ask("drop table t") == "DROP TABLE"
    assert await notices(client, "drop table if exists t") == ['table "t" does not exist, skipping']
    error = await refused(client, "drop table t")
    assert (error.sqlstate, error.position) == ("42P01", 12)


@with_database
async def test_a_statement_is_for_one_kind_of_object(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int)")
    error = await refused(client, "drop view t")
    assert isinstance(error, WrongObjectType)
    assert error.hint == "Use DROP TABLE."
    for sql in ("create table t2 (a int, a text)", "create table t2 (a int, primary key (b))"):
        assert (await refused(client, sql)).sqlstate.startswith("42")
    assert (await refused(client, "create table nowhere.t (a int)")).sqlstate == "3F000"


@with_database
async def test_dropping_what_others_need(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int)")
    await client.ask("create view v as select a from t")
    await client.ask("create view w as select a from v")
    error = await refused(client, "drop table t")
    assert isinstance(error, DependentObjects)
    assert error.sqlstate == "2BP01"
    assert error.message == "cannot drop table t because other objects depend on it"
    assert error.detail == "view v depends on table t\nview w depends on view v"
    assert "CASCADE" in str(error.hint)
    assert await client.ask("select * from w") == []
    assert await notices(client, "drop table t cascade") == ["drop cascades to 2 other objects"]
    assert [item.name for item in opened.catalog.items("table", "view")] == []
    assert "t" not in opened.client.state.names


@with_database
async def test_a_source_is_one_thing_with_its_parts(opened: Database) -> None:
    client = await connect(opened)
    await client.ask(
        "create source house from load generator auction for tables (bids, users as people) "
        "expose progress as house_progress"
    )
    relations = {item.name: item.kind for item in opened.catalog.items() if item.kind != "system"}
    assert relations == {
        "house": "source",
        "bids": "subsource",
        "people": "subsource",
        "house_progress": "progress",
        "house_errors": "errors",
    }
    assert await client.ask("select count(*) from people") == [(1000,)]
    assert await client.ask("select count(*) > 0 from house_progress") == [(True,)]
    assert (await refused(client, "select * from house")).sqlstate == "42P01"
    error = await refused(client, "drop source bids")
    assert error.message == "cannot drop subsource bids because source house requires it"
    await client.ask("create view v as select * from bids")
    assert "depends on subsource" in str((await refused(client, "drop source house")).detail)
    await client.ask("drop source house cascade")
    assert set(opened.client.state.names) == SYSTEM_COLLECTIONS
    assert opened.work.sources == {}


@pytest.mark.parametrize(
    ("sql", "state", "said"),
    [
        ("create source s from load generator counter for all tables", "22P02", "one table"),
        ("create source s from load generator counter (keys 4)", "F0000", "no option KEYS"),
        ("create source s from load generator counter (tick interval '0s')", "F0000", "at least 1"),
        ("create source s from load generator counter with (speed = 4)", "22P02", "no option"),
        ("create source s (a int) from files '/x/*'", "22P02", "needs a FORMAT"),
        ("create database d", "0A000", "CREATE DATABASE is not supported"),
        ("create index on missing (a)", "42P01", "does not exist"),
        ("create view v as select 1 as a, 2 as a", "42P07", "specified more than once"),
        ("create view v (a, b) as select 1 as a", "42601", "more column names"),
        ("create materialized view v as select * from pg_class", "0A000", "cannot read"),
    ],
)
def test_what_cannot_be_is_refused_by_name(sql: str, state: str, said: str) -> None:
    @with_database
    async def go(opened: Database) -> None:
        client = await connect(opened)
        error = await refused(client, sql)
        assert said in str(error)
        assert error.sqlstate in (state, "22P02", "22023"), (error.sqlstate, str(error))
        assert set(opened.client.state.names) == SYSTEM_COLLECTIONS

    go()


@with_database
async def test_a_rename_changes_no_view(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int, b text)")
    await client.ask("create view v as select * from t where a > 0")
    await client.ask("insert into t values (1, 'x')")
    await client.ask("alter table t rename to u")
    await client.ask("alter view v rename to w")
    await client.ask("create table t (other int)")
    await client.ask("alter table u add column c int")
    assert await client.ask("select * from w") == [(1, "x")]
    assert await client.ask("select * from u") == [(1, "x", None)]
    await client.ask("insert into u values (2, 'y', 3)")
    assert await client.ask("select * from w order by a") == [(1, "x"), (2, "y")]
    assert (await refused(client, "select * from v")).sqlstate == "42P01"
    assert isinstance(await refused(client, "alter table u rename to t"), NameTaken)
    assert "u" in opened.client.state.names


@with_database
async def test_comments_stay_with_their_objects(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int)")
    await client.ask("comment on table t is 'things'")
    await client.ask("comment on column t.a is 'how many'")
    assert opened.catalog.resolve(("t",)).comments == {"": "things", "a": "how many"}
    await client.ask("comment on table t is null")
    assert opened.catalog.resolve(("t",)).comments == {"a": "how many"}
    assert (await refused(client, "comment on column t.b is 'x'")).sqlstate == "42703"


@with_database
async def test_rights_are_checked_by_statement(opened: Database) -> None:
    root = await connect(opened)
    await root.ask("create table t (a int)")
    await root.ask("create view v as select * from t")
    await root.ask("create role ann password 'secret'")
    await root.ask("create role bob login")
    ann = Conversation(await opened.connect("ann", "noonmark", {}, "test"))
    error = await refused(ann, "select * from t")
    assert isinstance(error, InsufficientPrivilege)
    assert (error.sqlstate, error.message) == ("42501", "permission denied for table t")
    # The right to a view is a right to its rows, and to nothing below it.
    await root.ask("grant select on v to ann")
    assert await ann.ask("select * from v") == []
    assert isinstance(await refused(ann, "select * from t"), InsufficientPrivilege)
    assert isinstance(await refused(ann, "drop table t"), InsufficientPrivilege)
    assert isinstance(await refused(ann, "create role eve"), InsufficientPrivilege)
    await root.ask("grant select on t to bob")
    await root.ask("grant bob to ann")
    assert await ann.ask("select * from t") == []
    await root.ask("revoke bob from ann")
    assert isinstance(await refused(ann, "select * from t"), InsufficientPrivilege)
    verifier = await opened.verifier("ann")
    assert verifier is not None
    assert "secret" not in verifier
    assert await opened.verifier("bob") is None
    with pytest.raises(NotAuthorized):
        await opened.connect("stranger", "noonmark", {}, "test")


@with_database
async def test_history_is_kept_as_long_as_it_was_asked_for(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int) with (retain history for '0s')")
    await client.ask("create table u (a int)")
    old = await opened.tables.commit({"t": [((1,), 1)], "u": [((1,), 1)]})
    # Since moves in steps of ten seconds: the timeline is taken there.
    await opened.oracle.apply_write(old + 20_000)
    await client.ask("insert into t values (2)")
    await client.ask("insert into u values (2)")
    assert await client.ask(f"select * from u as of {old}") == [(1,)]
    with pytest.raises(BeforeSince) as gone:
        await client.ask(f"select * from t as of {old}")
    since = opened.client.state.collection("t").since.only()
    assert str(since) in str(gone.value)


@with_database
async def test_an_inactive_source_waits_to_be_asked(opened: Database) -> None:
    client = await connect(opened)
    await client.ask(
        "create source s from load generator counter (tick interval '1ms') with (active = false)"
    )
    (worker,) = opened.work.sources.values()
    await asyncio.sleep(0.2)
    assert worker.status.ticks == 0
    first = len(await client.ask("select * from s"))
    ticks = worker.status.ticks
    assert ticks >= 1
    await asyncio.sleep(1.5)
    assert worker.status.ticks == ticks
    await client.ask("alter source s set (active = true)")
    async with asyncio.timeout(10):
        while worker.status.ticks < ticks + 2:
            await asyncio.sleep(0.05)
    assert len(await client.ask("select * from s")) > first
    ((status, releases, why_not),) = await client.ask(
        "select status, releases, releases_detail from mz_internal.mz_source_statuses"
    )
    assert (status, releases) == ("running", False)
    assert "nothing upstream to forget" in why_not


def test_files_become_a_source(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("id,name\n1,ann\n2,bob\nthree,eve\n")

    @with_database
    async def go(opened: Database) -> None:
        client = await connect(opened)
        await client.ask(
            f"create source people (id bigint, name text) from files '{tmp_path}/*.csv' "
            "format csv with header"
        )
        rows: list[Any] = await client.ask("select * from people order by id")
        assert rows == [(1, "ann"), (2, "bob")]
        ((reason,),) = await client.ask("select reason from people_errors")
        assert "three" in reason

    go()


@with_database
async def test_a_change_of_the_catalog_is_not_left_halfway(opened: Database) -> None:
    client = await connect(opened)
    for at in range(20):
        prepared = await client.session.prepare(f"create table t{at} (a int)")
        running = asyncio.ensure_future(client.session.execute(prepared))
        for _ in range(at):
            await asyncio.sleep(0)
        client.session.cancel()
        await asyncio.gather(running, return_exceptions=True)
        # What is stored is what sessions see: the object is there in both, or in neither.
        assert (f"t{at}" in opened.client.state.names) == (
            opened.catalog.find((f"t{at}",)) is not None
        )
    tables = {item.name for item in opened.catalog.items("table")}
    assert tables == set(opened.client.state.names) - SYSTEM_COLLECTIONS
