"""A sink holds its history until it is dropped: through stops, crashes and pauses."""

from __future__ import annotations

import asyncio
from pathlib import Path

from noonmark.adapter.database import Database
from noonmark.persist.hold import NO_LEASE_MS
from noonmark.persist.log.state import Hold
from support.serve.reading import connect, database


def sink_holds(opened: Database) -> list[Hold]:
    return [hold for id, hold in opened.client.state.holds.items() if id.startswith("sink/")]


def test_the_hold_of_a_sink_ends_with_the_sink(tmp_path: Path) -> None:
    async def go() -> None:
        url = str(tmp_path / "data")
        async with database(url) as opened:
            client = await connect(opened)
            # Nobody listens there: the sink has yet to send everything.
            await client.ask("create connection k to kafka (broker '127.0.0.1:9')")
            await client.ask("create table t (id int not null) with (retain history for '1s')")
            await client.ask("insert into t values (1)")
            await client.ask(
                "create sink s from t into kafka connection k (topic 'x') envelope debezium"
            )
            (held,) = sink_holds(opened)
            assert held.expires_ms == NO_LEASE_MS
        async with database(url) as opened:
            assert sink_holds(opened) == [held], "a graceful stop lets go of nothing"
            client = await connect(opened)
            for number in range(3):
                await client.ask(f"insert into t values ({number})")
                await opened.clock.sleep(0.6)
            assert opened.client.state.collection("t").since == held.frontier
            await client.ask("drop sink s")
            assert sink_holds(opened) == []
            await client.ask(
                "create sink s from t into kafka connection k (topic 'x') envelope debezium"
            )
            await client.ask("drop table t cascade")
            assert sink_holds(opened) == []

    asyncio.run(go())
