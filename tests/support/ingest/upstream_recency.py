"""Trials of real-time recency over Kafka and PostgreSQL: a write upstream, then a SELECT.

A trial is stale when the answer lacks what upstream had acknowledged before the SELECT was sent.
"""

from __future__ import annotations

import json
from random import Random
from urllib.parse import urlsplit

from noonmark.adapter.database import Database
from noonmark.clock import SYSTEM
from support.neighbour.kafka import KafkaServer
from support.neighbour.logical import Upstream
from support.serve.reading import Conversation, connect, database


async def count_stale(
    upstream: Upstream, kafka: KafkaServer, trials: int, *, consistent: bool = True
) -> dict[str, int]:
    """How many of so many trials, over each and over a join of both, gave a stale answer."""
    topic = f"recency-{SYSTEM.fresh_id()}"
    kafka.make_topic(topic, 2)
    upstream.run("create table a (id int primary key, n int)", "insert into a values (0, 0)")
    producer = kafka.producer(acks="all")
    stale = {"postgres": 0, "kafka": 0, "join": 0}
    random = Random(trials)
    async with database() as opened:
        client = await _open(opened, upstream, kafka, topic)
        client.session.variables["real_time_recency"] = "on" if consistent else "off"
        value = 0  # of each write another, so that a read tells which writes it has seen
        for step in range(1, trials + 1):
            kinds = ["postgres", "kafka"] if step % 5 else ["postgres", "kafka", "join"]
            for kind in kinds:
                value += 1
                if kind in ("postgres", "join"):
                    upstream.run(f"update a set n = {value}")
                if kind in ("kafka", "join"):
                    record = json.dumps({"id": 0, "n": value}).encode()
                    producer.produce(topic, record, partition=random.randrange(2))
                    assert producer.flush(30) == 0
                stale[kind] += await _is_stale(client, kind, value)
    return stale


async def _open(
    opened: Database, upstream: Upstream, kafka: KafkaServer, topic: str
) -> Conversation:
    client = await connect(opened)
    await connect_both(client, upstream, kafka)
    await client.ask("create source s from postgres connection pg (publication 'p') for all tables")
    await client.ask(
        f"create source t (id int, n int) from kafka connection k (topic '{topic}') format json"
    )
    await client.ask("create view together as select least(a.n, t.n) as n from a join t using (id)")
    return client


async def connect_both(client: Conversation, upstream: Upstream, kafka: KafkaServer) -> None:
    """Connections `pg` and `k`."""
    parts = urlsplit(upstream.url)
    await client.ask(
        f"create connection pg to postgres (host '{parts.hostname}', port {parts.port}, "
        f"user '{parts.username}', database '{upstream.name}')"
    )
    await client.ask(f"create connection k to kafka (broker '{kafka.bootstrap}')")


async def _is_stale(client: Conversation, kind: str, value: int) -> bool:
    relation = {"postgres": "a", "kafka": "t", "join": "together"}[kind]
    ((found,),) = await client.ask(f"select max(n) from {relation}")
    assert found is None or found <= value, "an answer from the future"
    return found != value
