"""Flink as an engine of F11: one job of Flink SQL in its local cluster, results by upsert-kafka.

Settings: parallelism 2, state on the heap (1.5 GB), no checkpoints (nothing of it is durable),
mini-batches of at most 50 ms or 20,000 rows with two-phase aggregates, which is what Flink's
documents advise for throughput; object reuse on. Records are read as they are committed.

Flink says nowhere that a result is complete. So an answer is what had come to the topic of results
when nothing more was there to take for `_QUIET_S`, or `_PATIENCE_S` after the last answer.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from bench.nexmark.answers import Answers, now

_QUIET_S, _PATIENCE_S = 0.005, 1.0
HEAP = "-Xmx1536m"
_SETTINGS = {
    "parallelism.default": "2",
    "execution.buffer-timeout.interval": "10 ms",
    "pipeline.object-reuse": "true",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "50 ms",
    "table.exec.mini-batch.size": "20000",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
}
_SOURCES = {
    "auctions": "id bigint, item string, seller bigint, category bigint",
    "bids": "id bigint, auction bigint, bidder bigint, price bigint, channel string",
}
_RESULTS = {
    "sellers": (
        "seller bigint, bids bigint, total bigint, primary key (seller) not enforced",
        "select a.seller, count(*), sum(b.price) "
        "from bids as b join auctions as a on a.id = b.auction group by a.seller",
    ),
    "categories": (
        "category bigint, average double, bids bigint, primary key (category) not enforced",
        "select category, avg(cast(final as double)), sum(bids) from ("
        "select a.category, a.id, max(b.price) as final, count(*) as bids "
        "from auctions as a join bids as b on b.auction = a.id group by a.category, a.id"
        ") group by category",
    ),
    "top": (
        "place bigint, id bigint, price bigint, primary key (place) not enforced",
        "select place, id, price from (select id, price, "
        "row_number() over (order by price desc, id) as place from bids) where place <= 10",
    ),
}


def submit(bootstrap: str, suffix: str, jar: Path) -> None:
    """Hand the job to Flink."""
    from pyflink.table import EnvironmentSettings, TableEnvironment

    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("pipeline.jars", jar.resolve().as_uri())
    for name, value in _SETTINGS.items():
        tables.get_config().set(name, value)
    kafka = f"'properties.bootstrap.servers' = '{bootstrap}'"
    for name, columns in _SOURCES.items():
        tables.execute_sql(
            f"create table {name} ({columns}) with ('connector' = 'kafka', {kafka}, "
            f"'topic' = '{name}{suffix}', 'format' = 'json', "
            "'scan.startup.mode' = 'earliest-offset', "
            "'properties.isolation.level' = 'read_committed')"
        )
    together = tables.create_statement_set()
    for name, (columns, query) in _RESULTS.items():
        tables.execute_sql(
            f"create table out_{name} ({columns}) with ('connector' = 'upsert-kafka', {kafka}, "
            f"'topic' = '{topic_of(name, suffix)}', 'key.format' = 'json', "
            "'value.format' = 'json', 'properties.linger.ms' = '0')"
        )
        together.add_insert_sql(f"insert into out_{name} {query}")
    together.execute()


def topic_of(view: str, suffix: str) -> str:
    """Where the changes of a result go."""
    return f"out-{view}{suffix}"


class Folded:
    """A result whose rows replace each other by key."""

    def __init__(self, view: str, answers: Answers) -> None:
        self._view, self._answers = view, answers
        self._rows: dict[bytes, tuple[Any, ...]] = {}

    def take(self, key: bytes, value: bytes | None) -> None:
        """One record."""
        old = self._rows.pop(key, None)
        if old is not None:
            self._put(old, -1)
        if value is not None:
            _, *rest = row = tuple(json.loads(value).values())
            self._rows[key] = tuple(rest) if self._view == "top" else row
            self._put(self._rows[key], 1)

    def _put(self, row: tuple[Any, ...], diff: int) -> None:
        answers = self._answers
        put = {"sellers": answers.seller, "categories": answers.category, "top": answers.bid}
        put[self._view](*row, diff)


def follow(bootstrap: str, suffix: str, view: str, answers: Answers) -> None:
    """Fold the records of a result's topic."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": view, "log_level": 0, "fetch.wait.max.ms": 5,
        "enable.auto.commit": False,
    })  # fmt: skip
    consumer.assign([TopicPartition(topic_of(view, suffix), 0, 0)])
    folded, changed, published = Folded(view, answers), False, now()
    while True:
        records = consumer.consume(5_000, _QUIET_S)
        for record in records:
            if record.error() is None:
                folded.take(record.key(), record.value())
                changed = True
        if changed and (not records or now() - published > _PATIENCE_S):
            answers.publish(view)
            changed, published = False, now()


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("suffix")
    parser.add_argument("answers", type=Path)
    parser.add_argument("--jar", type=Path, required=True)
    chosen = parser.parse_args(argv)
    os.environ["JVM_ARGS"] = HEAP
    answers = Answers(chosen.answers)
    submit(chosen.bootstrap, chosen.suffix, chosen.jar)
    for view in _RESULTS:
        given = (chosen.bootstrap, chosen.suffix, view, answers)
        threading.Thread(target=follow, args=given, daemon=True).start()
    print("running", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(sys.argv[1:])
