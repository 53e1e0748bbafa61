"""Kafka and PostgreSQL on Spark: executors read partitions and pages side by side."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from noonmark.clock import SYSTEM
from noonmark.compute.jvm.session import for_ticks
from noonmark.ingest import engine as ingest_engine
from noonmark.ingest.feed import postgres
from noonmark.ingest.ingestion import Ingestion, SparkEngine, raw
from noonmark.oracle import MemoryOracle
from noonmark.persist.client import Client, Options, open_location
from noonmark.persist.config import Config
from noonmark.rows.schema import Schema
from noonmark.source.format.plain import Text
from noonmark.source.impl.kafka import create
from noonmark.source.impl.kafka import source as kafka_source
from noonmark.source.impl.postgres import snapshot
from support.ingest.logical_ingest import contents
from support.neighbour.kafka import KafkaServer
from support.neighbour.logical import Upstream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    config = Config(inline_bytes_max=0, part_rows_max=400)
    with open_location(tmp_path / "location", options=Options(config=config)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tasks, and every UPSERT a shuffle."""
    monkeypatch.setattr(ingest_engine, "_WEIGHT_PER_TASK", 500)
    monkeypatch.setattr(ingest_engine, "_WEIGHT_UNSHUFFLED", 0)
    monkeypatch.setattr(snapshot, "PIECE_PAGES", 8)
    monkeypatch.setattr(kafka_source, "SPLIT_OFFSETS", 300)


def engine(session: SparkSession) -> SparkEngine:
    derived = for_ticks(session)
    return SparkEngine(lambda: derived)


def test_a_publication(spark: SparkSession, client: Client, upstream: Upstream) -> None:
    upstream.run(
        "create table whole (id int, word text)",
        "alter table whole replica identity full",
        "create table keyed (id int primary key, word text)",
        "insert into whole select i, repeat('w', 90) from generate_series(1, 2000) i",
        "insert into keyed select i, repeat('w', 90) from generate_series(1, 2000) i",
    )
    source = upstream.source()
    upstream.run(
        "update keyed set word = 'early' where id % 2 = 0", "delete from whole where id < 9"
    )
    feeds = postgres(source)
    ingestion = Ingestion(
        client, MemoryOracle(SYSTEM), source, "pg", engine(spark), feeds=feeds
    ).start()
    assert ingestion.tick().splits > 5
    for step in range(2):
        for table in ("whole", "keyed"):
            assert contents(client, table) == Counter(upstream.run(f"select * from {table}"))
        upstream.run(
            f"update whole set word = 'step {step}' where id % 5 = {step}",
            f"update keyed set word = 'step {step}' where id % 5 = {step}",
            f"delete from keyed where id % 100 = {step}",
        )
        ingestion.tick()
    upstream.run(
        "update keyed set word = 'gone' where id < 900",
        "insert into whole select i, 'gone' from generate_series(1, 900) i",
        "truncate whole, keyed",
        "insert into whole select i, 'here' from generate_series(1, 900) i",
        "insert into keyed select i, 'here' from generate_series(1, 900) i",
    )
    ingestion.tick()
    for table in ("whole", "keyed"):
        assert contents(client, table) == Counter(upstream.run(f"select * from {table}"))
    source.close()


def test_a_topic(spark: SparkSession, client: Client, kafka_server: KafkaServer) -> None:
    topic = f"t-{SYSTEM.fresh_id()}"
    kafka_server.make_topic(topic, 2)
    kafka_server.send(
        topic,
        [
            {"key": b"%d" % (i % 97), "value": b"%d" % i, "partition": i % 97 % 2}
            for i in range(2000)
        ],
    )
    source = asyncio.run(create(kafka_server.options, topic, topic))
    feed = raw(
        source, 0, "k", Text(Schema.of(value="text")), envelope="UPSERT",
        key_format=Text(Schema.of(key="text not null")),
    )  # fmt: skip
    ingestion = Ingestion(
        client, MemoryOracle(SYSTEM), source, "kafka", engine(spark), feeds=(feed,)
    ).start()
    assert ingestion.tick().splits > 4
    newest = {str(i % 97): str(i) for i in range(2000)}
    assert contents(client, "k") == Counter(newest.items())
    source.close()
