"""Reads of collections that keep hardly any history, while their frontiers leap.

Law: a read that chooses its own time is answered. What a server finds when it starts again is old,
and the first ticks let it go; a source that ticks a hundred times a second lets go of it as often.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.serve.reading import connect, database

STARTS = 3
MAKE = (
    "create source s from load generator counter (tick interval '10ms') "
    "with (retain history for '1ms')",
    "create table t (a int) with (retain history for '1ms')",
    "insert into t values (1)",
)


def test_no_read_is_overtaken_by_what_lets_its_history_go(tmp_path: Path) -> None:
    async def go() -> None:
        url = str(tmp_path / "location")
        async with database(url) as opened:
            client = await connect(opened)
            for sql in MAKE:
                await client.ask(sql)
        for _ in range(STARTS):
            async with database(url) as opened:
                client, other = await connect(opened), await connect(opened)
                for _ in range(4):
                    ((count,),) = await client.ask("select count(*) from s, t")
                    assert int(count) >= 0
                    await other.ask("begin")
                    first = await other.ask("select count(*), max(counter) from s")
                    await other.ask("select count(*) from t")
                    await opened.clock.sleep(0.05)
                    assert await other.ask("select count(*), max(counter) from s") == first
                    await other.ask("commit")

    asyncio.run(go())


def test_nothing_is_held_behind_the_reads(tmp_path: Path) -> None:
    """History goes on being let go: what was held for a moment is not kept."""

    async def go() -> None:
        async with database(str(tmp_path / "location")) as opened:
            client = await connect(opened)
            for sql in MAKE:
                await client.ask(sql)
            await client.ask("select count(*) from s, t")
            await client.ask("begin")
            await client.ask("select count(*) from s")
            await client.ask("rollback")
            number = opened.client.state.names["s"]
            before = opened.client.state.collection("s").since
            for _ in range(100):
                await opened.clock.sleep(0.1)
                after = opened.client.state.collection("s").since
                if after != before:
                    break
            assert after != before
            assert after.at_or_beyond(before)
            assert opened.client.local_holds.limit(number, after) == after

    asyncio.run(go())
