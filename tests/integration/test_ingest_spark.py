"""Ingestion on Spark: sources side by side, tasks that fail, executors that die, idle ticks.

The same on two executor processes as in one JVM. What is right is what `InPlaceEngine` says, or
the source itself.
"""

from __future__ import annotations

import json
import threading
from collections import Counter as Multiset
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from noonmark.clock import SYSTEM
from noonmark.compute.jvm.session import for_ticks
from noonmark.errors import SourceStalled
from noonmark.ingest import engine as ingest_engine
from noonmark.ingest.ingestion import Feed, Ingestion, InPlaceEngine, SparkEngine, raw, typed
from noonmark.oracle import MemoryOracle
from noonmark.persist.client import Client, Options, open_location
from noonmark.persist.config import Config
from noonmark.rows.schema import Schema
from noonmark.source import START, Source
from noonmark.source.format.json import Json
from noonmark.source.impl.counter import Counter
from noonmark.source.impl.files import of_lines
from noonmark.source.impl.key_value import KeyValue
from noonmark.source.splits import read_splits
from support.ingest.failing import FailsOnce, fail, kill_executor, stall

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = 1_700_000_000_000
SCHEMA = Schema.of(id="bigint not null", word="text")
# Everything is stored as parts, by the tasks themselves.
CONFIG = Config(inline_bytes_max=0, part_rows_max=400)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with open_location(tmp_path / "location", options=Options(config=CONFIG)) as opened:
        yield opened


@pytest.fixture
def many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every split is worth a task, and every UPSERT a shuffle."""
    monkeypatch.setattr(ingest_engine, "_WEIGHT_PER_TASK", 1)
    monkeypatch.setattr(ingest_engine, "_WEIGHT_UNSHUFFLED", 0)


def engine(session: SparkSession) -> SparkEngine:
    derived = for_ticks(session)
    return SparkEngine(lambda: derived)


def now_rows(client: Client, name: str) -> Multiset[Any]:
    _, read = client.create_or_load(name)
    return read.snapshot((read.upper.only() or 1) - 1).result().counts()


def rows_of(source: Source, ingestion: Ingestion, output: int = 0) -> Multiset[Any]:
    """What the source itself says, up to what is bound."""
    found: Multiset[Any] = Multiset()
    for batch in read_splits(source, source.plan(START, ingestion.remap.latest)):
        for row in batch.to_pylist():
            if row["_output"] == output:
                data = tuple(v for name, v in row.items() if not name.startswith("_"))
                found[data] += row["_diff"]
    return Multiset({row: count for row, count in found.items() if count})


def write_lines(folder: Path, files: int, lines: int, start: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(files):
        with (folder / f"{number}.json").open("a") as file:
            for at in range(start, start + lines):
                # Keys that meet in all files; the last file has the last word at each time.
                file.write(json.dumps({"id": at % 97, "word": f"{number}/{at}"}) + "\n")


def upsert(source: Source, name: str) -> tuple[Feed, ...]:
    return (raw(source, 0, name, Json(SCHEMA), envelope="UPSERT", key=("id",)),)


def sources(folder: Path) -> dict[str, tuple[Source, tuple[Feed, ...]]]:
    write_lines(folder / "in", 3, 300)
    counter = Counter(start_ms=SYSTEM.now_ms() - 600_000, tick_ms=100, max_cardinality=50)
    key_value = KeyValue(start_ms=SYSTEM.now_ms() - 60_000, tick_ms=100, keys=600, partitions=2)
    files = of_lines(str(folder / "in"))
    return {
        "counter": (counter, (typed(counter, 0),)),
        "key_value": (key_value, (typed(key_value, 0),)),
        "appended": (files, (raw(files, 0, "appended", Json(SCHEMA)),)),
        "upserted": (files, upsert(files, "upserted")),
    }


def tick_side_by_side(client: Client, session: SparkSession, folder: Path) -> None:
    oracle, found = MemoryOracle(SYSTEM), sources(folder)
    ingestions = {
        name: Ingestion(client, oracle, source, name, engine(session), feeds=feeds).start()
        for name, (source, feeds) in found.items()
    }
    failures: list[BaseException] = []

    def ticks(ingestion: Ingestion) -> None:
        try:
            for _ in range(3):
                ingestion.tick()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ticks, args=(each,)) for each in ingestions.values()]
    for thread in threads:
        thread.start()
    write_lines(folder / "in", 2, 100, start=300)
    for thread in threads:
        thread.join()
    assert failures == []
    for ingestion in ingestions.values():
        ingestion.tick()
    for name in ("counter", "key_value"):
        assert now_rows(client, name) == rows_of(found[name][0], ingestions[name])
    lines = [json.loads(x) for f in (folder / "in").iterdir() for x in f.read_text().splitlines()]
    assert now_rows(client, "appended") == Multiset((x["id"], x["word"]) for x in lines)
    assert len(now_rows(client, "upserted")) == 97


def test_sources_tick_side_by_side(spark: SparkSession, client: Client, tmp_path: Path) -> None:
    tick_side_by_side(client, spark, tmp_path)


@pytest.mark.usefixtures("many_tasks")
def test_an_upsert_is_the_same_with_and_without_a_shuffle(
    spark: SparkSession, client: Client, tmp_path: Path
) -> None:
    source, oracle = of_lines(str(tmp_path / "in")), MemoryOracle(SYSTEM)
    on_spark = Ingestion(
        client, oracle, source, "s", engine(spark), feeds=upsert(source, "s")
    ).start()
    in_place = Ingestion(
        client, oracle, source, "p", InPlaceEngine(), feeds=upsert(source, "p")
    ).start()
    for round_ in range(3):
        write_lines(tmp_path / "in", round_ + 1, 150, start=150 * round_)
        with (tmp_path / "in" / "bad.json").open("a") as file:
            file.write("{\n")
        tick = on_spark.tick()
        in_place.tick()
        assert tick.splits > 1
        assert now_rows(client, "s") == now_rows(client, "p")
        assert len(now_rows(client, "s_errors")) == round_ + 1


@pytest.mark.usefixtures("many_tasks")
def test_a_failed_task_fails_the_tick_and_the_next_one_catches_up(
    spark: SparkSession, client: Client, tmp_path: Path
) -> None:
    write_lines(tmp_path / "in", 2, 500)
    source: Any = FailsOnce(of_lines(str(tmp_path / "in")), str(tmp_path / "marker"), stall)
    feeds = (raw(source, 0, "t", Json(SCHEMA)),)
    ingestion = Ingestion(
        client, MemoryOracle(SYSTEM), source, "f", engine(spark), feeds=feeds
    ).start()
    with pytest.raises(SourceStalled, match="upstream is asleep"):
        ingestion.tick()
    assert client.state.collection("t").batches == ()
    ingestion.tick()
    assert now_rows(client, "t").total() == 1000
    assert set(now_rows(client, "t").values()) <= set(range(1, 12))


def test_an_idle_tick_runs_no_job_and_advances_uppers(
    spark: SparkSession, client: Client, tmp_path: Path
) -> None:
    write_lines(tmp_path / "in", 1, 10)
    source = of_lines(str(tmp_path / "in"))
    ingestion = Ingestion(
        client, MemoryOracle(SYSTEM), source, "f", engine(spark), feeds=upsert(source, "t")
    ).start()
    ingestion.tick()
    tracker, seqno = spark.sparkContext.statusTracker(), client.state.seqno
    jobs = set(tracker.getJobIdsForGroup(None))
    assert jobs
    uppers = [ingestion.tick().time + 1 for _ in range(5)]
    assert set(tracker.getJobIdsForGroup(None)) == jobs
    assert uppers == sorted(set(uppers))
    for name in ("t", "f_errors", "f_remap"):
        assert client.state.collection(name).upper.only() == uppers[-1]
    assert client.state.seqno <= seqno + 5 + 2  # one commit each, and upkeep's own


def test_sources_tick_side_by_side_on_a_cluster(
    spark_cluster: SparkSession, client: Client, tmp_path: Path
) -> None:
    tick_side_by_side(client, spark_cluster, tmp_path)


@pytest.mark.usefixtures("many_tasks")
@pytest.mark.parametrize("how", [fail, kill_executor])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_task_that_dies_is_tried_again(
    how: Callable[[], None],
    shuffled: bool,
    spark_cluster: SparkSession,
    client: Client,
    tmp_path: Path,
) -> None:
    write_lines(tmp_path / "in", 3, 700)
    plain = of_lines(str(tmp_path / "in"))
    source: Any = FailsOnce(plain, str(tmp_path / "marker"), how)
    feeds = upsert(source, "t") if shuffled else (raw(source, 0, "t", Json(SCHEMA)),)
    oracle = MemoryOracle(SYSTEM)
    ingestion = Ingestion(client, oracle, source, "f", engine(spark_cluster), feeds=feeds).start()
    ingestion.tick()
    assert (tmp_path / "marker").exists()
    feeds = upsert(plain, "u") if shuffled else (raw(plain, 0, "u", Json(SCHEMA)),)
    Ingestion(client, oracle, plain, "p", InPlaceEngine(), feeds=feeds).start().tick()
    assert now_rows(client, "t") == now_rows(client, "u")
    assert now_rows(client, "t").total() == (97 if shuffled else 2100)
