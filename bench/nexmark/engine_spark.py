"""Structured Streaming as an engine of F11: one query a result, each batch into `foreachBatch`.

Settings: `local[2]`, a heap of 1.5 GB, as many shuffle partitions as cores, a batch as soon as the
one before it is done, the state in memory. Auctions are a batch table: a join of two streams is
only there in append mode, behind which no aggregate may stand without a watermark.

`categories` is left out: aggregates over aggregates of a stream are refused. `top` is asked for as
the sorted first ten rows of an aggregate by id, in complete mode, the only form that is allowed.
An answer is published at the end of every batch.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.nexmark.answers import Answers

_BID = "id bigint, auction bigint, bidder bigint, price bigint, channel string"
_AUCTION = "id bigint, item string, seller bigint, category bigint"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1536m",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.log.level": "ERROR",
}


def session(jars: list[str], folder: str) -> Any:
    """Spark with its connector to Kafka."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.jars", ",".join(jars))
    builder = builder.config("spark.sql.streaming.checkpointLocation", folder)
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def results(spark: Any, bootstrap: str, suffix: str) -> dict[str, tuple[Any, str]]:
    """The results that it can, and the mode of each."""
    from pyspark.sql import functions as f

    def read(reader: Any, topic: str, schema: str) -> Any:
        frame = reader.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        frame = frame.option("subscribe", topic + suffix).option("startingOffsets", "earliest")
        frame = frame.option("kafka.isolation.level", "read_committed").load()
        text = f.col("value").cast("string")
        return frame.select(f.from_json(text, schema).alias("it")).select("it.*")

    auctions = read(spark.read, "auctions", _AUCTION).select("id", "seller").localCheckpoint()
    auctions = auctions.withColumnRenamed("id", "auction")
    bids = read(spark.readStream, "bids", _BID)
    sellers = bids.join(f.broadcast(auctions), "auction").groupBy("seller")
    top = bids.groupBy("id").agg(f.max("price").alias("price"))
    return {
        "sellers": (
            sellers.agg(f.count("*").alias("bids"), f.sum("price").alias("total")),
            "update",
        ),
        "top": (top.orderBy(f.desc("price"), "id").limit(10), "complete"),
    }


class Batches:
    """What comes of a result, batch by batch; a row replaces the one of its key."""

    def __init__(self, view: str, answers: Answers) -> None:
        self._view, self._answers = view, answers
        self._rows: dict[int, tuple[int, ...]] = {}

    def take(self, frame: Any, _: int) -> None:
        """One batch."""
        come = {row[0]: tuple(row) for row in frame.collect()}
        put: Callable[..., None] = self._answers.seller
        gone: dict[int, tuple[int, ...]] = {k: self._rows[k] for k in come if k in self._rows}
        if self._view == "top":
            put, gone = self._answers.bid, dict(self._rows)
            self._rows.clear()
        for row in gone.values():
            put(*row, -1)
        for row in come.values():
            put(*row, 1)
        self._rows |= come
        self._answers.publish(self._view)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("suffix")
    parser.add_argument("answers", type=Path)
    parser.add_argument("--jars", nargs="+", required=True)
    chosen = parser.parse_args(argv)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        spark = session(chosen.jars, folder)
        answers = Answers(chosen.answers)
        for view, (frame, mode) in results(spark, chosen.bootstrap, chosen.suffix).items():
            take = Batches(view, answers).take
            frame.writeStream.outputMode(mode).queryName(view).foreachBatch(take).start()
        print("running", flush=True)
        sys.stdin.readline()
        for query in spark.streams.active:
            query.stop()
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
