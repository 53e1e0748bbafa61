"""A row that a view does not get past: the view fails alone, and nobody waits for its tick."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from noonmark.adapter.worker.limits import Limits
from noonmark.errors import NotYetComplete
from support.serve.reading import Conversation, connect, database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.alone]

#: Ten numbers take no time, millions of them minutes.
POISON = "select a, (select sum(exp(x::numeric / 999983)) from generate_series(1, a) x) as n from t"


async def patient(client: Conversation, sql: str) -> None:
    """Ask until it answers: the first tick of all may take long on a busy machine."""
    while True:
        try:
            await client.ask(sql)
            return
        except NotYetComplete:
            await asyncio.sleep(1)


async def refusal(client: Conversation, sql: str, words: str) -> str:
    """Ask until the refusal says what the search found; on a busy machine it takes its time."""
    while True:
        with pytest.raises(NotYetComplete) as refused:
            await client.ask(sql)
        if words in str(refused.value):
            return str(refused.value)
        await asyncio.sleep(1)


def test_a_row_that_a_view_does_not_get_past(tmp_path: Path, spark: SparkSession) -> None:
    async def main() -> None:
        async with asyncio.timeout(280), database(str(tmp_path), spark) as opened:
            opened.workers.limits = Limits(tick_timeout_s=10)
            client = await connect(opened)
            await client.ask("create table t (a bigint)")
            await client.ask(f"create materialized view bad as {POISON}")
            await client.ask("create materialized view good as select count(*) as n from t")
            await client.ask("insert into t values (10)")
            for name in ("bad", "good"):
                await patient(client, f"select * from {name}")
            await client.ask("insert into t values (1), (5000000), (2), (3)")
            # Its neighbour is late once, by the time that both were given together.
            async with asyncio.timeout(120):
                assert await client.ask("select n from good") == [(5,)]
            told = await refusal(client, "select * from bad", "does not get past")
            assert 'a tick of view "bad" took longer than 10 s' in told
            assert 'The row of "t" that it does not get past: a=5000000.' in told
            # Its status is for everybody, the row that the error names for those who may read it.
            asked = "select name, status, error from noonmark.view_statuses order by name"
            bad, good = await client.ask(asked)
            assert (bad[:2], good) == (("bad", "stalled"), ("good", "running", None))
            assert "a tick of view" in bad[2]
            await client.ask("create role amy")
            amy = Conversation(await opened.connect("amy", "noonmark", {}, "test"))
            assert (await amy.ask(asked))[0] == ("bad", "stalled", None)
            # DDL, its own too, waits for nobody.
            async with asyncio.timeout(60):
                await client.ask("create table u (b int)")
                await client.ask("insert into t values (4)")
                assert await client.ask("select n from good") == [(6,)]
                await client.ask("drop materialized view bad")

    asyncio.run(main())


def test_a_view_is_dropped_and_a_database_closed_in_the_middle_of_a_tick(
    tmp_path: Path, spark: SparkSession
) -> None:
    async def main() -> None:
        async with asyncio.timeout(200), database(str(tmp_path), spark) as opened:
            client = await connect(opened)
            await client.ask("create table t (a bigint)")
            for name in ("one", "two"):
                await client.ask(f"create materialized view {name} as {POISON}")
                await client.ask(f"select * from {name}")
            await client.ask("insert into t values (5000000)")
            await asyncio.sleep(3)
            async with asyncio.timeout(10):
                await client.ask("drop materialized view one")
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < 15

    asyncio.run(main())


def test_the_first_tick_may_take_as_long_as_processes_need_to_start(tmp_path: Path) -> None:
    """Without Spark ticks are done by processes, which take longer than a second to start."""

    async def main() -> None:
        async with asyncio.timeout(280), database(str(tmp_path)) as opened:
            opened.workers.limits = Limits(tick_timeout_s=1)
            client = await connect(opened)
            await client.ask("create table t (a bigint)")
            await client.ask("insert into t values (10)")
            await client.ask("create materialized view v as select sum(a) as n from t")
            assert await client.ask("select n from v") == [(10,)]

    asyncio.run(main())
