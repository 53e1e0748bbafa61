"""Rows that a role may write and not read are in nothing that it is told.

PostgreSQL leaves the row out of an error's detail where the role has no SELECT on its table; so it
is here, by every way to write. What keeps rows of its own is made by who may read them.
"""

from __future__ import annotations

import pytest

from noonmark.adapter.database import Database
from noonmark.adapter.statement.dml.copy import CopyFrom
from noonmark.errors import InsufficientPrivilege, NoonmarkError
from support.serve.reading import Conversation, connect, with_database

SETUP = (
    "create role eve login",
    "create schema hers",
    "grant usage, create on schema hers to eve",
    "create table ins (a int check (a > 0), t text default 'UNSEEN', b int not null default 1, "
    "g text generated always as ('UNSEEN' || a) stored, unique (a, t))",
    "create table upd (a int not null check (a > 0), s text unique, primary key (a))",
    "insert into upd values (5, 'UNSEEN'), (6, 'UNSEEN too')",
    "create table parent (k text primary key)",
    "insert into parent values ('UNSEEN')",
    "create table child (r text references parent, w text default 'UNSEEN' references parent "
    "deferrable initially deferred)",
    "insert into child values ('UNSEEN')",
    "insert into ins (a) values (1)",
    "create table private (s text)",
    "insert into private values ('UNSEEN')",
    "create view hers.over as select s::int as n from private",
)
#: What is refused, and what its detail says to who may read; told to eve where it has no row.
WRITES = {
    "insert into ins (a) values (-1)": None,
    "insert into ins (a) values (1)": None,
    "insert into ins (a, b) values (2, null)": None,
    "update upd set a = -1": None,
    "update upd set a = null": None,
    "update upd set a = 7": None,
    "delete from parent": 'Key is still referenced from table "child".',
    "insert into child values ('lost')": 'Key is not present in table "parent".',
    "begin; update upd set a = -1": None,
    "begin; insert into child (w) values ('lost'); commit":
        'Key is not present in table "parent".',
}  # fmt: skip


async def refused(client: Conversation, sql: str) -> NoonmarkError:
    """The error of the last of several statements; the transaction is over."""
    *before, last = sql.split("; ")
    for each in before:
        await client.ask(each)
    with pytest.raises(NoonmarkError) as found:
        await client.ask(last)
    if client.session.status != "idle":
        await client.ask("rollback")
    return found.value


async def prepared(opened: Database) -> tuple[Conversation, Conversation]:
    boss = await connect(opened)
    for sql in SETUP:
        if "hers.over" not in sql:
            await boss.ask(sql)
    await boss.ask("grant insert on ins, child to eve")
    await boss.ask("grant update on upd to eve")
    await boss.ask("grant delete on parent to eve")
    eve = Conversation(await opened.connect("eve", "noonmark", {}, "test"))
    await eve.ask(SETUP[-1])
    return boss, eve


@with_database
async def test_errors_of_writes_show_rows_to_who_may_read_them(opened: Database) -> None:
    boss, eve = await prepared(opened)
    for sql, told in WRITES.items():
        error, whole = await refused(eve, sql), await refused(boss, sql)
        assert error.detail == told, sql
        assert "UNSEEN" not in f"{error} {error.fields}", sql
        assert (error.sqlstate, error.message) == (whole.sqlstate, whole.message)
        assert whole.detail != told
        assert whole.detail is not None
    await boss.ask("grant select on upd to eve")
    shown = await refused(eve, "update upd set a = -1")
    assert shown.detail == (await refused(boss, "update upd set a = -1")).detail


async def copied(copy: CopyFrom, value: int) -> None:
    await copy.write([(value,)])
    await copy.finish()


@pytest.mark.parametrize("value", [-1, 1])
def test_so_does_copy(value: int) -> None:
    @with_database
    async def scenario(opened: Database) -> None:
        _, eve = await prepared(opened)
        outcome = await eve.session.execute(await eve.session.prepare("copy ins (a) from stdin"))
        assert isinstance(outcome, CopyFrom)
        with pytest.raises(NoonmarkError) as found:
            await copied(outcome, value)
        assert found.value.detail is None

    scenario()


@with_database
async def test_an_index_keeps_rows_that_its_maker_may_read(opened: Database) -> None:
    _, eve = await prepared(opened)
    with pytest.raises(InsufficientPrivilege, match="permission denied for table private"):
        await eve.ask("create index kept on hers.over (n)")
