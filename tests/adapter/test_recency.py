"""Real-time recency, as `noonmark.adapter.timestamp.recency` promises it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from noonmark.adapter.database import Database
from noonmark.errors import QueryCanceled, Unsupported
from noonmark.source.impl.files import Files
from support.ingest.recency import count_stale
from support.serve.reading import connect, database, with_database

TRIALS = 200


def test_a_consistent_read_is_never_stale(tmp_path: Path) -> None:
    assert asyncio.run(count_stale(tmp_path, TRIALS, consistent=True)) == 0


def test_other_reads_are_stale_so_the_test_can_fail(tmp_path: Path) -> None:
    assert asyncio.run(count_stale(tmp_path, 50, consistent=False)) > 0


def test_a_source_that_is_not_consumed_is_brought_up_to_date(tmp_path: Path) -> None:
    async def go() -> None:
        async with asyncio.timeout(60), database() as opened:
            client = await connect(opened)
            await client.ask(
                f"create source f (n bigint) from files '{tmp_path}/*.csv' format csv "
                "with (active = false)"
            )
            (tmp_path / "a.csv").write_text("1\n2\n")
            client.session.variables["real_time_recency"] = "on"
            assert await client.ask("select sum(n) from f") == [(3,)]
            (tmp_path / "b.csv").write_text("4\n")
            client.session.variables["real_time_recency"] = "off"
            assert await client.ask("select sum(n) from f") == [(3,)], "nobody asked upstream"
            client.session.variables["real_time_recency"] = "on"
            assert await client.ask("select sum(n) from f") == [(7,)]

    asyncio.run(go())


def test_a_source_that_cannot_say_how_far_it_is_makes_it_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> None:
        async with asyncio.timeout(60), database() as opened:
            client = await connect(opened)
            await client.ask(f"create source f (n bigint) from files '{tmp_path}/*.csv' format csv")
            await client.ask("create view v as select * from f")
            client.session.variables["real_time_recency"] = "on"
            monkeypatch.setattr(Files, "latest_is_linearizable", False)
            with pytest.raises(Unsupported, match='source "f" cannot be read with real-time'):
                await client.ask("select * from v")
            await client.ask("create table t (n int)")
            assert await client.ask("select * from t") == [], "what does not use it can be read"

    asyncio.run(go())


def test_an_upstream_that_does_not_answer_ends_the_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> None:
        async with asyncio.timeout(60), database() as opened:
            client, other = await connect(opened), await connect(opened)
            await client.ask(f"create source f (n bigint) from files '{tmp_path}/*.csv' format csv")
            (tmp_path / "a.csv").write_text("1\n")
            client.session.variables["real_time_recency"] = "on"
            client.session.variables["real_time_recency_timeout"] = "30000"
            assert await client.ask("select * from f") == [(1,)]

            answered = threading.Event()
            latest = Files.latest

            async def silent(self: Files, *more: Any) -> Any:
                while not answered.is_set():
                    await asyncio.sleep(0.01)
                return await latest(self, *more)

            monkeypatch.setattr(Files, "latest", silent)
            client.session.variables["real_time_recency_timeout"] = "100"
            with pytest.raises(QueryCanceled, match="brought up to date in time"):
                await client.ask("select * from f")
            assert await other.ask("select * from f as of at least 0") == [(1,)]
            # The source's own thread waits for upstream, too: let it be answered.
            answered.set()

    asyncio.run(go())


@with_database
async def test_recency_is_one_of_the_bounds_that_explain_shows(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create source c from load generator counter (tick interval '1s')")
    client.session.variables["real_time_recency"] = "on"
    lines = [line for (line,) in await client.ask("explain timestamp for select * from c")]
    assert any("bound by recency" in line for line in lines)
