"""What a user sees of a table that cannot be followed any more: its error, wherever it is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

from noonmark.adapter.database import Database
from noonmark.clock import SYSTEM
from noonmark.errors import DefiniteError, NoonmarkError
from support.neighbour.logical import Upstream
from support.serve.reading import Conversation, connect, database

STATUS = "select status from mz_internal.mz_source_statuses where name = "
#: What reads table a: itself, a view, a view over that, an index' view, and joins.
READERS = (
    "select * from a",
    "select word from a where id = 1",
    "select * from v",
    "select * from vv",
    "select * from i where id = 1",
    "select count(*) from a, b",
    "select (select max(word) from v) from b",
    "copy (select * from v) to stdout",
    "audit materialized view vv",
)


@pytest.fixture(autouse=True)
def key_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("NOONMARK_SECRET_KEY", raising=False)


@asynccontextmanager
async def opened(folder: Path, spark: SparkSession) -> AsyncIterator[tuple[Conversation, Database]]:
    async with asyncio.timeout(150), database(str(folder), spark) as made:
        yield await connect(made), made


async def prepare(client: Conversation, upstream: Upstream) -> None:
    """Tables a and b, and what stands above them."""
    upstream.run(
        "create table a (id int primary key, word text)",
        "create table b (id int primary key, word text)",
        "alter table b replica identity full",
        "insert into a values (1, 'one'), (2, 'two')",
        "insert into b values (1, 'b')",
    )
    parts = urlsplit(upstream.url)
    for statement in (
        f"create connection pg to postgres (host '{parts.hostname}', port {parts.port}, "
        f"user '{parts.username}', database '{upstream.name}')",
        "create source s from postgres connection pg (publication 'p') for all tables",
        "create materialized view v as select word, count(*) from a group by word",
        "create materialized view vv as select v.word, b.word as other from v, b",
        "create materialized view w as select * from b",
        "create view i as select id, upper(word) as loud from a",
        "create index on i (id)",
        "set real_time_recency = on",
    ):
        await client.ask(statement)
    assert sorted(await client.ask("select * from vv")) == [("one", "b"), ("two", "b")]
    assert await client.ask("select * from i where id = 1") == [(1, "ONE")]


async def error(client: Conversation, query: str) -> DefiniteError:
    with pytest.raises(DefiniteError) as refused:
        await client.ask(query)
    return refused.value


async def until_status(client: Conversation, name: str, wanted: str) -> None:
    for _ in range(200):
        if await client.ask(f"{STATUS} '{name}'") == [(wanted,)]:
            return
        await SYSTEM.sleep(0.05)
    assert await client.ask(f"{STATUS} '{name}'") == [(wanted,)]


async def in_error(client: Conversation, message: str) -> int:
    """Every reader of table a has the error, and nobody else; the time of it."""
    time = 0
    for query in READERS:
        found = await error(client, query)
        assert found.message == message, query
        assert found.sqlstate == "55000"
        assert "ALTER SOURCE s REFRESH" in (found.hint or "")
        time = found.fields["time"]
        assert str(time) in (found.detail or "")
    assert '"vv" reads "a"' in ((await error(client, "select * from vv")).detail or "")
    await until_status(client, "s", "errored")
    shown = {row[0]: row[2] for row in await client.ask("show sources")}
    assert (shown["s"], shown["a"]) == ("errored", "errored")
    # Before it everything answers as it did.
    words = await client.ask(f"select word from a order by id as of {time - 1}")
    assert words == [("one",), ("two",)]
    rows = await client.ask(f"select * from vv order by word as of {time - 1}")
    assert rows == [("one", "b"), ("two", "b")]
    return time


async def followed(client: Conversation, query: str) -> tuple[list[Any], NoonmarkError]:
    """All that a subscription gives before it ends with an error."""
    stream = await client.stream(query)
    rows: list[Any] = []
    try:
        async for chunk in stream.chunks:
            rows += chunk
    except NoonmarkError as ended:
        return rows, ended
    finally:
        await stream.chunks.aclose()
    raise AssertionError("the subscription ended without an error")


def test_a_dropped_column_is_the_answer_of_all_that_read_it(
    upstream: Upstream, tmp_path: Path, spark: SparkSession
) -> None:
    message = "a column of table public.a was dropped, renamed or given another type upstream"

    async def first() -> int:
        async with opened(tmp_path / "location", spark) as (client, made):
            await prepare(client, upstream)
            others = [await connect(made) for _ in range(2)]
            following = [
                asyncio.create_task(followed(each, f"subscribe {what} with (progress)"))
                for each, what in zip(others, ("v", "(select id + 1 from a)"), strict=True)
            ]
            await SYSTEM.sleep(0.5)
            upstream.run("alter table a drop column word", "insert into b values (2, 'bb')")
            time = await in_error(client, message)
            for rows, ended in await asyncio.gather(*following):
                assert ended.message == message
                # Everything before the error was told, and progress up to it.
                assert max(row[0] for row in rows if row[1]) <= time
                assert len([row for row in rows if not row[1]]) == 2
            # A table beside it goes on, and so do its views.
            assert sorted(await client.ask("select id from w")) == [(1,), (2,)]
            assert await client.ask(f"{STATUS} 'b'") == [("running",)]
            # What is made while it is in error is in error, too.
            await client.ask("create materialized view late as select count(*) from a")
            assert (await error(client, "select * from late")).message == message
            return time

    async def second(time: int) -> None:
        async with opened(tmp_path / "location", spark) as (client, _):
            await client.ask("set real_time_recency = on")
            assert await in_error(client, message) == time
            assert sorted(await client.ask("select id from w")) == [(1,), (2,)]
            await refreshed(client)
            await error(client, f"select * from vv as of {time}")

    async def refreshed(client: Conversation) -> None:
        """Everything answers again, and is what upstream says."""
        upstream.run("alter table a add column word text", "update a set word = 'again'")
        assert await client.ask("alter source s refresh table a") == "ALTER SOURCE"
        upstream.run("insert into a values (3, 'more')")
        for query in READERS:
            if not query.startswith("copy"):  # which gives no rows to this client
                await client.ask(query)
        assert await client.ask("select * from late") == [(3,)]
        wanted = "select word, count(*) from a group by word order by word"
        assert await client.ask("select * from v order by word") == upstream.run(wanted)
        joined = "select v.word, b.word from (select distinct word from a) v, b order by 1, 2"
        assert await client.ask("select * from vv order by 1, 2") == upstream.run(joined)
        for view in ("v", "vv", "late"):
            assert await client.ask(f"audit materialized view {view}") == []
        await until_status(client, "s", "running")
        shown = {row[0]: row[2] for row in await client.ask("show sources")}
        assert (shown["s"], shown["a"]) == ("running", "running")

    time = asyncio.run(first())
    asyncio.run(second(time))
