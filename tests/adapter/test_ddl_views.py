"""Views in SQL, on Spark: created, read, renamed, replaced, restarted, audited, dropped."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from noonmark.adapter.catalog.store import SYSTEM_COLLECTIONS
from noonmark.adapter.database import Database
from noonmark.errors import DependentObjects, Unsupported
from support.serve.reading import Conversation, connect, database
from support.view.stored_views import age

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TOTALS = """
    create materialized view totals as
    select l.k, count(*) as n, sum(r.w) as total from big as l join r on l.k = r.k group by l.k
"""


async def world(opened: Database) -> Conversation:
    client = await connect(opened)
    for statement in (
        "create table l (k int, v int)",
        "create table r (k int, w int)",
        "create view big as select * from l where v > 10",
        TOTALS,
        "create materialized view top as select max(total) as most from totals",
        "create index by_total on totals (total)",
        "insert into l values (1, 11), (1, 12), (2, 13), (3, 1)",
        "insert into r values (1, 100), (2, 200), (3, 300)",
    ):
        await client.ask(statement)
    return client


async def answers(client: Conversation) -> list[Any]:
    return [
        await client.ask("select * from totals order by k"),
        await client.ask("select * from top"),
        await client.ask("select k from totals where total = 200"),
    ]


def holds(opened: Database) -> set[str]:
    return {each for each in opened.client.state.holds if each.startswith("view/")}


def test_the_life_of_views(tmp_path: Path, spark: SparkSession) -> None:
    async def first() -> None:
        async with asyncio.timeout(120), database(str(tmp_path), spark) as opened:
            client = await world(opened)
            assert await answers(client) == [[(1, 2, 200), (2, 1, 200)], [(200,)], [(1,), (2,)]]
            # A strict read sees every acknowledged write, through all views between.
            await client.ask("insert into l values (1, 14)")
            assert await client.ask("select * from top") == [(300,)]
            assert await client.ask("audit materialized view totals") == []
            await _rename(client, opened)

    async def second() -> None:
        async with asyncio.timeout(120), database(str(tmp_path), spark) as opened:
            client = await connect(opened)
            assert await client.ask("select * from totals2 order by k") == [
                (1, 3, 300), (2, 1, 200),
            ]  # fmt: skip
            await client.ask("insert into right_side values (2, 5)")
            assert await client.ask("select * from totals2 where k = 2") == [(2, 2, 205)]
            assert await client.ask("audit materialized view totals2") == []
            await _replace(client, opened)

    async def taken_up(aged: list[str]) -> None:
        """What was called otherwise by an earlier version is made anew, beside what is read."""
        async with asyncio.timeout(120), database(str(tmp_path), spark) as opened:
            client = await connect(opened)
            assert await client.ask("select * from totals2 order by k") == [
                (1, 3, 300), (2, 1, 200),
            ]  # fmt: skip
            await client.ask("alter table right_side rename to other_side")
            await client.ask("alter table other_side rename to right_side")
            assert await client.ask("audit materialized view totals2") == []
            assert aged
            assert not set(aged) & set(opened.client.state.names)

    asyncio.run(first())
    asyncio.run(taken_up(age(tmp_path)))
    age(tmp_path)
    asyncio.run(second())


async def _rename(client: Conversation, opened: Database) -> None:
    """Renaming a table, a view and a materialized view under the views that read them."""
    before = await client.ask("select * from totals order by k")
    for statement in (
        "alter table r rename to right_side",
        "alter view big rename to large",
        "alter materialized view totals rename to totals2",
    ):
        await client.ask(statement)
        assert opened.work.failures() == {}
    assert await client.ask("select * from totals2 order by k") == before
    names = opened.client.state.names
    assert "totals2" in names
    assert "totals2_errors" in names
    assert not [name for name in names if name.startswith("totals") and "2" not in name]
    assert "view/totals2/right_side" in holds(opened)


async def _replace(client: Conversation, opened: Database) -> None:
    """OR REPLACE and DROP, with what depends on a view."""
    with pytest.raises(DependentObjects) as refused:
        await client.ask("create or replace materialized view totals2 as select k from l")
    assert "materialized view top depends on materialized view totals2" in str(refused.value)
    await client.ask(
        "create or replace materialized view top as select min(total) as a from totals2"
    )
    assert await client.ask("select * from top") == [(205,)]
    with pytest.raises(DependentObjects):
        await client.ask("drop table l")
    await client.ask("drop table l cascade")
    kinds = {item.kind for item in opened.catalog.items() if item.kind != "system"}
    assert kinds == {"table"}
    assert holds(opened) == set()
    assert set(opened.client.state.names) == {*SYSTEM_COLLECTIONS, "right_side"}
    assert opened.work.views == {}


def test_a_view_that_fails_holds_back_no_other(tmp_path: Path, spark: SparkSession) -> None:
    async def go() -> None:
        async with asyncio.timeout(120), database(str(tmp_path), spark) as opened:
            client = await connect(opened)
            await client.ask("create table t (a int)")
            await client.ask("create materialized view bad as select 1 / a as x from t")
            await client.ask("create materialized view good as select a + 1 as x from t")
            await client.ask("insert into t values (0)")
            assert await client.ask("select * from good") == [(1,)]
            with pytest.raises(Exception, match="division by zero"):
                await client.ask("select * from bad")
            await client.ask("delete from t")
            assert await client.ask("select * from bad") == []

    asyncio.run(go())


def test_strict_maintenance_refuses_what_it_would_recompute(tmp_path: Path) -> None:
    async def go() -> None:
        async with asyncio.timeout(60), database(str(tmp_path)) as opened:
            client = await connect(opened)
            await client.ask("create table l (k int, v int)")
            await client.ask("create table r (k int, w int)")
            strict = "create materialized view {} with (maintenance = strict) as {}"
            cross = "select l.k, r.w from l join r on l.v < r.w"
            with pytest.raises(Unsupported) as refused:
                await client.ask(strict.format("far", cross))
            assert "ALL OF IT" in str(refused.value.detail)
            assert "far" not in opened.client.state.names
            above = "select k, m from l, (select avg(w) as m from r) x where v > m"
            with pytest.raises(Unsupported):
                await client.ask(strict.format("above", above))
            await client.ask(strict.format("near", "select l.k, w from l join r on l.k = r.k"))
            await client.ask(strict.format("ends", "select count(*) as n, max(v) as high from l"))
            await client.ask(f"create materialized view far as {cross}")

    asyncio.run(go())


def test_an_index_is_checked_as_a_view_is(tmp_path: Path) -> None:
    async def go() -> None:
        async with asyncio.timeout(60), database(str(tmp_path)) as opened:
            client = await connect(opened)
            await client.ask("create table t (k int, v int)")
            views = {
                "of_time": "select k, mz_now() as at from t",
                "of_catalog": "select relname from pg_class",
            }
            for name, sql in views.items():
                await client.ask(f"create view {name} as {sql}")
                with pytest.raises(Unsupported) as refused:
                    await client.ask(f"create default index on {name}")
                with pytest.raises(Unsupported) as also:
                    await client.ask(f"create materialized view kept as {sql}")
                assert refused.value.message == also.value.message
            assert set(opened.client.state.names) == {*SYSTEM_COLLECTIONS, "t"}

    asyncio.run(go())


def test_a_quiet_table_does_not_hold_back_what_is_beside_it(
    tmp_path: Path, spark: SparkSession
) -> None:
    """A view over a live source and a table that nobody writes, directly and through a view."""

    async def go() -> None:
        async with asyncio.timeout(120), database(str(tmp_path), spark) as opened:
            client = await connect(opened)
            await client.ask("create table names (n bigint, name text)")
            await client.ask("create table quiet (n bigint)")
            await client.ask("insert into names values (1, 'one'), (2, 'two')")
            await client.ask(
                "create materialized view named as select n, max(name) as name "
                "from names group by n"
            )
            await client.ask("create source c from load generator counter (tick interval '50ms')")
            await client.ask(
                "create materialized view joined as select counter, name "
                "from c join named on named.n = counter join quiet on true"
            )
            await client.ask("select * from joined")
            # Nobody reads or writes from here on: the view goes on by itself.
            state = opened.client.state
            first = state.collection("joined").upper.only()
            assert first is not None
            while (opened.client.state.collection("joined").upper.only() or 0) < first + 2_000:
                await asyncio.sleep(0.1)

    asyncio.run(go())


def test_views_share_what_they_keep(tmp_path: Path, spark: SparkSession) -> None:
    """Over one plain view that aggregates, through everything that can happen to them."""

    def kept(opened: Database) -> list[str]:
        return [name for name in opened.client.state.names if "arrangement" in name]

    async def first() -> None:
        async with asyncio.timeout(120), database(str(tmp_path), spark) as opened:
            client = await connect(opened)
            for statement in (
                "create table t (k int, v int)",
                "insert into t values (1, 10), (1, 20), (2, 5)",
                "create view sums as select k, sum(v) as total from t group by k",
                "create materialized view large as select * from sums where total > 9",
                "create materialized view small as select * from sums where total <= 9",
            ):
                await client.ask(statement)
            assert len(kept(opened)) == 1
            assert await client.ask("select * from large") == [(1, 30)]
            assert await client.ask("select * from small") == [(2, 5)]
            await client.ask("alter table t rename to facts")
            await client.ask("insert into facts values (2, 7)")
            assert await client.ask("select * from large order by k") == [(1, 30), (2, 12)]
            await client.ask(
                "create or replace materialized view small as select k from sums where total < 99"
            )
            assert len(kept(opened)) == 1
            assert await client.ask("select * from small order by k") == [(1,), (2,)]
            await client.ask("drop materialized view large")
            assert len(kept(opened)) == 1

    async def second() -> None:
        async with asyncio.timeout(120), database(str(tmp_path), spark) as opened:
            client = await connect(opened)
            await client.ask("create materialized view again as select total from sums")
            await client.ask("insert into facts values (3, 1)")
            assert await client.ask("select * from again order by total") == [(1,), (12,), (30,)]
            assert await client.ask("audit materialized view small") == []
            assert len(kept(opened)) == 1
            await client.ask("drop table facts cascade")
            assert kept(opened) == []
            assert holds(opened) == set()

    asyncio.run(first())
    asyncio.run(second())
