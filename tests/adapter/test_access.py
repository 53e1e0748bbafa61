"""Who may use what (`catalog.rights`): secrets, connections, sinks, views, owners, roles."""

from __future__ import annotations

from typing import Any

import pytest

from noonmark.adapter.catalog.rights import NEEDS, ROLE_NEEDS
from noonmark.adapter.database import Database
from noonmark.errors import NoonmarkError
from support.serve.reading import Conversation, connect, with_database


async def denied(client: Conversation, sql: str) -> NoonmarkError:
    with pytest.raises(NoonmarkError) as caught:
        await client.ask(sql)
    assert caught.value.sqlstate == "42501", f"{sql}: {caught.value!r}"
    return caught.value


async def enter(opened: Database, user: str) -> Conversation:
    return Conversation(await opened.connect(user, "noonmark", {}, "test"))


async def people(opened: Database) -> tuple[Conversation, Conversation]:
    """A superuser with a table and a secret, and mallory, who has a schema of her own."""
    root = await connect(opened)
    for sql in (
        "create role mallory login password 'm'",
        "create schema hers",
        "grant all on schema hers to mallory",
        "create table money (a int)",
        "create secret s as 'planted-secret'",
        "create connection pg to postgres (host '127.0.0.1', password secret s)",
        "create connection k to kafka (broker '127.0.0.1:1')",
    ):
        await root.ask(sql)
    return root, await enter(opened, "mallory")


def test_every_place_has_one_row() -> None:
    places = [(need.statement, need.part, kind) for need in NEEDS for kind in need.kinds]
    assert len(places) == len(set(places))
    assert not {need.statement for need in NEEDS} & set(ROLE_NEEDS)


@with_database
async def test_a_secret_is_used_with_usage_alone(opened: Database) -> None:
    root, mallory = await people(opened)
    sql = "create connection hers.c to postgres (host 'h.example', password secret public.s)"
    assert (await denied(mallory, sql)).message == "permission denied for secret s"
    hook = (
        "create source hers.w from webhook body format text check (with (body, secret public.s as"
        " k) body = k)"
    )
    await denied(mallory, hook)
    await root.ask("grant usage on secret s to mallory")
    assert await mallory.ask(sql) == "CREATE CONNECTION"
    assert await mallory.ask(hook) == "CREATE SOURCE"
    await denied(mallory, "drop secret s")


@with_database
async def test_a_connection_is_used_with_usage_alone(opened: Database) -> None:
    _, mallory = await people(opened)
    await denied(mallory, "validate connection pg")
    await denied(
        mallory, "create source hers.x from kafka connection public.k (topic 't') format text"
    )
    await denied(
        mallory, "create source hers.x from postgres connection public.pg (publication 'p') "
        "for all tables"
    )  # fmt: skip
    assert (
        await denied(
            mallory,
            "create sink hers.x from hers.own into kafka connection public.k (topic 't') "
            "envelope debezium",
        )
    ).message == "permission denied for connection k"


@with_database
async def test_a_sink_reads_what_its_maker_may_read(opened: Database) -> None:
    root, mallory = await people(opened)
    await root.ask("grant usage on connection k to mallory")
    sql = "create sink hers.x from money into kafka connection k (topic 't') envelope debezium"
    assert (await denied(mallory, sql)).message == "permission denied for table money"


@with_database
async def test_nothing_is_made_in_the_schema_of_another(opened: Database) -> None:
    root, mallory = await people(opened)
    await root.ask("create schema theirs")
    tables = "for tables (users as theirs.users)"
    await denied(mallory, f"create source hers.x from load generator auction {tables}")
    await denied(mallory, "create source hers.x from load generator counter expose progress as "
                          "theirs.p")  # fmt: skip


@with_database
async def test_a_view_reads_with_the_rights_of_its_owner(opened: Database) -> None:
    root, mallory = await people(opened)
    for sql in (
        "create role ann", "grant all on schema hers to ann", "grant select on money to ann",
        "insert into money values (7)",
    ):  # fmt: skip
        await root.ask(sql)
    ann = await enter(opened, "ann")
    for sql in (
        "create view hers.v as select a from money",
        "create view hers.w as select a + 1 as b from hers.v",
        "grant select on hers.w to mallory",
    ):
        await ann.ask(sql)
    assert await mallory.ask("select * from hers.w") == [(8,)]
    await denied(mallory, "select * from hers.v")
    await denied(mallory, "select * from money")
    await root.ask("revoke select on money from ann")
    error = await denied(mallory, "select * from hers.w")
    assert (error.message, "ann" in str(error.detail)) == (
        "permission denied for table money",
        True,
    )
    # A view that reads what its owner may not can be made, and tells nothing.
    await mallory.ask("create view hers.x as select * from money")
    await denied(mallory, "select * from hers.x")
    await denied(root, "select * from hers.x")
    await denied(mallory, "create materialized view hers.m as select * from hers.x")


@with_database
async def test_owners_give_away_what_is_theirs(opened: Database) -> None:
    root, mallory = await people(opened)
    await root.ask("create role ann")
    await mallory.ask("create table hers.t (a int)")
    ann = await enter(opened, "ann")
    await denied(mallory, "alter table hers.t owner to ann")  # she is no member of ann
    await denied(ann, "alter table hers.t owner to ann")
    await root.ask("grant ann to mallory")
    await denied(mallory, "alter table hers.t owner to ann")  # ann may not make it there
    await root.ask("grant usage, create on schema hers to ann")
    assert await mallory.ask("alter table hers.t owner to ann") == "ALTER TABLE"
    assert await ann.ask("insert into hers.t values (1)") == "INSERT 0 1"
    assert await mallory.ask("select * from hers.t") == [(1,)]  # a member has its rights
    await root.ask("revoke ann from mallory")
    await denied(mallory, "select * from hers.t")
    await root.ask("reassign owned by ann to mallory")
    assert await mallory.ask("select * from hers.t") == [(1,)]
    await root.ask("alter schema hers owner to ann")
    assert await ann.ask("drop table hers.t") == "DROP TABLE"  # a schema's owner may


@with_database
async def test_default_privileges(opened: Database) -> None:
    root, mallory = await people(opened)
    await root.ask("create role ann")
    await root.ask("grant usage on schema hers to ann")
    ann = await enter(opened, "ann")
    await denied(ann, "alter default privileges for role mallory grant select on tables to ann")
    await mallory.ask("create table hers.before (a int)")
    await mallory.ask(
        "alter default privileges in schema hers grant select, insert on tables to ann"
    )
    await mallory.ask("alter default privileges grant usage on secrets to public")
    await mallory.ask("create table hers.t (a int)")
    await mallory.ask("create view hers.v as select a from hers.t")
    await mallory.ask("create secret hers.s as 'x'")
    await ann.ask("insert into hers.t values (1)")
    assert await ann.ask("select * from hers.v") == [(1,)]
    await denied(ann, "select * from hers.before")
    await denied(ann, "delete from hers.t")
    asked = "select has_secret_privilege('hers.s', 'usage')"
    assert await ann.ask(asked) == [(True,)]
    rows = await root.ask("select defaclobjtype, array_to_string(defaclacl, ' ') from "
                          "pg_default_acl order by 1")  # fmt: skip
    assert rows == [("r", "ann=ar/mallory"), ("s", "=U/mallory")]
    await mallory.ask("alter default privileges in schema hers revoke all on tables from ann")
    await mallory.ask("create table hers.later (a int)")
    await denied(ann, "select * from hers.later")


@with_database
async def test_roles_that_a_session_may_become(opened: Database) -> None:
    root, mallory = await people(opened)
    for sql in (
        "create role team nologin", "create role boss superuser", "create role ann noinherit",
        "grant select on money to team", "grant team to ann", "grant boss to mallory",
    ):  # fmt: skip
        await root.ask(sql)
    ann = await enter(opened, "ann")
    await denied(ann, "select * from money")  # NOINHERIT
    await denied(ann, "set role mallory")
    who = "select current_role, session_user, current_setting('is_superuser')"
    assert await ann.ask(who) == [("ann", "ann", "off")]
    assert await ann.ask("set role team") == "SET"
    assert await ann.ask(who) == [("team", "ann", "off")]
    assert await ann.ask("select * from money") == []
    assert await ann.ask("reset role") == "RESET"
    await denied(ann, "select * from money")
    assert await ann.ask("select pg_has_role('team', 'member'), pg_has_role('team', 'usage')") == [
        (True, False)
    ]
    # To be a superuser is inherited by nobody: she must say that she is the boss.
    await denied(mallory, "create role x")
    await denied(mallory, "set session authorization noonmark")
    await mallory.ask("set role boss")
    assert await mallory.ask(who) == [("boss", "mallory", "on")]
    await mallory.ask("set role none")
    assert mallory.session.settings["is_superuser"] == "off"
    await root.ask("set session authorization ann")
    assert await root.ask(who) == [("ann", "ann", "off")]
    await denied(root, "set role mallory")
    await denied(root, "create role x")
    assert await root.ask("set session authorization default") == "SET"
    assert await root.ask(who) == [("noonmark", "noonmark", "on")]


@with_database
async def test_the_built_in_superuser_takes_a_password(opened: Database) -> None:
    alice = await enter(opened, "alice")  # nobody made a role: whoever comes is a superuser
    await alice.ask("alter role noonmark password 'only-for-friends'")
    assert str(await opened.verifier("noonmark")).startswith("SCRAM-SHA-256$")
    with pytest.raises(NoonmarkError, match="does not exist"):
        await enter(opened, "mallory")
    assert await (await enter(opened, "alice")).ask("show is_superuser") == [("on",)]
    for sql in ("drop role noonmark", "drop role pg_read_server_files"):
        with pytest.raises(NoonmarkError):
            await alice.ask(sql)
    roles = await alice.ask("select rolname, rolsuper from pg_roles order by 1")
    assert roles == [("alice", True), ("noonmark", True), ("pg_read_server_files", False)]


@with_database
async def test_statements_of_others_are_not_shown(opened: Database) -> None:
    root, mallory = await people(opened)
    await root.ask("select 'of root'")
    asked = "select usename, query from pg_stat_activity order by pid"
    assert await mallory.ask(asked) == [
        ("noonmark", "<insufficient privilege>"), ("mallory", asked),
    ]  # fmt: skip
    rows: list[Any] = await root.ask(asked)
    assert rows == [("noonmark", asked), ("mallory", asked)]


@with_database
async def test_a_schema_that_may_not_be_named_hides_what_is_in_it(opened: Database) -> None:
    root, mallory = await people(opened)
    await root.ask("create schema theirs")
    await root.ask("create table theirs.t (a int)")
    messages = {(await denied(mallory, f"{sql} theirs.{name}")).message
                for sql in ("select * from", "drop table", "show columns from")
                for name in ("t", "nothing")}  # fmt: skip
    assert messages == {"permission denied for schema theirs"}


@with_database
async def test_writes_that_look_need_select_as_in_postgresql(opened: Database) -> None:
    root, mallory = await people(opened)
    await root.ask("create table keyed (a int primary key, b int)")
    await root.ask("grant insert, update, delete on keyed to mallory")
    for sql in (
        "insert into keyed values (1, 1)", "insert into keyed values (1, 1) on conflict do nothing",
        "update keyed set b = 2", "delete from keyed",
    ):  # fmt: skip
        await mallory.ask(sql)
    for sql in (
        "insert into keyed values (1, 1) returning a", "update keyed set b = b + 1",
        "update keyed set b = 1 where a = 1", "delete from keyed where a = 1",
        "delete from keyed returning *", "truncate keyed",
        "insert into keyed values (1, 1) on conflict (a) do update set b = 3",
        "update keyed set b = (select count(*) from keyed)",
        "insert into keyed select * from keyed",
    ):  # fmt: skip
        await denied(mallory, sql)


@with_database
async def test_who_has_the_connection_next_is_who_came_in(opened: Database) -> None:
    root, _ = await people(opened)
    await root.ask("set session authorization mallory")
    await root.ask("discard all")
    assert await root.ask("select current_user, session_user") == [("noonmark", "noonmark")]


@with_database
async def test_a_secret_is_no_way_to_name_a_file_of_the_server(opened: Database) -> None:
    root, mallory = await people(opened)
    sql = "create connection hers.c to postgres (host 'h.example', ssl certificate '/etc/passwd')"
    with pytest.raises(NoonmarkError, match="takes a text in PEM"):
        await mallory.ask(sql)
    await mallory.ask("create secret hers.path as '/etc/ssl/private/server.key'")
    await mallory.ask(
        "create connection hers.c to postgres (host '127.0.0.1', port 1, ssl key secret hers.path)"
    )
    with pytest.raises(NoonmarkError, match="takes a text in PEM"):
        await mallory.ask("validate connection hers.c")
    await root.ask(sql.replace("hers.c", "hers.d"))  # a superuser may: all executors have it


@pytest.mark.parametrize(
    "target",
    [
        "postgres (host 'localhost')",
        "postgres (host '/run/postgresql')",
        "kafka (brokers ('h.example:9092', '[::1]:9092'))",
        "confluent schema registry (url 'http://127.0.0.1:8081')",
    ],
)
def test_this_machine_is_for_superusers(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.delenv("NOONMARK_CONNECT_ALLOW", raising=False)

    @with_database
    async def check(opened: Database) -> None:
        root, mallory = await people(opened)
        assert await root.ask(f"create connection c to {target}") == "CREATE CONNECTION"
        with pytest.raises(NoonmarkError, match="are not allowed here") as caught:
            await mallory.ask(f"create connection hers.c to {target}")
        assert caught.value.sqlstate == "42501"

    check()
