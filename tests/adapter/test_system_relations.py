"""System relations and session functions: every relation can be read, and says what is so."""

from __future__ import annotations

import asyncio

import pytest

from noonmark.adapter.catalog import Item
from noonmark.adapter.database import Database
from noonmark.adapter.schedule.lag import lag_ms
from noonmark.adapter.system.relations import relations, system_rows
from noonmark.errors import NoonmarkError
from noonmark.rows.pg.text import format_value
from support.serve.reading import Conversation, connect, database, with_database


async def populated(opened: Database) -> Conversation:
    client = await connect(opened)
    for sql in (
        "create table t (a int primary key, b varchar(9) not null default 'x', c numeric(10,2)[])",
        "create table u (k int, v timestamptz)",
        "create view w as select a, b from t",
        "create role amy",
        "grant select on t to amy",
        "create schema s",
        "create table s.t (z int)",
        "comment on table t is 'about t'",
        "comment on column t.b is 'about b'",
        "insert into t values (1, 'one')",
    ):
        await client.ask(sql)
    return client


def test_every_relation_has_rows_of_its_schema() -> None:
    async def go() -> None:
        async with database() as opened:
            client = await populated(opened)
            for name, each in relations().items():
                for row in system_rows(client.session, name):
                    assert len(row) == len(each.schema), name
                    for value, column in zip(row, each.schema, strict=True):
                        assert value is not None or column.nullable, (name, column.name)
                        if value is not None:
                            format_value(value, column.type)
                got = await client.ask(f"select * from {name}")
                assert len(got) == len(system_rows(client.session, name)) or name.endswith("ticks")

    asyncio.run(go())


@with_database
async def test_frontiers_are_those_of_the_location(opened: Database) -> None:
    client = await populated(opened)
    rows = await client.ask(
        "select f.name, f.kind, f.since <= f.upper, f.upper = m.write_frontier "
        "from noonmark.frontiers f join mz_internal.mz_frontiers m on m.object_id = f.id order by 1"
    )
    assert rows == [
        ("t", "table", True, True),
        ("t", "table", True, True),
        ("u", "table", True, True),
    ]
    behind = await client.ask(
        "select f.name, l.lag >= interval '0', l.lag < interval '10 min' from noonmark.frontiers f "
        "join mz_internal.mz_wallclock_global_lag l on l.object_id = f.id order by 1"
    )
    assert behind == [("t", True, True), ("t", True, True), ("u", True, True)]
    ((upper,),) = await client.ask("select upper from noonmark.frontiers where name = 'u'")
    assert upper == opened.client.state.collection("u").upper.only()
    ((shards, rows_of_t),) = await client.ask(
        "select count(*), max(rows) filter (where name = 't') from noonmark.shards"
    )
    assert shards == len(opened.client.state.collections)
    assert rows_of_t == 1


@with_database
async def test_nothing_is_behind_what_is_not_written(opened: Database) -> None:
    """The law of `noonmark.adapter.schedule.lag`, over tables, a source, and views over them."""
    client = await populated(opened)
    await client.ask("create source c from load generator counter (tick interval '1s')")
    state = opened.client.state
    table = opened.catalog.resolve(["u"])
    source = opened.catalog.resolve(["c"])
    written = state.collection(table.collection).upper.only()
    assert written is not None
    views = [
        Item(901, "materialized-view", "public", "over_table", needs=(table.number,)),
        Item(902, "materialized-view", "public", "over_source", needs=(source.number,)),
        Item(903, "materialized-view", "public", "over_both", needs=(901, source.number)),
        Item(904, "sink", "public", "out", needs=(901,)),
    ]
    catalog = opened.catalog.changed(added=views)
    later = written + 3_600_000

    def lags(upper: int) -> list[int | None]:
        return [lag_ms(catalog, state, each, upper, later) for each in views]

    assert lags(written) == [0, 3_600_000, 3_600_000, 0]
    assert lags(written - 1) == [3_600_001] * 4
    assert lag_ms(catalog, state, views[1], None, later) is None
    assert lag_ms(catalog, state, table, written, later) == 0
    ((shown,),) = await client.ask("select lag_ms from noonmark.frontiers where name = 'u'")
    assert shown == 0


@with_database
async def test_who_stands_on_whom(opened: Database) -> None:
    client = await populated(opened)
    got = await client.ask(
        "select o.name, r.name from mz_internal.mz_object_dependencies d "
        "join mz_catalog.mz_objects o on o.id = d.object_id "
        "join mz_catalog.mz_objects r on r.id = d.referenced_object_id"
    )
    assert got == [("w", "t")]


@with_database
async def test_the_catalog_as_postgresqls_clients_ask(opened: Database) -> None:
    client = await populated(opened)
    columns = await client.ask(
        "select a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, "
        "pg_get_expr(d.adbin, d.adrelid), col_description(a.attrelid, a.attnum) "
        "from pg_attribute a left join pg_attrdef d "
        "on d.adrelid = a.attrelid and d.adnum = a.attnum "
        "where a.attrelid = 't'::regclass and a.attnum > 0 order by a.attnum"
    )
    assert columns == [
        ("a", "integer", True, None, None),
        ("b", "character varying(9)", True, "'x'", "about b"),
        ("c", "numeric(10,2)[]", False, None, None),
    ]
    keys = await client.ask(
        "select c.relname, i.indkey, pg_get_indexdef(i.indexrelid), pg_get_constraintdef(k.oid) "
        "from pg_index i join pg_class c on c.oid = i.indexrelid "
        "join pg_constraint k on k.conindid = i.indexrelid where i.indisprimary"
    )
    made = "CREATE UNIQUE INDEX t_pkey ON public.t USING btree (a)"
    assert keys == [("t_pkey", [1], made, "PRIMARY KEY (a)")]
    asked = await client.ask(
        "select c.oid::regclass, n.nspname, obj_description(c.oid, 'pg_class') "
        "from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace "
        "where c.relname operator(pg_catalog.~) '^(t)$' collate pg_catalog.default "
        "and pg_catalog.pg_table_is_visible(c.oid)"
    )
    assert asked == [("t", "public", "about t")]
    ((definition,),) = await client.ask("select pg_get_viewdef('w'::regclass)")
    assert definition == " select a, b from t;"
    assert await client.ask(
        "select table_name from information_schema.tables where table_schema = 's'"
    ) == [("t",)]


@with_database
async def test_the_session_answers_for_itself(opened: Database) -> None:
    client = await populated(opened)
    ((user, name, schema, pid),) = await client.ask(
        "select current_user, current_database(), current_schema, pg_backend_pid()"
    )
    assert (user, name, schema, pid) == ("noonmark", "noonmark", "public", client.session.id)
    amy = Conversation(await opened.connect("amy", "noonmark", {}, "test"))
    rights = "select has_table_privilege('t', 'select'), has_table_privilege('u', 'select')"
    assert await amy.ask(rights) == [(True, False)]
    ((same,),) = await client.ask("select count(distinct x) from (values (now()), (now())) v(x)")
    assert same == 1, "one moment for a whole statement"
    with pytest.raises(NoonmarkError, match="nope"):
        await client.ask("select 'nope'::regclass")
    with pytest.raises(NoonmarkError, match="now"):
        await client.ask("create view x as select now()")


@with_database
async def test_variables_are_checked(opened: Database) -> None:
    client = await connect(opened, application_name="me", TimeZone="Europe/Berlin", nonsense="1")
    assert await client.ask("show application_name") == [("me",)]
    assert await client.ask("show timezone") == [("UTC",)], "a driver's own zone is left out"
    assert await client.ask("set statement_timeout = '5s'") == "SET"
    assert await client.ask("show statement_timeout") == [("5s",)]
    assert await client.ask("reset statement_timeout") == "RESET"
    assert await client.ask("select current_setting('statement_timeout')") == [("0",)]
    for sql, state in (
        ("set timezone = 'Europe/Berlin'", "22023"),
        ("set transaction_isolation = 'loose'", "22023"),
        ("set server_version = '1'", "25006"),
        ("set nope = 1", "42704"),
        ("show nope", "42704"),
        ("set local nope = 1", "42704"),
    ):
        with pytest.raises(NoonmarkError) as caught:
            await client.ask(sql)
        assert caught.value.sqlstate == state, sql
    await client.ask("set my.own = 'x'")
    await client.ask("begin")
    await client.ask("set local my.own = 'y'")
    assert await client.ask("show my.own") == [("y",)]
    await client.ask("commit")
    assert await client.ask("show my.own") == [("x",)]
    assert await client.ask("discard all") == "DISCARD ALL"
    with pytest.raises(NoonmarkError):
        await client.ask("select current_setting('my.own')")


@with_database
async def test_the_search_path_finds_names(opened: Database) -> None:
    client = await populated(opened)
    assert await client.ask("select * from t") == [(1, "one", None)]
    await client.ask("set search_path = s, public")
    assert await client.ask("select * from t") == []
    assert await client.ask("insert into t values (3)") == "INSERT 0 1"
    assert await client.ask("select * from s.t") == [(3,)]


@with_database
async def test_show_and_prepare(opened: Database) -> None:
    client = await populated(opened)
    assert await client.ask("show tables") == [("t", "about t"), ("u", "")]
    assert await client.ask("show tables from s") == [("t", "")]
    assert await client.ask("show columns from t where not nullable") == [
        ("a", False, "integer", ""),
        ("b", False, "character varying(9)", "about b"),
    ]
    assert await client.ask("show objects like 'w'") == [("w", "view", "")]
    assert await client.ask("show indexes on t") == [("t_pkey", "t", ["a"], "")]
    ((name, made),) = await client.ask("show create table t")
    assert name == "noonmark.public.t"
    await client.ask("drop table t cascade")
    await client.ask(made)
    assert [row[0] for row in await client.ask("show columns from t")] == ["a", "b", "c"]
    await client.ask("prepare p as insert into t values ($1, $2) returning a + 1")
    assert await client.ask("execute p (4, 'four')") == [(5,)]
    with pytest.raises(NoonmarkError, match="wrong number of parameters"):
        await client.ask("execute p (4)")
    await client.ask("deallocate p")
    with pytest.raises(NoonmarkError, match='"p" does not exist'):
        await client.ask("execute p (1, 'x')")
