"""Records are ingested as they come, and a join waits for no interval of the source beside it.

The interval is an hour here: what is seen was not found by asking now and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from noonmark.adapter.database import Database
from noonmark.adapter.schedule import pace, sources
from noonmark.clock import SYSTEM
from support.neighbour.kafka import KafkaServer
from support.serve.reading import Conversation, connect, database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR_S, WAIT_S = 3600.0, 200.0


@pytest.fixture(autouse=True)
def interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "INTERVAL_S", HOUR_S)
    monkeypatch.setattr(sources, "INTERVAL_S", HOUR_S)


def run(
    place: Path, spark: SparkSession, body: Callable[[Conversation, Database], Awaitable[None]]
) -> None:
    async def go() -> None:
        async with asyncio.timeout(WAIT_S), database(str(place), spark) as opened:
            await body(await connect(opened, transaction_isolation="serializable"), opened)

    asyncio.run(go())


async def until(client: Conversation, query: str, wanted: object) -> None:
    """Read what is complete, which moves nothing, until it is this; the test's limit ends it."""
    while await client.ask(query) != wanted:
        await SYSTEM.sleep(0.02)


@pytest.mark.spark
def test_a_join_of_a_busy_and_an_idle_topic_follows_the_busy_one(
    kafka_server: KafkaServer, spark: SparkSession, tmp_path: Path
) -> None:
    topics = [f"t-{SYSTEM.fresh_id()}" for _ in range(2)]
    for topic in topics:
        kafka_server.make_topic(topic, 2)
    kafka_server.send(topics[0], [{"value": b'{"id": 1, "word": "one"}'}])

    async def body(client: Conversation, opened: Database) -> None:
        await client.ask(f"create connection k to kafka (broker '{kafka_server.bootstrap}')")
        for name, topic in zip("ab", topics, strict=True):
            await client.ask(
                f"create source {name} (id bigint, word text) from kafka connection k "
                f"(topic '{topic}') format json"
            )
        await client.ask(
            "create materialized view v as select a.id, count(*) as n from a join b on a.id = b.id "
            "group by a.id"
        )
        await until(client, "select * from v", [])
        for at in range(1, 6):
            kafka_server.send(topics[1], [{"value": b'{"id": 1, "word": "other"}'}])
            await until(client, "select * from v", [(1, at)])
        kafka_server.send(topics[0], [{"value": b'{"id": 1, "word": "again"}'}])
        await until(client, "select * from v", [(1, 10)])
        idle = {each.name: each.status.ticks for each in opened.work.sources.values()}
        await SYSTEM.sleep(1.0)
        assert idle == {each.name: each.status.ticks for each in opened.work.sources.values()}

    run(tmp_path, spark, body)
