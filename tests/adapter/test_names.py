"""Every statement that takes a name: by the session's path, with a schema, taken, and unknown.

Law: an unqualified name means the first object that `search_path` finds; a qualified one means the
object in that schema; a name that is taken is 42P07 (relations), 42P06 (schemas) or 42710; one that
means nothing is an error of its kind. The statements are enumerated: one that is not here fails the
test.
"""

from __future__ import annotations

import asyncio
import dataclasses
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from noonmark.adapter.database import Database
from noonmark.adapter.names import _as_made
from noonmark.errors import NoonmarkError
from noonmark.rows import types as t
from noonmark.rows.schema import Column, Schema
from noonmark.sql.meaning.evaluation import contents
from noonmark.sql.parse import plan_query
from noonmark.sql.statement import statement as st
from noonmark.sql.statement.base import Name
from support.serve.reading import Conversation, connect, database, with_database

#: By statement: its text with NAME for the name, and the SQLSTATE where nothing has the name.
USES: dict[str, tuple[str, str]] = {
    "Select": ("select * from NAME", "42P01"),
    "Insert": ("insert into NAME values (1)", "42P01"),
    "Update": ("update NAME set a = a", "42P01"),
    "Delete": ("delete from NAME where false", "42P01"),
    "Truncate": ("truncate NAME", "42P01"),
    "Copy": ("copy NAME to stdout", "42P01"),
    "Maintain": ("vacuum NAME", "42P01"),
    "Lock": ("lock table NAME in access share mode", "42P01"),
    "Subscribe": ("declare c cursor for subscribe NAME", "42P01"),
    "Explain": ("explain select * from NAME", "42P01"),
    "ExplainTimestamp": ("explain timestamp for select * from NAME", "42P01"),
    "AddColumn": ("alter table NAME add column z int", "42P01"),
    "AlterTable": ("alter table NAME alter column a set default 1", "42P01"),
    "Rename": ("alter table NAME rename to other", "42P01"),
    "SetSchema": ("alter table NAME set schema s", "42P01"),
    "Swap": ("alter table NAME swap with lone", "42P01"),
    "AlterSource": ("alter table NAME set (retain history for '1h')", "42P01"),
    "AlterOwner": ("alter table NAME owner to noonmark", "42P01"),
    "Comment": ("comment on table NAME is 'x'", "42P01"),
    "Grant": ("grant select on table NAME to public", "42P01"),
    "Revoke": ("revoke select on table NAME from public", "42P01"),
    "Show": ("show columns from NAME", "42P01"),
    "ShowCreate": ("show create table NAME", "42P01"),
    "CreateIndex": ("create index i on NAME (a)", "42P01"),
    "CreateView": ("create view w as select * from NAME", "42P01"),
    "CreateTableAs": ("create table w as select * from NAME", "42P01"),
    "Refresh": ("refresh materialized view NAME", "42P01"),
    "Drop": ("drop table NAME", "42P01"),
}
IN_A_TRANSACTION = ("Lock", "Subscribe")
#: By kind: how one is made, with NAME for the name; the SQLSTATE where the name is taken.
MAKES: dict[str, tuple[str, str]] = {
    "table": ("create table NAME (a int)", "42P07"),
    "view": ("create view NAME as select 1 as a", "42P07"),
    "source": ("create source NAME from load generator counter", "42P07"),
    "webhook": ("create source NAME from webhook body format json check (true)", "42P07"),
    "secret": ("create secret NAME as 'x'", "42710"),
    "sequence": ("create sequence NAME", "42P07"),
    "schema": ("create schema NAME", "42P06"),
    "role": ("create role NAME", "42710"),
    "type": ("create type NAME as enum ('a')", "42710"),
}


async def world(opened: Database) -> Conversation:
    client = await connect(opened)
    for sql in (
        "create schema s", "create table base (a int)", "create table t (a text)",
        "create table s.t (a int)", "insert into s.t values (7)",
        "create table s.lone (a int)", "insert into s.lone values (8)",
    ):  # fmt: skip
        await client.ask(sql)
    return client


async def state_of(client: Conversation, sql: str) -> str:
    try:
        await client.ask(sql)
    except NoonmarkError as error:
        return error.sqlstate
    return ""


@pytest.mark.parametrize("kind", USES)
def test_a_name_is_found_by_the_path_and_by_its_schema(kind: str) -> None:
    @with_database
    async def check(opened: Database) -> None:
        text, unknown = USES[kind]
        client = await world(opened)
        await client.ask("set search_path = s, public")
        for name in ("lone", "s.lone"):
            sql = text.replace("NAME", name)
            if kind in IN_A_TRANSACTION:
                await client.ask("begin")
            if kind == "Copy":
                await client.session.execute(await client.session.prepare(sql))
            elif kind == "CreateIndex":
                # It is kept where executors can open it, which memory is not: that comes later.
                assert await state_of(client, sql) not in ("", unknown)
            elif kind == "Refresh":
                assert await state_of(client, sql) == "42809"  # it is found, and it is a table
            else:
                await client.ask(sql)
            if kind in IN_A_TRANSACTION:
                await client.ask("rollback")
            if kind in (
                "AddColumn",
                "Rename",
                "CreateIndex",
                "CreateView",
                "CreateTableAs",
                "Drop",
            ):
                break  # it is changed now
        await client.ask("set search_path = public")
        for name in ("lone" if kind != "Drop" else "nothing", "nothing", "s.nothing"):
            if kind in IN_A_TRANSACTION:
                await client.ask("begin")
            assert await state_of(client, text.replace("NAME", name)) == unknown, name
            if kind in IN_A_TRANSACTION:
                await client.ask("rollback")

    check()


@with_database
async def test_the_path_decides_which_of_two_is_meant(opened: Database) -> None:
    client = await world(opened)
    await client.ask("set search_path = s, public")
    assert await client.ask("select * from t") == [(7,)]
    assert await client.ask("select 't'::regclass = 's.t'::regclass") == [(True,)]
    assert await client.ask("select 's.t'::regclass::int::regclass, to_regclass('t') is null") == [
        ("t", False)
    ]
    assert await client.ask("select 'public.t'::regclass::int::regclass") == [("public.t",)]
    assert await client.ask("select pg_table_is_visible('public.t'::regclass)") == [(False,)]
    assert await client.ask("select pg_table_is_visible('s.lone'::regclass)") == [(True,)]
    assert await client.ask("select current_schema(), current_schemas(false)") == [
        ("s", ["s", "public"])
    ]
    await client.ask("alter table t add column z int")
    await client.ask("reset search_path")
    assert await client.ask("select pg_table_is_visible('s.t'::regclass)") == [(False,)]
    assert await client.ask("select * from t") == []
    assert await client.ask("select * from s.t") == [(7, None)]


@pytest.mark.parametrize("kind", MAKES)
def test_a_name_that_is_taken_is_refused(kind: str) -> None:
    @with_database
    async def check(opened: Database) -> None:
        text, taken = MAKES[kind]
        client = await world(opened)
        if kind in ("schema", "role"):
            await client.ask(text.replace("NAME", "x"))
            assert await state_of(client, text.replace("NAME", "x")) == taken
            return
        await client.ask("set search_path = s, public")
        await client.ask(text.replace("NAME", "made"))
        asked = "select s.name from mz_objects o join mz_schemas s on s.id = o.schema_id"
        ((schema,),) = await client.ask(f"{asked} where o.name = 'made'")
        assert schema == "s"
        for name in ("made", "s.made"):
            assert await state_of(client, text.replace("NAME", name)) == taken
        assert await state_of(client, text.replace("NAME", "t")) != ""
        assert await state_of(client, text.replace("NAME", "public.made")) == ""
        assert await state_of(client, text.replace("NAME", "nowhere.made")) == "3F000"

    check()


@with_database
async def test_the_path_decides_which_type_is_changed(opened: Database) -> None:
    client = await world(opened)
    await client.ask("create type mood as enum ('here')")
    await client.ask("create type s.mood as enum ('there')")
    await client.ask("set search_path = s, public")
    await client.ask("alter type mood add value 'more'")
    await client.ask("alter type public.mood rename value 'here' to 'now'")
    assert await client.ask("select enum_range(null::mood)::text") == [("{there,more}",)]
    assert await client.ask("select enum_range(null::public.mood)::text") == [("{now}",)]
    for name in ("nothing", "s.nothing"):
        assert await state_of(client, f"alter type {name} add value 'x'") == "42704"
        assert await state_of(client, f"alter type {name} rename value 'x' to 'y'") == "42704"
    await client.ask("set search_path = public")
    assert await state_of(client, "select 'there'::mood") == "22P02"


@with_database
async def test_what_belongs_to_a_source_is_in_its_schema(opened: Database) -> None:
    client = await world(opened)
    await client.ask("create source s.auction from load generator auction for all tables")
    items = {item.full_name for item in opened.catalog.items("subsource", "progress", "errors")}
    assert items
    assert all(name.startswith("s.") for name in items)
    some = "for tables (users as people) expose progress as steps"
    await client.ask(f"create source s.one from load generator auction {some}")
    assert opened.catalog.find(("s", "people")) is not None
    assert opened.catalog.find(("s", "steps")) is not None


@with_database
async def test_there_is_one_cluster(opened: Database) -> None:
    client = await world(opened)
    assert await client.ask("show cluster") == [("default",)]
    assert [row[0] for row in await client.ask("show clusters")] == ["default"]
    await client.ask("set cluster = default")
    assert await state_of(client, "set cluster = other") == "22023"
    assert await state_of(client, "create index i in cluster other on base (a)") == "42704"
    assert (
        await state_of(client, "create materialized view m in cluster other as select 1") == "42704"
    )
    assert (
        await state_of(client, "create source c in cluster other from load generator counter")
        == "42704"
    )


#: Statements whose names are tested beside others: what makes (above), and what needs a world.
ELSEWHERE = {
    "CreateTable", "CreateView", "CreateMaterializedView", "CreateSource", "CreateSink",
    "CreateConnection", "CreateSecret", "CreateSchema", "CreateRole", "CreateIndex",
    "CreateSequence", "CreateEnum", "AddLabel", "RenameLabel",
    "Audit", "ExplainView", "ValidateConnection", "AlterSecret", "AlterConnection",
    "AlterSourceTables", "AlterSequence", "SetConstraints",
}  # fmt: skip


def test_every_statement_with_a_name_is_here() -> None:
    found = {name for name, kind in vars(st).items() if _has_name(kind)}
    assert found - set(USES) - ELSEWHERE == set()


def _has_name(kind: Any) -> bool:
    if not (isinstance(kind, type) and issubclass(kind, st.Statement)):
        return False
    if not dataclasses.is_dataclass(kind):
        return False
    hints = get_type_hints(kind).values()
    return any(Name is hint or Name in get_args(hint) for hint in hints)


def test_a_view_of_before_json_was_a_type_keeps_its_documents() -> None:
    query = plan_query("""select 1 as a, '{"b" : 1}'::json as j""", {})
    made = Schema((Column("a", t.Integer()), Column("j", t.Jsonb())))
    kept = _as_made(query, made)
    assert [each.type for each in kept.relation.schema] == [t.Integer(), t.Jsonb()]
    assert _as_made(query, query.relation.schema) is query


def test_a_view_keeps_the_sizes_that_its_columns_were_given() -> None:
    query = plan_query("select 1.25::numeric(10,2) + '0.006' as a, 'long' as b, 1 as c", {})
    kinds = t.Numeric(11, 2), t.Varchar(2), t.Integer()
    made = Schema(tuple(Column(name, kind) for name, kind in zip("abc", kinds, strict=True)))
    kept = _as_made(query, made)
    assert [each.type for each in kept.relation.schema] == list(kinds)
    assert contents(kept.relation, {}) == {(Decimal("1.26"), "lo", 1): 1}


ALTERED = (
    "alter table t rename to other",
    "alter table other add column d int",
    "alter view middle rename to centre",
    "alter materialized view v rename to w",
    "create schema apart",
    "alter table other set schema apart",
    "alter materialized view w set schema apart",
    "alter table apart.other add column e text",
)


def test_what_a_view_means_does_not_depend_on_names_or_new_columns(tmp_path: Path) -> None:
    """Otherwise it would be computed anew when the server starts again."""

    async def go() -> None:
        async with asyncio.timeout(60), database(str(tmp_path)) as opened:
            client = await connect(opened)
            await client.ask("create table t (a int, b text)")
            await client.ask("create index i on t (b)")
            await client.ask("create view middle as select * from t where a > 0")
            await client.ask(
                "create materialized view v as select middle.b, count(*) as n "
                "from middle join t on t.a = middle.a group by middle.b"
            )
            await client.ask("create materialized view above as select * from v where n > 1")
            for statement in ("", *ALTERED):
                if statement:
                    await client.ask(statement)
                for worker in opened.work.views.values():
                    owned = (await asyncio.to_thread(worker.take_up)).owned
                    assert not owned.is_foreign, (statement, owned.name)
            # An index is where its table is.
            assert opened.catalog.find(("apart", "i")) is not None

    asyncio.run(go())
