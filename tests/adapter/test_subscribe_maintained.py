"""SUBSCRIBE to large queries (`run.subscribe_view`): maintained while they are followed."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from noonmark.adapter.catalog.store import SYSTEM_COLLECTIONS
from noonmark.adapter.contract import Rows
from noonmark.adapter.database import Database
from noonmark.adapter.statement.query import subscribe_view
from noonmark.adapter.statement.query.subscribe_view import end_leftovers
from noonmark.errors import NoonmarkError
from support.serve.reading import Conversation, connect, database, insert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
QUERY = "select a, sum(b) as s, sum(b) as s from t where b < $1 group by a"


class Following:
    """A subscription, and the contents that its updates add up to."""

    def __init__(self, stream: Rows) -> None:
        self.stream = stream
        self._chunks = aiter(stream.chunks)
        self.contents: Counter[tuple[Any, ...]] = Counter()
        self.progress = 0
        #: The contents that the progress speaks of.
        self.complete: Counter[tuple[Any, ...]] = Counter()

    async def until(self, wanted: dict[tuple[Any, ...], int]) -> None:
        async with asyncio.timeout(120):
            while +self.contents != wanted:
                for time, progressed, diff, *row in await anext(self._chunks):
                    if progressed:
                        self.progress, self.complete = int(time), self.contents.copy()
                    else:
                        self.contents[tuple(row)] += diff

    async def close(self) -> None:
        await self.stream.chunks.aclose()


async def follow(client: Conversation, rest: str) -> Following:
    return Following(await client.stream(f"subscribe ({QUERY}) {rest}", 100))


def left(opened: Database) -> set[str]:
    """What is in the location beside the catalog and the table."""
    return set(opened.client.state.names) - {*SYSTEM_COLLECTIONS, "t", "t_errors"}


async def followed_and_resumed(opened: Database) -> None:
    client, writer = await connect(opened), await connect(opened)
    await client.ask("create table t (a int, b int)")
    await insert(opened, "t", (1, 10), (1, 20), (2, 5), (3, 500))
    lines = [line for (line,) in await client.ask("explain subscribe (select max(b) from t)")]
    assert "Subscribe: maintained as a view, which ends with it" in lines
    first = await follow(client, "with (progress)")
    await first.until({(1, 30, 30): 1, (2, 5, 5): 1})
    assert left(opened)
    await writer.ask("insert into t values (2, 7)")
    await first.until({(1, 30, 30): 1, (2, 12, 12): 1})
    assert await writer.ask("select name from mz_catalog.mz_materialized_views") == []
    await first.close()
    assert left(opened) == set()
    assert not opened.work.views
    await writer.ask("delete from t where a = 1")
    again = await follow(client, f"with (progress, snapshot = false) as of {first.progress - 1}")
    again.contents = first.complete
    await again.until({(2, 12, 12): 1})
    # What it reads can be dropped: it ends with that.
    await writer.ask("drop table t")
    with pytest.raises(NoonmarkError):
        await again.until({})
    await again.close()
    assert left(opened) == set()


async def of_own_types(opened: Database) -> None:
    """Values of types that somebody made are written into the view's text as well."""
    client = await connect(opened)
    await client.ask("create schema s")
    await client.ask("create type s.mood as enum ('sad', 'happy')")
    await client.ask("create table t (a int, m s.mood)")
    await client.ask("insert into t values (1, 'happy'), (2, 'sad')")
    asked = "subscribe (select m, count(*) from t where m = $1 group by m) with (progress)"
    stream = await client.stream(asked, "happy")
    followed = Following(stream)
    await followed.until({("happy", 1): 1})
    await client.ask("insert into t values (3, 'happy'), (4, 'sad')")
    await followed.until({("happy", 2): 1})
    await followed.close()
    await client.ask("drop table t")


async def killed(opened: Database) -> None:
    """A view whose process is gone is dropped at the next start."""
    client = await connect(opened)
    await client.ask("create table t (a int, b int)")
    await insert(opened, "t", (1, 10))
    gone = await follow(client, "with (progress)")
    await gone.until({(1, 10, 10): 1})
    assert left(opened)
    await end_leftovers(opened)  # as a start does, which finds it in the catalog
    assert left(opened) == set()
    await gone.close()
    await client.ask("drop table t")


def test_a_large_query_is_maintained(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribe_view, "ROWS_MAX", 0)

    async def go() -> None:
        async with asyncio.timeout(280), database(str(tmp_path), spark) as opened:
            await followed_and_resumed(opened)
            await of_own_types(opened)
            await killed(opened)

    asyncio.run(go())
