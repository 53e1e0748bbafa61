"""F4 with Kafka: ingestion of a topic (JSON, reclock, envelope NONE, durable) against plain Spark.

Two peers read the same topic, take the same columns out of the documents with ``from_json`` and
write them with ``write.parquet``: one reads in the same tasks with the same client as we do, the
other is Spark's own connector, which reads in the JVM (where Maven has it). Ours also gives every
record its time, sorts, checksums, keeps errors apart, fsyncs and commits. The figure is the lower
of the two ratios of rows/s.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.f4_ingestion import SCHEMA, Bench, json_documents
from bench.measure import side_by_side
from noonmark.clock import SYSTEM
from noonmark.compute.jvm.session import spark_session, stop_session
from noonmark.ingest.ingestion import raw
from noonmark.rows.spark import spark_schema
from noonmark.source import START
from noonmark.source import spark as source_spark
from noonmark.source.format.json import Json
from noonmark.source.impl.kafka import Kafka, create

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.neighbour.kafka import KafkaServer, connector_jars
from support.neighbour.upstreams import one_kafka

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROUNDS, PARTITIONS, RECORDS_PER_FLUSH = 3, 4, 40_000
GOAL = 0.8
TOPIC = "orders"


def main(argv: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=2_000_000)
    chosen = parser.parse_args(list(argv))
    rows = chosen.rows
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(one_kafka())
        fill(server, TOPIC, rows, chosen.seed)
        jars = connector_jars()
        options = {"spark.jars": ",".join(map(str, jars))} if jars else {}
        bench = Bench(folder, spark_session(options=options))
        stack.callback(stop_session)
        source = asyncio.run(create(server.options, TOPIC, "bench"))
        peers = {"same reader in Spark": lambda: same_reader(bench, source)}
        if jars:
            peers["Spark's connector"] = lambda: connector(bench, server)
        times = {name: measured(bench, source, rows, peer) for name, peer in peers.items()}
    value = min(ratio for _, _, ratio in times.values())
    measures = {}
    for name, (mine, seconds, ratio) in times.items():
        measures[f"noonmark beside {name}, rows/s"] = rows / mine
        measures[f"{name}, rows/s"] = rows / seconds
        print(f"{name}: {rows / seconds:,.0f} rows/s; noonmark has {ratio:.2f} of that")
    print(f"{value:.2f}")
    return {
        "title": "ingestion of a Kafka topic against plain Spark to Parquet",
        "value": value,
        "unit": "x",
        "goal": f">= {GOAL} of its rows/s",
        "met": value >= GOAL,
        "measures": measures,
        "note": f"{rows:,} JSON records in {PARTITIONS} partitions, median of {ROUNDS} rounds, "
        f"seed {chosen.seed}; "
        + ", ".join(f"{ratio:.2f} of {name}" for name, (_, _, ratio) in times.items()),
    }


def measured(
    bench: Bench, source: Kafka, rows: int, read: Callable[[], DataFrame]
) -> tuple[float, float, float]:
    """Median seconds of ours and of the peer, and the median of peer / ours."""

    def ours() -> None:
        feeds = (raw(source, 0, "t", Json(SCHEMA)),)
        with bench.ingestion(source, feeds, SYSTEM) as ingestion:
            assert ingestion.tick().rows == rows

    def peer() -> None:
        from pyspark.sql import functions as f

        with bench.fresh() as place:
            text = f.col("value").cast("string")
            rows_of = f.from_json(text, spark_schema(SCHEMA)).alias("row")
            read().select(rows_of).select("row.*").write.parquet(str(place))

    mine, theirs, ratio = side_by_side(ours, peer, ROUNDS)
    return mine, theirs, 1 / ratio


def same_reader(bench: Bench, source: Kafka) -> DataFrame:
    """The records as our own tasks read them, handed to Spark."""
    latest = asyncio.run(source.latest(SYSTEM))
    return source_spark.records(bench.batches, source, source.plan(START, latest), 0)


def connector(bench: Bench, server: KafkaServer) -> DataFrame:
    """The records as Spark's own connector reads them."""
    reader = bench.batches.read.format("kafka").option("subscribe", TOPIC)
    reader = reader.option("kafka.bootstrap.servers", server.bootstrap)
    return reader.option("startingOffsets", "earliest").load()


def fill(server: KafkaServer, topic: str, rows: int, seed: int) -> None:
    """A topic of documents, in turns over its partitions."""
    server.make_topic(topic, PARTITIONS)
    producer = server.producer(linger_ms=50, batch_size=1 << 20)
    for documents in json_documents(rows, seed, 1 + rows // RECORDS_PER_FLUSH):
        for at, document in enumerate(documents):
            producer.produce(topic, document, partition=at % PARTITIONS)
            if at % 1000 == 0:
                producer.poll(0)
        assert producer.flush(60) == 0


if __name__ == "__main__":
    main(sys.argv[1:])
