"""Rights on schemas and on the database: who may name, make and come in (`catalog.privilege`)."""

from __future__ import annotations

import pytest

from noonmark.adapter.database import Database
from noonmark.errors import DependentObjects, InsufficientPrivilege, NoonmarkError
from support.serve.reading import Conversation, connect, with_database


async def refused(client: Conversation, sql: str) -> NoonmarkError:
    with pytest.raises(NoonmarkError) as caught:
        await client.ask(sql)
    return caught.value


async def people(opened: Database) -> tuple[Conversation, Conversation]:
    """A superuser, and a role without rights beside a schema with a table that it may read."""
    root = await connect(opened)
    for sql in (
        "create role ann login",
        "create schema s",
        "create table s.t (a int)",
        "create view s.v as select a from s.t",
        "create table p (a int)",
        "grant select, insert on s.t to ann",
    ):
        await root.ask(sql)
    return root, Conversation(await opened.connect("ann", "noonmark", {}, "test"))


@with_database
async def test_what_is_in_a_schema_is_named_with_usage_alone(opened: Database) -> None:
    root, ann = await people(opened)
    for sql in ("select * from s.t", "insert into s.t values (1)", "create view public.x as table"):
        error = await refused(ann, sql.replace("as table", "as select * from s.t"))
        assert isinstance(error, InsufficientPrivilege), sql
    error = await refused(ann, "select * from s.t")
    assert (error.sqlstate, error.message) == ("42501", "permission denied for schema s")
    assert error.hint == "Its owner may GRANT USAGE ON SCHEMA s TO ann."
    await root.ask("grant usage on schema s to ann")
    assert await ann.ask("insert into s.t values (1)") == "INSERT 0 1"
    assert await ann.ask("select * from s.t") == [(1,)]
    assert (await refused(ann, "select * from s.v")).message == "permission denied for view v"
    await root.ask("grant select on all tables in schema s to ann")
    assert await ann.ask("select * from s.v") == [(1,)]
    await root.ask("revoke usage on schema s from ann")
    assert "schema s" in (await refused(ann, "select * from s.v")).message


@with_database
async def test_making_needs_create(opened: Database) -> None:
    root, ann = await people(opened)
    for sql, what in (
        ("create table mine (a int)", "schema public"),
        ("create table s.mine (a int)", "schema s"),
        ("create view mine as select 1 as x", "schema public"),
        ("create schema mine", "database noonmark"),
    ):
        error = await refused(ann, sql)
        assert (error.sqlstate, error.message) == ("42501", f"permission denied for {what}"), sql
    await root.ask("grant create on schema public to ann")
    assert await ann.ask("create table mine (a int)") == "CREATE TABLE"
    assert await ann.ask("insert into mine values (1)") == "INSERT 0 1"
    await root.ask("grant create on database noonmark to ann")
    assert await ann.ask("create schema own") == "CREATE SCHEMA"
    assert await ann.ask("create table own.t (a int)") == "CREATE TABLE"
    await root.ask("revoke all on schema public from public")
    assert "schema public" in (await refused(ann, "select * from mine")).message
    assert isinstance(await refused(root, "drop schema public cascade"), DependentObjects)
    await root.ask("revoke connect on database noonmark from public")
    with pytest.raises(InsufficientPrivilege, match="database noonmark"):
        await opened.connect("ann", "noonmark", {}, "test")


@with_database
async def test_rights_as_sql_tells_of_them(opened: Database) -> None:
    root, ann = await people(opened)
    await root.ask("grant usage on schema s to public")
    asked = (
        "select has_schema_privilege('s', 'usage'), has_schema_privilege('s', 'create'), "
        "has_schema_privilege('ann', 'public', 'usage'), has_database_privilege('noonmark', "
        "'create'), has_database_privilege('noonmark', 'connect'), "
        "pg_has_role('noonmark', 'member')"
    )
    assert await ann.ask(asked) == [(True, False, True, False, True, False)]
    acls = "select array_to_string(nspacl, ' ') from pg_namespace where nspname in ('s', 'public')"
    assert await root.ask(f"{acls} order by nspname") == [
        ("noonmark=UC/noonmark =U/noonmark",),
        ("noonmark=UC/noonmark =U/noonmark",),
    ]
    table = "select array_to_string(relacl, ' ') from pg_class where relname = 't'"
    assert await root.ask(table) == [("noonmark=arwdD/noonmark ann=ar/noonmark",)]


@with_database
async def test_search_path_is_where_things_are_made(opened: Database) -> None:
    client = await connect(opened)
    for sql in (
        "create schema s",
        "create table t (a int)",
        "set search_path = s, public",
        "create table t (b text)",
        "create view v as select b from t",
    ):
        await client.ask(sql)
    assert {item.full_name for item in opened.catalog.items("table", "view")} == {
        "public.t",
        "s.t",
        "s.v",
    }
    await client.ask("insert into t values ('x')")
    assert await client.ask("select * from v") == [("x",)]
    await client.ask("alter view v rename to w")
    await client.ask("drop view w")
    await client.ask("drop table t")
    assert [item.full_name for item in opened.catalog.items("table")] == ["public.t"]
    await client.ask("drop table t")
