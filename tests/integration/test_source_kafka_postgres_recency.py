"""CONSISTENT reads over Kafka and PostgreSQL, and over a join of both."""

from __future__ import annotations

import asyncio

import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import QueryCanceled
from support.ingest.upstream_recency import count_stale
from support.neighbour.kafka import KafkaServer
from support.neighbour.logical import Upstream
from support.serve.reading import connect, database


def test_a_consistent_read_is_never_stale(upstream: Upstream, kafka_server: KafkaServer) -> None:
    stale = asyncio.run(count_stale(upstream, kafka_server, 25))
    assert stale == {"postgres": 0, "kafka": 0, "join": 0}


def test_other_reads_are_stale_so_the_test_can_fail(
    upstream: Upstream, kafka_server: KafkaServer
) -> None:
    stale = asyncio.run(count_stale(upstream, kafka_server, 10, consistent=False))
    assert sum(stale.values()) > 0


def test_a_consistent_read_waits_for_open_transactions_or_says_what_it_lacks(
    kafka_server: KafkaServer,
) -> None:
    asyncio.run(behind_an_open_transaction(kafka_server))


async def behind_an_open_transaction(kafka: KafkaServer) -> None:
    topic = f"open-{SYSTEM.fresh_id()}"
    kafka.make_topic(topic, 1)
    producer = kafka.producer(transactional_id=topic)
    producer.init_transactions(30)
    async with database() as opened:
        client = await connect(opened)
        await client.ask(f"create connection k to kafka (broker '{kafka.bootstrap}')")
        await client.ask(
            f"create source t (n int) from kafka connection k (topic '{topic}') format json"
        )
        client.session.variables["real_time_recency"] = "on"
        assert await client.ask("select count(*) from t") == [(0,)]
        producer.begin_transaction()
        producer.produce(topic, b'{"n": 1}')
        producer.flush(30)
        # Acknowledged, and behind a transaction that is open.
        kafka.send(topic, [{"value": b'{"n": 2}'}])
        client.session.variables["real_time_recency_timeout"] = "1500"
        with pytest.raises(QueryCanceled) as failed:
            await client.ask("select count(*) from t")
        assert 'source "t", partition 0, offsets 0 to 1: a transaction may be open there' in (
            failed.value.detail or ""
        )
        # Other reads do not wait for it.
        client.session.variables["real_time_recency"] = "off"
        assert await client.ask("select count(*) from t") == [(0,)]
        client.session.variables["real_time_recency"] = "on"
        client.session.variables["real_time_recency_timeout"] = "60000"
        reading = asyncio.ensure_future(client.ask("select count(*), max(n) from t"))
        await asyncio.sleep(1.0)
        assert not reading.done()
        await asyncio.to_thread(producer.commit_transaction, 30)
        assert await reading == [(2, 2)]
