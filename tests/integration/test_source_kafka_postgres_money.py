"""Transactions upstream are never seen in part: the total is the same at every time."""

from __future__ import annotations

import asyncio

from support.ingest.upstream_money import MoneyWriters, read_totals
from support.neighbour.kafka import KafkaServer
from support.neighbour.logical import Upstream


def test_the_total_is_the_same_at_every_time(upstream: Upstream, kafka_server: KafkaServer) -> None:
    writers = MoneyWriters(upstream, kafka_server, seed=1)
    writers.start()
    try:
        found = asyncio.run(asyncio.wait_for(read_totals(writers, 60), 120))
    finally:
        writers.close()
    assert found.wrong == []
    assert min(writers.transactions.values()) > 10
