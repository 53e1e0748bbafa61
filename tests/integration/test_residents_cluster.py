"""Resident tasks on executors of their own: ticks without a job there, too."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from support.serve.reading import connect, database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_cluster_gives_one_of_its_cores_to_a_resident(
    tmp_path: Path, spark_cluster: SparkSession
) -> None:
    async def main() -> None:
        async with asyncio.timeout(250), database(str(tmp_path), spark_cluster) as opened:
            client = await connect(opened)
            await client.ask("create table t (k int, v int)")
            await client.ask("create materialized view s as select sum(v) as v from t")
            total, without = 0, 0
            while without < 20:
                total += 1
                await client.ask("insert into t values (1, 1)")
                assert await client.ask("select v from s") == [(total,)]
                ((without,),) = await client.ask(
                    "select count(*) from noonmark.ticks where strategy = 'delta' and jobs = 0"
                )

    asyncio.run(main())
