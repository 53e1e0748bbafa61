"""A consumer that stays reads what the long way reads, knows when it cannot, hears what comes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import SourceBroken
from noonmark.source import START
from noonmark.source.contract import Frontier, HasArrivals
from noonmark.source.impl.kafka import Kafka, create
from noonmark.source.splits import read_splits
from noonmark.tvc import known_partitions
from support.neighbour.kafka import KafkaServer

WAIT_S = 10.0


@pytest.fixture
def topic() -> str:
    return f"t-{SYSTEM.fresh_id()}"


@pytest.fixture
def long_ways(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The partitions that were read by a consumer of their own."""
    seen: list[int] = []
    read = Kafka._read

    def noted(self: Kafka, consumer: Any, split: Any, number: int) -> Iterator[pa.RecordBatch]:
        seen.append(number)
        return read(self, consumer, split, number)

    monkeypatch.setattr(Kafka, "_read", noted)
    return seen


def source_of(server: KafkaServer, topic: str) -> Kafka:
    return asyncio.run(create(server.options, topic, f"group-{topic}"))


def latest(source: Kafka, known: Frontier = START) -> Frontier:
    return asyncio.run(source.latest(SYSTEM, known))


def read(source: Kafka, lower: Frontier, upper: Frontier) -> list[tuple[int, int, bytes]]:
    """The records between two frontiers: partition, offset, value."""
    return [
        (row["_partition"], row["_offset"], row["value"])
        for batch in read_splits(source, source.plan(lower, upper))
        for row in batch.to_pylist()
    ]


def record(value: str, partition: int = 0) -> dict[str, Any]:
    return {"value": value.encode(), "partition": partition}


def test_histories_are_read_alike(
    kafka_server: KafkaServer, topic: str, long_ways: list[int]
) -> None:
    """Plain records, transactions that commit or do not, in several partitions, at any cut."""
    chance = random.Random(7)
    kafka_server.make_topic(topic, 3)
    listening, asking = source_of(kafka_server, topic), source_of(kafka_server, topic)
    bound = latest(listening)
    assert isinstance(listening, HasArrivals)
    producer = kafka_server.producer(transactional_id=topic)
    producer.init_transactions(30)
    seen = 0
    for at in range(40):
        assert not listening.arrived(bound, 0.0) or at
        rows = [record(f"{at}-{i}", chance.randrange(3)) for i in range(chance.randrange(1, 30))]
        if chance.random() < 0.5:
            kafka_server.send(topic, rows)
        else:
            producer.begin_transaction()
            for row in rows:
                producer.produce(topic, **row)
            producer.flush(30)
            if chance.random() < 0.3:
                producer.abort_transaction(30)
            else:
                producer.commit_transaction(30)
        if chance.random() < 0.3:
            continue
        upper = latest(listening, bound)
        heard = read(listening, bound, upper)
        assert not long_ways
        assert heard == read(asking, bound, upper)
        seen += len(heard)
        bound = upper
        long_ways.clear()
    assert seen > 100
    listening.close()
    asking.close()


def test_what_comes_is_heard_and_what_is_bound_is_not(
    kafka_server: KafkaServer, topic: str, long_ways: list[int]
) -> None:
    kafka_server.make_topic(topic, 2)
    source = source_of(kafka_server, topic)
    bound = latest(source)
    assert not source.arrived(bound, 0.3)
    kafka_server.send(topic, [record("a", 1), record("b", 1)])
    assert source.arrived(bound, WAIT_S)
    assert source.arrived(bound, 0.0), "it is heard until it is read"
    upper = latest(source, bound)
    assert [value for _, _, value in read(source, bound, upper)] == [b"a", b"b"]
    assert not source.arrived(upper, 0.3)
    assert long_ways == []
    source.close()


def test_who_is_not_where_a_split_begins_takes_the_long_way(
    kafka_server: KafkaServer, topic: str, long_ways: list[int]
) -> None:
    kafka_server.make_topic(topic, 1)
    source = source_of(kafka_server, topic)
    kafka_server.send(topic, [record(str(at)) for at in range(10)])
    upper = latest(source)
    assert source.arrived(upper, 0.0) is False
    assert len(read(source, START, upper)) == 10
    assert long_ways == [0]
    source.close()


def test_a_topic_made_again_is_not_read_though_its_records_came(
    kafka_server: KafkaServer, topic: str
) -> None:
    """Between what said how far the topic is and the reading: another one has as many offsets."""
    kafka_server.make_topic(topic, 1)
    source = source_of(kafka_server, topic)
    bound = latest(source)
    kafka_server.send(topic, [record("old")])
    upper = latest(source, bound)
    assert known_partitions(upper) == {0: 1}
    kafka_server.remake_topic(topic)
    kafka_server.send(topic, [record("new"), record("new")])
    source.arrived(bound, WAIT_S)
    (split,) = source.plan(bound, upper)
    with pytest.raises(SourceBroken, match="made again"):
        list(source.read(split))
    source.close()


def test_no_secret_and_no_consumer_is_pickled(kafka_server: KafkaServer, topic: str) -> None:
    import pickle

    kafka_server.make_topic(topic, 1)
    source = source_of(kafka_server, topic)
    source.arrived(latest(source), 0.0)
    again = pickle.loads(pickle.dumps(source))
    assert again == source
    assert again._live.tail is None
    source.close()
    assert source._live.tail is None
