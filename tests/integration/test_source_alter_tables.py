"""ALTER SOURCE ... {ADD | DROP | REFRESH} TABLE: what stands above goes on, and equals upstream."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from noonmark.adapter.database import Database
from noonmark.clock import SYSTEM
from noonmark.errors import (
    BeforeSince,
    DatatypeMismatch,
    DefiniteError,
    DependentObjects,
    NameTaken,
    UndefinedTable,
    Unsupported,
    UsageError,
)
from support.neighbour.logical import Upstream
from support.serve.reading import Conversation, connect, database

SOURCE = "create source s from postgres connection pg (publication 'p') for all tables"


@pytest.fixture(autouse=True)
def key_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("NOONMARK_SECRET_KEY", raising=False)


@asynccontextmanager
async def opened(url: str = "") -> AsyncIterator[tuple[Conversation, Database]]:
    async with asyncio.timeout(90), database(url) as made:
        yield await connect(made, real_time_recency="on"), made


async def prepare(client: Conversation, upstream: Upstream) -> None:
    """Tables a, with a key, and b, with whole old rows, in a source."""
    upstream.run(
        "create table a (id int primary key, word text)",
        "create table b (id int primary key, word text)",
        "alter table b replica identity full",
        "insert into a values (1, 'one'), (2, 'two')",
        "insert into b values (1, 'b')",
    )
    parts = urlsplit(upstream.url)
    await client.ask(
        f"create connection pg to postgres (host '{parts.hostname}', port {parts.port}, "
        f"user '{parts.username}', database '{upstream.name}')"
    )
    upstream.run("create publication q for table a, b")
    await client.ask(SOURCE.replace("'p'", "'q'"))
    assert await same(client, upstream, "a", "b")


async def same(client: Conversation, upstream: Upstream, *tables: str) -> bool:
    """Whether tables are what they are upstream."""
    for table in tables:
        query = f"select * from {table} order by 1"
        found, wanted = await client.ask(query), upstream.run(query)
        assert found == wanted, table
    return True


async def error(client: Conversation, query: str) -> DefiniteError:
    with pytest.raises(DefiniteError) as refused:
        await client.ask(query)
    return refused.value


FAULTS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "column dropped and made again": (
        "a",
        ("alter table a drop column word", "alter table a add column word text"),
        ("update a set word = 'again'",),
    ),
    "column given another type": (
        "a",
        ("alter table a alter column word type varchar(9)",),
        ("insert into a values (9, 'nine')",),
    ),
    "table dropped and made again": (
        "b",
        (
            "drop table b",
            "create table b (id int primary key, word text)",
            "alter publication q add table b",
            "insert into b values (5, 'five')",
        ),
        ("insert into b values (6, 'six')",),
    ),
    "out of the publication": (
        "a",
        ("alter publication q drop table a", "delete from a where id = 1"),
        ("alter publication q add table a",),
    ),
    "another identity": (
        "b",
        ("alter table b replica identity default", "update b set word = 'x'"),
        ("update b set word = 'y'",),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_table_is_refreshed_beside_the_others(upstream: Upstream, fault: str) -> None:
    table, faults, repairs = FAULTS[fault]
    other = {"a": "b", "b": "a"}[table]

    async def go() -> None:
        async with opened() as (client, _):
            await prepare(client, upstream)
            upstream.run(*faults)
            found = await error(client, f"select * from {table}")
            assert f"ALTER SOURCE s REFRESH TABLE {table};" in (found.hint or "")
            upstream.run(*repairs, f"insert into {other} values (7, 'beside')")
            assert await client.ask(f"alter source s refresh table {table}") == "ALTER SOURCE"
            assert await same(client, upstream, "a", "b")
            # It goes on with the others, and what was said of it is over.
            upstream.run(
                f"insert into {table} values (100, 'later')",
                f"delete from {table} where id < 3",
                f"update {table} set word = 'changed' where id = 100",
            )
            assert await same(client, upstream, "a", "b")
            assert await client.ask("select * from s_errors") == []
            status = "select distinct status from mz_internal.mz_source_statuses"
            assert await client.ask(status) == [("running",)]
            # The past is what it was: rows, the error, rows.
            before, time = found.fields["time"] - 1, found.fields["time"]
            assert await client.ask(f"select count(*) from {table} as of {before}") != []
            await error(client, f"select * from {table} as of {time}")

    asyncio.run(go())


def test_a_column_that_was_added_is_taken(upstream: Upstream) -> None:
    async def go() -> None:
        async with opened() as (client, _):
            await prepare(client, upstream)
            upstream.run(
                "alter table a add column extra int default 7",
                "insert into a values (3, 'three', 3)",
            )
            assert len(await client.ask("select * from a")) == 3
            notices = "select name, notice from mz_internal.mz_source_statuses order by name"
            told = (
                "columns of table public.a that are not read: extra; ALTER SOURCE s REFRESH TABLE a"
                " takes them"
            )
            assert await client.ask(notices) == [("a", told), ("b", None), ("s", told)]
            assert await client.ask("alter source s refresh table a") == "ALTER SOURCE"
            assert await same(client, upstream, "a", "b")
            upstream.run("update a set extra = 8 where id = 1")
            assert await same(client, upstream, "a", "b")
            assert {row[1] for row in await client.ask(notices)} == {None}

    asyncio.run(go())


def test_a_column_that_is_gone_is_null(upstream: Upstream) -> None:
    async def go() -> None:
        async with opened() as (client, _):
            await prepare(client, upstream)
            upstream.run("alter table a drop column word", "alter table b drop column word")
            await error(client, "select * from a")
            await client.ask("alter source s refresh table a, b")
            upstream.run("insert into a values (5)", "insert into b values (6)")
            upstream.run("update b set id = 8 where id = 1", "delete from a where id = 1")
            assert await client.ask("select * from a order by id") == [(2, None), (5, None)]
            assert await client.ask("select * from b order by id") == [(6, None), (8, None)]

    asyncio.run(go())


def test_what_does_not_fit_is_refused_and_nothing_changes(upstream: Upstream) -> None:
    async def go() -> None:
        async with opened() as (client, made):
            await prepare(client, upstream)
            upstream.run("alter table a alter column id type text using id::text")
            await error(client, "select * from a")
            collections = set(made.client.state.names)
            with pytest.raises(DatatypeMismatch, match="of type text upstream, and integer here"):
                await client.ask("alter source s refresh table a")
            upstream.run("alter table b drop column id", "alter table b add primary key (word)")
            with pytest.raises(Unsupported, match='"id" of "b" is gone upstream'):
                await client.ask("alter source s refresh table b")
            with pytest.raises(UndefinedTable, match='"c" is no table of source "s"'):
                await client.ask("alter source s refresh table c")
            await error(client, "select * from a")
            assert set(made.client.state.names) == collections
            slots = f"select count(*) from pg_replication_slots where database = '{upstream.name}'"
            assert upstream.run(slots) == [(1,)]

    asyncio.run(go())


def test_tables_are_added_and_dropped(upstream: Upstream) -> None:
    async def go() -> None:
        async with opened() as (client, _):
            await prepare(client, upstream)
            upstream.run(
                "create table c (id int primary key, n int)",
                "alter publication q add table c",
                "insert into c select i, i from generate_series(1, 1000) i",
            )
            with pytest.raises(NameTaken):
                await client.ask("alter source s add table a as other")
            with pytest.raises(NameTaken):
                await client.ask("alter source s add table c as b")
            with pytest.raises(UndefinedTable):
                await client.ask("alter source s add table nothing")
            assert await client.ask("alter source s add table c") == "ALTER SOURCE"
            assert await same(client, upstream, "a", "b", "c")
            upstream.run("update c set n = n + 1 where id < 10", "delete from c where id > 990")
            assert await same(client, upstream, "a", "b", "c")
            with pytest.raises(BeforeSince):
                await client.ask("select * from c as of 1")
            await client.ask("create view v as select * from c")
            with pytest.raises(DependentObjects):
                await client.ask("alter source s drop table c")
            await client.ask("alter source s drop table c cascade")
            with pytest.raises(UndefinedTable):
                await client.ask("select * from c")
            upstream.run("insert into c values (0, 0)", "insert into a values (8, 'eight')")
            assert await same(client, upstream, "a", "b")
            await client.ask("alter source s add table c as c2")
            upstream.run("update c set n = 77 where id = 1")
            wanted = upstream.run("select * from c order by id")
            assert await client.ask("select * from c2 order by id") == wanted
            with pytest.raises(DependentObjects, match="all tables"):
                await client.ask("alter source s drop table a, b, c2")

    asyncio.run(go())


WHOLE: dict[str, tuple[str, ...]] = {
    "slot dropped": ("select pg_drop_replication_slot('{slot}')",),
    "slot moved": (
        "insert into a values (50, 'lost')",
        "select pg_replication_slot_advance('{slot}', pg_current_wal_lsn())",
    ),
    "publication dropped": ("drop publication q",),
}


@pytest.mark.parametrize("fault", WHOLE)
def test_a_source_that_has_ended_goes_on_with_another_slot(upstream: Upstream, fault: str) -> None:
    async def go() -> None:
        async with opened() as (client, _):
            await prepare(client, upstream)
            slots = (
                "select slot_name from pg_replication_slots "
                f"where database = '{upstream.name}' and not temporary"
            )
            ((slot,),) = upstream.run(slots)
            for statement in WHOLE[fault]:
                upstream.run(statement.format(slot=slot))
            for table in ("a", "b"):
                found = await error(client, f"select * from {table}")
                assert "ALTER SOURCE s REFRESH;" in (found.hint or "")
            upstream.run("insert into a values (60, 'unseen')", "delete from b")
            if fault == "publication dropped":
                upstream.run("create publication q for table a, b")
            with pytest.raises(UsageError, match="as a whole"):
                await client.ask("alter source s refresh table a")
            assert await client.ask("alter source s refresh") == "ALTER SOURCE"
            assert await same(client, upstream, "a", "b")
            upstream.run(
                "insert into b values (1, 'after')", "update a set word = 'w' where id = 1"
            )
            assert await same(client, upstream, "a", "b")
            assert await client.ask("select * from s_errors") == []
            ((after,),) = upstream.run(slots)
            assert after != slot
            # It can end, and be refreshed, again.
            upstream.run(f"select pg_drop_replication_slot('{after}')")
            await error(client, "select * from b")
            await client.ask("alter source s refresh")
            upstream.run("insert into b values (2, 'again')")
            assert await same(client, upstream, "a", "b")

    asyncio.run(go())


class Crash(Exception):
    """The process ends here."""


def test_a_refresh_survives_a_restart(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended once it has joined, it is finished by the next process; before that, it is undone."""
    url = str(tmp_path / "location")

    async def crash(*_: Any, **__: Any) -> None:
        raise Crash

    async def never(*_: Any) -> None:
        await asyncio.Event().wait()

    async def first() -> None:
        async with opened(url) as (client, made):
            await prepare(client, upstream)
            upstream.run("alter table a drop column word", "alter table a add column word text")
            await error(client, "select * from a")
            with monkeypatch.context() as patch:
                patch.setattr("noonmark.adapter.upstream.refresh._join", crash)
                patch.setattr("noonmark.adapter.upstream.refresh.forget", lambda *_: None)
                with pytest.raises(Crash):
                    await client.ask("alter source s refresh table a")
            assert any(name.startswith("staging_") for name in made.client.state.names)

    async def second() -> None:
        async with opened(url) as (client, made):
            await error(client, "select * from a")
            assert not any(name.startswith("staging_") for name in made.client.state.names)
            with monkeypatch.context() as patch:
                patch.setattr("noonmark.adapter.schedule.schedule.finish", never)
                patch.setattr("noonmark.adapter.statement.ddl.source_tables._done", crash)
                with pytest.raises(Crash):
                    await client.ask("alter source s refresh table a")
            upstream.run("update a set word = 'meanwhile' where id = 2")
            with pytest.raises(UsageError, match="being altered already"):
                await client.ask("alter source s add table c")
            await error(client, "select * from a")
            assert await same(client, upstream, "b")

    async def third() -> None:
        async with opened(url) as (client, made):
            for _ in range(200):
                item = made.catalog.find(("s",))
                if item is not None and not item.definition.get("pending"):
                    break
                await SYSTEM.sleep(0.05)
            assert await same(client, upstream, "a", "b")
            upstream.run("insert into a values (3, 'three')")
            assert await same(client, upstream, "a", "b")
            assert not any(name.startswith("staging_") for name in made.client.state.names)

    for act in (first, second, third):
        asyncio.run(act())


def test_tables_join_the_others_at_one_point_while_money_moves(upstream: Upstream) -> None:
    """Whatever is added, dropped and refreshed: a transfer is in both of its tables, or in none.

    Upstream moves money between two tables of either identity; the judge is the total, at every
    time that can be read, and upstream's own rows in the end.
    """
    stop = threading.Event()

    def move() -> None:
        chance = random.Random(1)
        with psycopg.connect(upstream.url) as session:
            while not stop.is_set():
                one, two = chance.sample(("keyed", "whole"), 2)
                cents, id_ = chance.randrange(1, 9), chance.randrange(1, 50)
                with session.transaction():
                    session.execute(f"update {one} set cents = cents - {cents} where id = {id_}")  # type: ignore[arg-type]
                    session.execute(f"update {two} set cents = cents + {cents} where id = {id_}")  # type: ignore[arg-type]

    async def totals(client: Conversation, times: set[int]) -> None:
        both = "(select sum(cents) from keyed) + (select sum(cents) from whole)"
        now = f"select mz_now(), {both}"
        ((time, total),) = await client.ask(now)
        assert total == 4900
        times.add(int(time))

    async def go() -> None:
        async with opened() as (client, made):
            upstream.run(
                "create table keyed (id int primary key, cents int)",
                "create table whole (id int primary key, cents int)",
                "alter table whole replica identity full",
                "insert into keyed select i, 50 from generate_series(1, 49) i",
                "insert into whole select i, 50 from generate_series(1, 49) i",
            )
            parts = urlsplit(upstream.url)
            await client.ask(
                f"create connection pg to postgres (host '{parts.hostname}', port {parts.port}, "
                f"user '{parts.username}', database '{upstream.name}')"
            )
            await client.ask(SOURCE)
            times: set[int] = set()
            mover = threading.Thread(target=move)
            mover.start()
            try:
                for round_ in range(2):
                    for table in ("keyed", "whole"):
                        altering = asyncio.create_task(
                            (await connect(made)).ask(f"alter source s refresh table {table}")
                        )
                        while not altering.done():
                            await totals(client, times)
                        assert altering.result() == "ALTER SOURCE"
                    await client.ask("alter source s drop table whole")
                    await client.ask("alter source s add table whole")
                    await totals(client, times)
                    if round_ == 1:
                        (slot,) = upstream.run("select slot_name from pg_replication_slots")[0]
                        upstream.run(
                            "select pg_terminate_backend(active_pid) from pg_replication_slots "
                            f"where slot_name = '{slot}' and active"
                        )
                        await SYSTEM.sleep(0.2)
                        upstream.run(f"select pg_drop_replication_slot('{slot}')")
                        await error(client, "select * from keyed")
                        await client.ask("alter source s refresh")
                        await totals(client, times)
            finally:
                stop.set()
                mover.join()
            assert await same(client, upstream, "keyed", "whole")
            await totals(client, times)
            assert len(times) > 10
            assert await client.ask("select * from s_errors") == []

    asyncio.run(go())
