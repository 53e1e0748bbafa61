"""A server with a sink is killed: the topic has every change once, and is of one time."""

from __future__ import annotations

from pathlib import Path

from support.kafka import KafkaServer
from support.sink_kills import ACCOUNTS, SinkKills


def test_kills_neither_repeat_nor_lose_a_message(kafka_server: KafkaServer, tmp_path: Path) -> None:
    run = SinkKills(tmp_path / "data", kafka_server, seed=1)
    for _ in range(2):
        run.round()
    run.finish()
    assert run.faults["kill -9"] == 2
    assert run.messages > ACCOUNTS
    assert run.times > 2
