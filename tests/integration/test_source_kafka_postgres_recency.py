"""CONSISTENT reads over Kafka and PostgreSQL, and over a join of both."""

from __future__ import annotations

import asyncio

from support.kafka import KafkaServer
from support.logical import Upstream
from support.upstream_recency import count_stale


def test_a_consistent_read_is_never_stale(upstream: Upstream, kafka_server: KafkaServer) -> None:
    stale = asyncio.run(count_stale(upstream, kafka_server, 25))
    assert stale == {"postgres": 0, "kafka": 0, "join": 0}


def test_other_reads_are_stale_so_the_test_can_fail(
    upstream: Upstream, kafka_server: KafkaServer
) -> None:
    stale = asyncio.run(count_stale(upstream, kafka_server, 10, consistent=False))
    assert sum(stale.values()) > 0
