"""FROM KAFKA with a real broker: what was committed is read, once, and nothing else.

Each case is run twice: by who only ticks, and by who listens between ticks.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import ConfigError, Indeterminate, SourceStalled
from noonmark.ingest.ingestion import Feed, Ingestion, InPlaceEngine, Tick, raw
from noonmark.oracle import MemoryOracle
from noonmark.persist.client import Client, open_location
from noonmark.rows.schema import Schema
from noonmark.sink import kafka as kafka_sink
from noonmark.sink.envelope import Message
from noonmark.source import START
from noonmark.source.format.csv import Csv
from noonmark.source.format.include import Include
from noonmark.source.format.json import Json
from noonmark.source.format.plain import Bytes, Text
from noonmark.source.impl.kafka import Kafka, StartFrom, create
from noonmark.source.impl.kafka import source as kafka_source
from noonmark.tvc import known_partitions
from support.ingest.logical_ingest import contents, error_of, reasons
from support.neighbour.kafka import KafkaServer, start_kafka

WORDS = Schema.of(id="bigint not null", word="text")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with open_location(tmp_path / "location") as opened:
        yield opened


@pytest.fixture
def topic() -> str:
    return f"t-{SYSTEM.fresh_id()}"


def source_of(server: KafkaServer, topic: str, start: StartFrom | None = None) -> Kafka:
    return asyncio.run(create(server.options, topic, f"group-{topic}", start))


class Listening(Ingestion):
    """An ingestion that listens between ticks, as a source's worker does."""

    def tick(self, *, asks: bool = True) -> Tick:
        assert isinstance(self.source, Kafka)
        self.source.arrived(self.remap.latest, 0.2)
        return super().tick(asks=asks)


@pytest.fixture(params=[Ingestion, Listening], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WAY, "way", request.param)


WAY: dict[str, type[Ingestion]] = {}


def ingest(client: Client, source: Kafka, feed: Feed | None = None) -> Ingestion:
    feeds = (feed or raw(source, 0, "k", Json(WORDS)),)
    return WAY["way"](
        client, MemoryOracle(SYSTEM), source, "kafka", InPlaceEngine(), feeds=feeds
    ).start()


def tick_often(ingestion: Ingestion) -> None:
    for _ in range(50):
        ingestion.tick()


def words(*pairs: tuple[int, str], partition: int = 0) -> list[dict[str, Any]]:
    return [
        {"value": json.dumps({"id": i, "word": w}).encode(), "partition": partition}
        for i, w in pairs
    ]


def test_records_of_all_partitions_are_read_once(
    kafka_server: KafkaServer, client: Client, topic: str
) -> None:
    kafka_server.make_topic(topic, 3)
    rows = [(i, f"w{i}") for i in range(300)]
    for partition in range(3):
        kafka_server.send(topic, words(*rows[partition::3], partition=partition))
    source = source_of(kafka_server, topic)
    ingestion = ingest(client, source)
    ingestion.tick()
    assert contents(client, "k") == Counter(rows)
    kafka_server.send(topic, words((1000, "more"), partition=2))
    tick = ingestion.tick()
    assert tick.rows == 1
    assert contents(client, "k") == Counter([*rows, (1000, "more")])
    assert ingestion.tick().splits == 0
    assert kafka_server.committed(source.group, topic, 2) == 101
    source.close()


def test_partitions_that_are_added_are_read(
    kafka_server: KafkaServer, client: Client, topic: str
) -> None:
    kafka_server.make_topic(topic, 1)
    kafka_server.send(topic, words((1, "old")))
    source = source_of(kafka_server, topic)
    ingestion = ingest(client, source)
    ingestion.tick()
    kafka_server.add_partitions(topic, 3)
    for _ in range(100):
        try:
            kafka_server.send(topic, words((2, "new"), partition=2))
            break
        except Exception:  # the producer may not know of it yet
            continue
    ingestion.tick()
    assert contents(client, "k") == Counter([(1, "old"), (2, "new")])
    source.close()


def test_only_committed_transactions_are_read_and_holes_are_nothing(
    kafka_server: KafkaServer, client: Client, topic: str
) -> None:
    kafka_server.make_topic(topic, 1)
    source = source_of(kafka_server, topic)
    ingestion = ingest(client, source)
    producer = kafka_server.producer(transactional_id=topic)
    producer.init_transactions(30)
    producer.begin_transaction()
    for record in words((1, "aborted"), (2, "aborted")):
        producer.produce(topic, **record)
    producer.flush(30)
    producer.abort_transaction(30)
    producer.begin_transaction()
    for record in words((3, "committed"), (4, "committed")):
        producer.produce(topic, **record)
    producer.flush(30)
    ingestion.tick()
    assert contents(client, "k") == Counter()
    producer.commit_transaction(30)
    # A commit is answered a moment before its partitions hear of it.
    for _ in range(100):
        ingestion.tick()
        if contents(client, "k"):
            break
    assert contents(client, "k") == Counter([(3, "committed"), (4, "committed")])
    # The end of the partition is a control record, an offset without a record.
    assert known_partitions(ingestion.remap.latest) == {0: 6}
    source.close()


def test_a_compacted_topic_has_holes(kafka_server: KafkaServer, client: Client, topic: str) -> None:
    config = {"cleanup_policy": "compact", "segment_ms": "100", "min_cleanable_dirty_ratio": "0.01"}
    kafka_server.make_topic(topic, 1, **config, max_compaction_lag_ms="100")
    for round_ in range(4):
        records = [
            {"key": str(i).encode(), "value": f"{round_}".encode(), "partition": 0}
            for i in range(50)
        ]
        kafka_server.send(topic, records)
        asyncio.run(SYSTEM.sleep(0.15))
    source = source_of(kafka_server, topic)
    frontier = asyncio.run(source.latest(SYSTEM))
    for _ in range(100):
        batches = [b for split in source.plan(START, frontier) for b in source.read(split)]
        if sum(batch.num_rows for batch in batches) < 200:
            break
        kafka_server.send(topic, [{"key": b"x", "value": b"x", "partition": 0}])
        asyncio.run(SYSTEM.sleep(0.1))
    assert sum(batch.num_rows for batch in batches) < 200
    feed = raw(
        source, 0, "k", Text(Schema.of(v="text")), envelope="UPSERT",
        key_format=Text(Schema.of(key="text not null")),
    )  # fmt: skip
    ingest(client, source, feed).tick()
    found = {row for row in contents(client, "k") if row[0] != "x"}
    assert found == {(str(i), "3") for i in range(50)}
    source.close()


def test_upsert_with_tombstones_and_include(
    kafka_server: KafkaServer, client: Client, topic: str
) -> None:
    kafka_server.make_topic(topic, 1)
    source = source_of(kafka_server, topic)
    feed = raw(
        source, 0, "k", Json(Schema.of(n="int")), envelope="UPSERT",
        key_format=Json(Schema.of(id="int not null")),
        include=(Include("partition", "p"), Include("offset", "o"), Include("timestamp", "ts")),
    )  # fmt: skip
    ingestion = ingest(client, source, feed)
    records = [
        {"key": b'{"id": 1}', "value": b'{"n": 1}', "timestamp": 1_600_000_000_000},
        {"key": b'{"id": 2}', "value": b'{"n": 2}'},
        {"key": b'{"id": 1}', "value": b'{"n": 3}', "timestamp": 1_600_000_000_123},
        {"key": b'{"id": 2}', "value": None},
        {"key": b'{"id": 3}', "value": b"no json"},
    ]
    kafka_server.send(topic, records)
    ingestion.tick()
    (row,) = contents(client, "k")
    assert row[:4] == (1, 3, 0, 2)
    assert row[4].timestamp() == 1_600_000_000.123
    assert len(reasons(client, "kafka_errors")) == 1
    kafka_server.send(topic, [{"key": b'{"id": 3}', "value": b'{"n": 9}'}])
    ingestion.tick()
    assert {row[:2] for row in contents(client, "k")} == {(1, 3), (3, 9)}
    assert reasons(client, "kafka_errors") == []
    source.close()


def test_debezium(kafka_server: KafkaServer, client: Client, topic: str) -> None:
    kafka_server.make_topic(topic, 1)
    source = source_of(kafka_server, topic)
    ingestion = ingest(client, source, raw(source, 0, "k", Json(WORDS), envelope="DEBEZIUM"))
    changes = [
        {"before": None, "after": {"id": 1, "word": "a"}, "op": "c"},
        {"before": {"id": 1, "word": "a"}, "after": {"id": 1, "word": "b"}, "op": "u"},
        {"before": None, "after": {"id": 2, "word": "c"}, "op": "c"},
        {"before": {"id": 2, "word": "c"}, "after": None, "op": "d"},
    ]
    kafka_server.send(topic, [{"value": json.dumps(each).encode()} for each in changes])
    ingestion.tick()
    assert contents(client, "k") == Counter([(1, "b")])
    source.close()


FORMATS = {
    "text": (Text(), [b"a", "ä\n".encode()], [("a",), ("ä\n",)]),
    "bytes": (Bytes(), [b"\x00\xff"], [(b"\x00\xff",)]),
    "csv": (Csv(WORDS), [b'1,"x,y"', b"2,"], [(1, "x,y"), (2, None)]),
    "json": (Json(), [b'{"b": 1, "a": [2]}'], [('{"a": [2], "b": 1}',)]),
}


@pytest.mark.parametrize("kind", list(FORMATS))
def test_formats(kafka_server: KafkaServer, client: Client, topic: str, kind: str) -> None:
    form, values, rows = FORMATS[kind]
    kafka_server.make_topic(topic, 1)
    kafka_server.send(topic, [{"value": value} for value in values])
    source = source_of(kafka_server, topic)
    ingest(client, source, raw(source, 0, "k", form)).tick()
    assert contents(client, "k") == Counter(rows)
    source.close()


def test_where_reading_starts(kafka_server: KafkaServer, topic: str) -> None:
    kafka_server.make_topic(topic, 2)
    first = SYSTEM.now_ms() - 1_000  # records of long ago are past their retention at once
    for at in range(10):
        stamp = first + at
        kafka_server.send(topic, [{"value": b"%d" % at, "partition": at % 2, "timestamp": stamp}])

    def read(start: StartFrom) -> list[bytes]:
        source = source_of(kafka_server, topic, start)
        frontier = asyncio.run(source.latest(SYSTEM))
        splits = source.plan(START, frontier)
        found = [
            value
            for split in splits
            for batch in source.read(split)
            for value in batch.column("value").to_pylist()
        ]
        source.close()
        return sorted(found)

    assert len(read(StartFrom())) == 10
    assert read(StartFrom(offsets={0: 3, 1: 4})) == [b"6", b"8", b"9"]
    assert read(StartFrom(timestamp_ms=first + 7)) == [b"7", b"8", b"9"]
    with pytest.raises(ConfigError, match="no partition 7"):
        source_of(kafka_server, topic, StartFrom(offsets={7: 0}))


def test_a_partition_is_read_by_several_tasks(
    kafka_server: KafkaServer, client: Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_source, "SPLIT_OFFSETS", 100)
    kafka_server.make_topic(topic, 1)
    rows = [(i, "x" * (i % 7)) for i in range(1050)]
    kafka_server.send(topic, words(*rows))
    source = source_of(kafka_server, topic)
    assert ingest(client, source).tick().splits == 11
    assert contents(client, "k") == Counter(rows)
    source.close()


def test_a_topic_made_again_is_another_topic(
    kafka_server: KafkaServer, client: Client, topic: str
) -> None:
    kafka_server.make_topic(topic, 1)
    kafka_server.send(topic, words((1, "old")))
    source = source_of(kafka_server, topic)
    ingestion = ingest(client, source)
    ingestion.tick()
    kafka_server.drop_topic(topic)
    with pytest.raises(SourceStalled, match="does not answer as it should"):
        tick_often(ingestion)  # brokers hear of it a little later
    for _ in range(50):
        try:
            kafka_server.make_topic(topic, 1)
            break
        except Exception:
            asyncio.run(SYSTEM.sleep(0.1))
    kafka_server.send(topic, words((1, "new"), (2, "new"), (3, "new")))
    before = ingestion.tick().time - 1
    reason = f'topic "{topic}" was deleted and made again: it is another topic'
    assert error_of(client, "k") == reason
    assert contents(client, "k", before) == Counter([(1, "old")])
    assert reasons(client, "kafka_errors") == [reason]
    ingestion.tick()
    assert len(reasons(client, "kafka_errors")) == 1
    source.close()


def test_retention_that_overtook_us_names_what_is_gone(
    kafka_server: KafkaServer, client: Client, topic: str
) -> None:
    kafka_server.make_topic(topic, 1)
    kafka_server.send(topic, words((0, "read")))
    source = source_of(kafka_server, topic)
    ingestion = ingest(client, source)
    ingestion.tick()
    kafka_server.send(topic, words(*((i, "w") for i in range(1, 10))))
    kafka_server.delete_records(topic, 0, 6)
    ingestion.tick()
    assert sorted(row[0] for row in contents(client, "k")) == [0, 6, 7, 8, 9]
    assert reasons(client, "kafka_errors") == [
        "offsets 1 to 5 of partition 0 were removed before they were read: retention overtook the"
        " source"
    ]
    source.close()


def test_what_retention_took_before_the_start_is_no_loss(
    kafka_server: KafkaServer, client: Client, topic: str
) -> None:
    kafka_server.make_topic(topic, 1)
    kafka_server.send(topic, words(*((i, "w") for i in range(10))))
    kafka_server.delete_records(topic, 0, 6)
    source = source_of(kafka_server, topic)
    ingest(client, source).tick()
    assert sorted(row[0] for row in contents(client, "k")) == [6, 7, 8, 9]
    assert reasons(client, "kafka_errors") == []
    with pytest.raises(ConfigError, match="begins at offset 6"):
        source_of(kafka_server, topic, StartFrom(offsets={0: 2}))
    source.close()


def test_no_topic_and_no_broker(kafka_server: KafkaServer, topic: str) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        source_of(kafka_server, topic)
    options = (("bootstrap.servers", "127.0.0.1:1"), ("sasl.password", "SENTINEL"))
    assert "SENTINEL" not in repr(Kafka(options, topic, "id", "g"))


def test_linearizable_latest(kafka_server: KafkaServer, topic: str) -> None:
    kafka_server.make_topic(topic, 1)
    source = source_of(kafka_server, topic)
    for step in range(1, 30):
        kafka_server.send(topic, words((step, "w")))
        assert known_partitions(asyncio.run(source.latest(SYSTEM))) == {0: step}
    source.close()


def test_a_broker_that_is_killed_and_comes_back_whole_and_then_in_part(
    kafka_jars: Path, client: Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from noonmark.source.impl.kafka import client as kafka_client
    from support.neighbour.servers import server_folder

    for module in (kafka_client, kafka_sink):
        monkeypatch.setattr(module, "TIMEOUT_S", 2.0)
    with server_folder("kafka-again") as folder:
        with start_kafka(folder, kafka_jars) as server:
            server.make_topic(topic, 1)
            server.send(topic, words((1, "before")))
            source = source_of(server, topic)
            ingestion = ingest(client, source)
            ingestion.tick()
            sink = kafka_sink.Writer(server.options, f"{topic}-out", f"{topic}-progress", topic)
            assert opened(sink) is None
            sink.write([Message(b"k", b"1", 5)], 6)
        with pytest.raises(SourceStalled, match="does not answer as it should"):
            ingestion.tick()
        with pytest.raises(Indeterminate):
            sink.write([Message(b"k", b"lost", 7)], 8)
        settings = dict(
            line.partition("=")[::2]
            for line in (folder / "server.properties").read_text().splitlines()
        )
        ports = [int(each.rpartition(":")[2]) for each in settings["listeners"].split(",")]
        shutil.copytree(folder / "data", folder / "earlier")
        with start_kafka(folder, kafka_jars, (ports[0], ports[1])) as server:
            server.send(topic, words((2, "after")))
            tick_until(ingestion)
            assert contents(client, "k") == Counter([(1, "before"), (2, "after")])
            assert reasons(client, "kafka_errors") == []
            assert opened(sink) == 6
            sink.write([Message(b"k", b"2", 7)], 8)
            assert [each.value() for each in server.committed_records(f"{topic}-out")] == [
                b"1",
                b"2",
            ]
            sink.close()
        # A broker that comes back with less than it had acknowledged.
        shutil.rmtree(folder / "data")
        shutil.move(folder / "earlier", folder / "data")
        with start_kafka(folder, kafka_jars, (ports[0], ports[1])):
            for _ in range(2):
                tick_until(ingestion)
                reason = (
                    f"partition 0 of topic '{topic}' lost records that it had: it ends before them"
                )
                assert error_of(client, "k") == reason
                assert reasons(client, "kafka_errors") == [reason]
            source.close()


def opened(sink: kafka_sink.Writer) -> int | None:
    """What a sink finds, as its worker asks: a stall is waited out."""
    for _ in range(30):
        try:
            return sink.open()
        except (Indeterminate, SourceStalled):
            continue
    return sink.open()


def tick_until(ingestion: Ingestion) -> None:
    """Tick as a source's worker does: a stall is waited out."""
    for _ in range(60):
        try:
            ingestion.tick()
        except SourceStalled:
            asyncio.run(SYSTEM.sleep(0.2))
        else:
            return
    ingestion.tick()
