"""Answers of Spark come piece by piece: in order, in bounded memory, and no longer than wanted."""

from __future__ import annotations

import asyncio
import sys
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from noonmark.adapter.database import Database
from noonmark.adapter.peek.chunks import CHUNK_ROWS
from noonmark.errors import DivisionByZero
from support.serve.reading import Conversation, connect, database, insert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SMALL, LARGE = 1_000, 40_000
#: Every row of `large`, with some text to weigh.
JOIN = "select l.n, s.t, l.n % 7 as k from large l join small s on l.n % 1000 = s.n"
TEXT_BYTES = 500
#: What the answer would weigh if it were whole in memory, at least.
WHOLE_BYTES = LARGE * TEXT_BYTES


async def filled(opened: Database) -> Conversation:
    client = await connect(opened)
    await client.ask("create table small (n int, t text)")
    await client.ask("create table large (n int)")
    await insert(opened, "small", *((n, f"{n:0{TEXT_BYTES}}") for n in range(SMALL)))
    await insert(opened, "large", *((n,) for n in range(LARGE)))
    return client


async def in_bounded_memory(client: Conversation) -> None:
    stream = await client.stream(JOIN)
    tracemalloc.start()
    seen = set()
    try:
        async for chunk in stream.chunks:
            assert len(chunk) <= CHUNK_ROWS
            seen.update(row[0] for row in chunk[:1])
            rows = len(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows
    assert len(seen) >= LARGE // CHUNK_ROWS
    assert peak < WHOLE_BYTES / 2, f"{peak} bytes at once"


async def in_order(client: Conversation) -> None:
    found = await client.ask(f"{JOIN} order by k desc, l.n")
    assert len(found) == LARGE
    assert [(-k, n) for n, _, k in found] == sorted((-k, n) for n, _, k in found)
    # What Spark does not order as PostgreSQL does is ordered here.
    by_value = await client.ask(f"select n, (k - 3)::float8 as x from ({JOIN}) order by x, n")
    assert [x for _, x in by_value] == sorted(x for _, x in by_value)


async def let_go(opened: Database, client: Conversation) -> None:
    await client.ask("begin")
    await client.ask(f"declare c cursor for {JOIN}")
    assert len(await client.ask("fetch 10 c")) == 10
    assert len(await client.ask("fetch 2500 c")) == 2500
    await client.ask("commit")
    assert not opened.reads.holds.living
    with pytest.raises(DivisionByZero):
        await client.ask("select 1 / (l.n - 5) from large l join small s on l.n = s.n")
    stream = await client.stream(JOIN)
    await anext(aiter(stream.chunks))
    await stream.chunks.aclose()
    assert not opened.reads.holds.living, "nothing is held for who does not read on"
    assert await client.ask("select count(*) from small") == [(SMALL,)]


def test_large_answers_of_spark(tmp_path: Path, spark: SparkSession) -> None:
    async def go() -> None:
        async with asyncio.timeout(280), database(str(tmp_path), spark) as opened:
            opened.reads.answers.in_process_rows_max = 10_000
            opened.reads.answers.columns_rows_min = sys.maxsize
            client = await filled(opened)
            lines = [line for (line,) in await client.ask(f"explain {JOIN}")]
            assert "Answered: spark" in lines
            await in_bounded_memory(client)
            await in_order(client)
            await let_go(opened, client)

    asyncio.run(go())
