"""Kafka and PostgreSQL under kill -9: a few rounds of what figure C12 does fifty times."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.ingest.upstream_kills import UpstreamKills
from support.neighbour.kafka import KafkaServer
from support.neighbour.logical import Upstream


@pytest.mark.slow
def test_kills_lose_nothing_and_repeat_nothing(
    tmp_path: Path, upstream: Upstream, kafka_server: KafkaServer
) -> None:
    run = UpstreamKills(tmp_path / "run", 1, upstream=upstream, kafka=kafka_server)
    try:
        for _ in range(2):
            run.round()
        run.finish()
    finally:
        run.close()
    assert run.splits > 2
    assert run.times > 2
