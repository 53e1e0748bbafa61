"""What is much to plan is planned beside others, however short its text is: `adapter.weight`.

A view of a view that is there twice doubles with every one of a few short texts; and DDL that is
much to plan keeps nobody else's DDL waiting, and is ended by its timeout.
"""

from __future__ import annotations

import asyncio
import itertools
import time

import pytest

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import Item
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.database import Database
from noonmark.adapter.planner import HERE_MAX
from noonmark.adapter.weight import text_weight, weight_of
from noonmark.clock import SYSTEM
from noonmark.errors import QueryCanceled, UndefinedTable
from support.house.longest_piece import longest_piece
from support.serve.reading import Conversation, connect, with_database

pytestmark = pytest.mark.alone

#: Collections of garbage and first imports are among it; without what is tested here, seconds.
PIECE_MAX_S = 0.4
NUMBERS = ", ".join(map(str, range(50_000)))
BRANCHES = " ".join(f"when {n} then {n} + {n}" for n in range(10_000))
#: Seconds of planning each.
LONG = {
    "a view": f"create view made as select case k {BRANCHES} end from kv",
    "a check": f"create table made (k int, check (k in ({NUMBERS})))",
    "a domain": f"create domain made as int check (value in ({NUMBERS}))",
    "another check": f"alter table kv add check (k in ({NUMBERS}))",
}


async def doubled(client: Conversation, count: int) -> None:
    await client.ask("create table kv (k int primary key, v text)")
    await client.ask("insert into kv values (1, 'a'), (2, 'b')")
    await client.ask("create view v0 as select k as x from kv")
    for n in range(1, count):
        await client.ask(f"create view v{n} as select p.x from v{n - 1} p, v{n - 1} q")


@pytest.mark.timeout(120, method="signal")
@with_database
async def test_views_of_views_are_planned_beside_others(opened: Database) -> None:
    client = await connect(opened)
    with longest_piece() as piece:
        await doubled(client, 11)
        await client.ask("set statement_timeout = '300ms'")
        for sql in ("select * from v10", "insert into kv select x from v10", "table v10",
                    "create view v11 as table v10", "explain select * from v10"):  # fmt: skip
            with pytest.raises(QueryCanceled):
                await client.ask(sql)
    assert piece[0] < PIECE_MAX_S
    await client.ask("set statement_timeout = 0")
    assert await client.ask("select count(*) from v3") == [(2**8,)]


@with_database
async def test_a_query_weighs_what_its_own_views_weigh(opened: Database) -> None:
    client = await connect(opened)
    await doubled(client, 6)
    await client.ask('create view "odd ""one" as table v5')
    await client.ask("create schema s")
    await client.ask("create view s.v0 as table v5")
    catalog = opened.catalog
    assert weight_of(catalog, "select k from kv") == text_weight("select k from kv") < HERE_MAX
    weights = [weight_of(catalog, f"table v{n}") for n in range(1, 6)]
    for before, after in itertools.pairwise(weights):
        assert after > 1.5 * before
    for text in ("table V5", 'table "v5"', 'table U&"\\0076\\0035"', 'table "odd ""one"',
                 "table s.v0"):  # fmt: skip
        assert weight_of(catalog, text) >= weights[-1], text
    assert weight_of(catalog, "select * from v5, v5") > 1.9 * weights[-1]
    await client.ask("drop view s.v0")
    await client.ask("alter view v5 rename to w5")
    assert weight_of(opened.catalog, "table v5") < HERE_MAX
    assert weight_of(opened.catalog, "table w5") == weights[-1]


def test_rights_below_a_view_are_asked_once_each() -> None:
    """Of twice as many ways down with every view of two views, all are one."""
    items = [Item(1, "table", "public", "t", owner="ann")]
    for n in range(60):
        below = (1,) if n == 0 else (2 * n, 2 * n + 1)
        for number in (2 * n + 2, 2 * n + 3):
            items.append(Item(number, "view", "public", f"v{number}", needs=below, owner="ann"))
    items.append(Item(1_000, "role", "", "ann"))
    begun = time.thread_time()
    Access(Catalog.of(items), "ann", "SELECT").resolve("relation", ("v120",))
    assert time.thread_time() - begun < PIECE_MAX_S


@pytest.mark.parametrize("name", sorted(LONG))
def test_long_ddl_keeps_nobody_waiting_and_is_ended(name: str) -> None:
    @with_database
    async def scenario(opened: Database) -> None:
        client, other = await connect(opened), await connect(opened)
        await client.ask("create table kv (k int primary key, v text)")
        await client.ask("insert into kv values (1, 'a'), (2, 'b')")
        await opened.workers.warm()
        parsed = await client.session.prepare(LONG[name])
        await client.ask("set statement_timeout = '300ms'")
        begun = SYSTEM.monotonic()
        with longest_piece() as piece, pytest.raises(QueryCanceled):
            await client.session.execute(parsed)
        assert SYSTEM.monotonic() - begun < 2
        assert piece[0] < PIECE_MAX_S
        await client.ask("set statement_timeout = 0")
        task = asyncio.ensure_future(client.session.execute(parsed))
        await asyncio.sleep(0.1)
        for _ in range(3):
            await other.ask("create table beside (a int)")
            await other.ask("drop table beside")
        assert not task.done()  # theirs came and went while this one was planned
        await task

    scenario()


@with_database
async def test_long_ddl_meets_the_catalog_that_others_changed(opened: Database) -> None:
    client, other = await connect(opened), await connect(opened)
    await client.ask("create table kv (k int primary key, v text)")
    parsed = await client.session.prepare(LONG["a view"])
    task = asyncio.ensure_future(client.session.execute(parsed))
    await asyncio.sleep(0.1)
    await other.ask("alter table kv rename to moved")
    with pytest.raises(UndefinedTable):
        await task
    await other.ask("alter table moved rename to kv")
    await client.session.execute(parsed)
    assert await client.ask("table made") == []
