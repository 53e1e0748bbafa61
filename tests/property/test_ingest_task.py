"""The tasks of a tick: bounded memory, buckets by key, and the feeds that describe their work."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.clock import SYSTEM
from noonmark.errors import ConfigError
from noonmark.ingest import task as ingest_task
from noonmark.ingest.ingestion import Ingestion, InPlaceEngine, raw, typed
from noonmark.ingest.task import bucket_of
from noonmark.oracle import MemoryOracle
from noonmark.persist import task
from noonmark.persist.client import Client, Options, open_location
from noonmark.persist.config import Config
from noonmark.rows.schema import Schema
from noonmark.source.format.include import Include
from noonmark.source.format.json import Json
from noonmark.source.impl.counter import Counter
from noonmark.source.impl.files import of_lines

KEYS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
        st.one_of(st.none(), st.text(max_size=3)),
        st.booleans(),
    ),
    max_size=30,
)


def keyed(rows: list[Any]) -> pa.Table:
    numbers, texts, there = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "t": pa.array(texts, pa.string()),
            "f": pa.array([0.5] * len(rows), pa.float64()),
            "_keyed": pa.array(there, pa.bool_()),
        }
    )


@settings(max_examples=200)
@given(KEYS, KEYS, st.integers(1, 64))
def test_a_bucket_depends_on_the_key_alone(some: list[Any], others: list[Any], count: int) -> None:
    key = ("n", "t", "f")
    alone = bucket_of(keyed(some), key, count).tolist()
    assert all(0 <= bucket < count for bucket in alone)
    together = bucket_of(keyed(others + some), key, count).tolist()
    assert together[len(others) :] == alone
    assert all(bucket == 0 for bucket, row in zip(alone, some, strict=True) if not row[2])


def test_keys_spread_over_buckets() -> None:
    for rows in (
        [(n, None, True) for n in range(1000)],
        [(None, str(n), True) for n in range(1000)],
    ):
        counts = pa.array(bucket_of(keyed(rows), ("n", "t"), 16)).value_counts().to_pylist()
        assert len(counts) == 16
        assert max(each["counts"] for each in counts) < 150
    # A type that is not hashed is one bucket, which is right for every key.
    assert set(bucket_of(keyed([(1, "a", True), (2, "b", True)]), ("f",), 16).tolist()) == {0}


@pytest.fixture
def client() -> Iterator[Client]:
    config = Config(part_rows_max=1000, inline_bytes_max=0, merge_fan_in=1000)
    options = Options(notify_host=None, config=config)
    with open_location("memory:ingest-task", options=options) as opened:
        yield opened
        for name in list(opened.state.names):
            opened.drop(name).result()


def test_a_task_holds_no_more_than_a_run(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []

    def counted(place: Any, collection: Any, tables: list[pa.Table], **options: Any) -> Any:
        held.append(sum(table.num_rows for table in tables))
        return task.write(place, collection, tables, **options)

    class Task:
        write = staticmethod(counted)
        read, Place = staticmethod(task.read), task.TaskLocation

    monkeypatch.setattr(ingest_task, "task", Task)
    monkeypatch.setattr("noonmark.source.impl.generator.BATCH_ROWS", 300)
    source = Counter(start_ms=SYSTEM.now_ms() - 20_000, tick_ms=1)
    tick = Ingestion(client, MemoryOracle(SYSTEM), source, "c", InPlaceEngine()).start().tick()
    assert tick.rows >= 20_000
    assert sum(held) == tick.rows
    assert max(held) < 1000 + 300
    batches = client.state.collection("counter").batches
    assert len(batches) == len(held)


def test_feeds_say_what_they_are(tmp_path: Any) -> None:
    source = of_lines(str(tmp_path))
    image = Schema.of(id="bigint not null", word="text")
    feed = raw(source, 0, "t", Json(image), include=(Include("offset", "at"),), key=("id",))
    assert feed.schema.names == ("id", "word", "at")
    assert not feed.is_upsert
    assert pickle.loads(pickle.dumps(feed)) == feed
    upsert = raw(
        source, 0, "t", Json(image), key_format=Json(Schema.of(k="text")), envelope="UPSERT"
    )
    assert (upsert.key, upsert.is_upsert) == (("k",), True)
    debezium = raw(source, 0, "t", Json(image), envelope="DEBEZIUM", key=("id",))
    assert (debezium.schema, debezium.key) == (image, ("id",))
    with pytest.raises(ConfigError, match="DEBEZIUM"):
        raw(source, 0, "t", Json(image), envelope="DEBEZIUM", include=(Include("offset", "at"),))
    counter = Counter(start_ms=0)
    assert typed(counter, 0).collection == "counter"
    with pytest.raises(ConfigError, match="takes no format"):
        raw(counter, 0, "t", Json(image))


def test_debezium_in_an_ingestion(client: Client, tmp_path: Any) -> None:
    source = of_lines(str(tmp_path))
    image = Schema.of(id="bigint not null", word="text")
    feeds = (raw(source, 0, "t", Json(image), envelope="DEBEZIUM", key=("id",)),)
    ingestion = Ingestion(
        client, MemoryOracle(SYSTEM), source, "d", InPlaceEngine(), feeds=feeds
    ).start()
    one, two = {"id": 1, "word": "a"}, {"id": 1, "word": "b"}
    first = [
        {"before": None, "after": one, "op": "c"},
        {"payload": {"after": {"id": 2}, "op": "r"}},
    ]
    later = [{"before": one, "after": two, "op": "u"}, {"after": one, "op": "u"}, "no object"]
    contents = []
    for records in (first, later):
        with (tmp_path / "log.json").open("a") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        time = ingestion.tick().time
        contents.append(client.create_or_load("t")[1].snapshot(time).result().counts())
    assert contents == [{(1, "a"): 1, (2, None): 1}, {(1, "b"): 1, (2, None): 1}]
    errors = client.create_or_load("d_errors")[1].snapshot(time).result().counts()
    assert len(errors) == 2
