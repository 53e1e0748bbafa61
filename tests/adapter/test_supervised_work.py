"""Every piece of background work of a database is killed in turn, and service goes on by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.kill.killed_tasks import kill_on_its_loop
from support.serve.reading import Conversation, connect, database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

KINDS = {"committer", "compaction", "garbage", "leases", "pulse", "source", "spark", "view"}


async def serves(client: Conversation, n: int) -> None:
    await client.ask(f"insert into t values ({n})")
    assert await client.ask("select n from v") == [(n,)]
    ((before,),) = await client.ask("select count(*) from c")
    async with asyncio.timeout(20):
        while (await client.ask("select count(*) from c"))[0][0] <= before:
            await asyncio.sleep(0.1)


def test_each_is_back_by_itself(tmp_path: Path, spark: SparkSession) -> None:
    async def main() -> None:
        async with asyncio.timeout(200), database(str(tmp_path), spark) as opened:
            client, listener = await connect(opened), await connect(opened)
            await client.ask("create table t (a int)")
            await client.ask("create materialized view v as select count(*) as n from t")
            await client.ask("create source c from load generator counter (tick interval '50ms')")
            following = await listener.stream("subscribe to t with (progress)")
            chunks = following.chunks.__aiter__()
            await anext(chunks)
            await serves(client, 1)
            works = [each for each in opened.supervisor.works() if each.life.kind != "sweep"]
            assert {each.life.kind for each in works} >= KINDS
            for n, work in enumerate(works, 2):
                before = work.life.deaths
                await kill_on_its_loop(opened, work)
                async with asyncio.timeout(10):
                    while work.life.deaths == before:
                        await asyncio.sleep(0.05)
                await serves(client, n)
                assert opened.troubles() == []
            assert sum(opened.supervisor.deaths().values()) == len(works)
            await following.chunks.aclose()

    asyncio.run(main())
