"""A server with sinks is killed: each topic has every change once, and is of one time."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.neighbour.kafka import KafkaServer
from support.sink.kills import SinkKills
from support.sink.sinks_beside import BESIDE, INSIDE, SinksBeside
from support.sink.topic import ACCOUNTS


def test_kills_neither_repeat_nor_lose_a_message(kafka_server: KafkaServer, tmp_path: Path) -> None:
    run = SinkKills(tmp_path / "data", kafka_server, seed=1)
    for _ in range(2):
        run.round()
    run.finish()
    assert run.faults["kill -9"] == 2
    assert run.topic.messages > ACCOUNTS
    assert run.topic.times > 2


@pytest.mark.parametrize(("locations", "sinks"), [(2, 1), (1, 2)])
def test_a_kill_inside_of_a_transaction_beside_another_sink(
    kafka_server: KafkaServer, tmp_path: Path, locations: int, sinks: int
) -> None:
    run = SinksBeside(tmp_path, kafka_server, seed=1, locations=locations, sinks=sinks)
    run.round()
    run.finish()
    assert run.faults[INSIDE] == 1
    assert run.faults[BESIDE] == (2 if locations > 1 else 0)
    assert all(topic.messages > ACCOUNTS for topic in run.topics)
