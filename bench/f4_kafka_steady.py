"""F4 under steady load: a Kafka topic that grows by a fixed number of records a second.

JSON records in four partitions, envelope NONE, from a producer in a process of its own. What a
record costs everybody is shown. In the end every record must have come once: ids are
numbered, so their count and sum tell.

The figure is the rate that was written while ingestion kept up (``bench/steady.py``).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.f4_ingestion import SCHEMA, Bench, json_documents
from bench.f4_kafka import PARTITIONS, TOPIC, fill
from bench.steady import Load, children, cpu_seconds, figure, follow, options, paced
from noonmark.clock import SYSTEM
from noonmark.compute.jvm.session import spark_session, stop_session
from noonmark.ingest.ingestion import Ingestion, raw
from noonmark.source.format.json import Json
from noonmark.source.impl.kafka import create

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.neighbour.kafka import KafkaServer
from support.neighbour.upstreams import one_kafka

PIECE = 1000


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, rate=30_000, seconds=120)
    rows = chosen.rate * chosen.seconds
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        others = children()
        server = stack.enter_context(one_kafka())
        (broker,) = children() - others
        server.make_topic(TOPIC, PARTITIONS)
        bench = Bench(folder, spark_session("local[2]"))
        stack.callback(stop_session)
        fill(server, "warm", PIECE, chosen.seed)
        ingest(bench, server, "warm", stack).tick()
        ingestion = ingest(bench, server, TOPIC, stack)
        command = [sys.executable, "-m", "bench.f4_kafka_steady", "produce", server.bootstrap]
        command += map(str, (rows, chosen.rate, chosen.seed))
        before = _spent(broker, 0)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as producer:
            outcome = follow(ingestion, lambda: producer.poll() is not None)
            assert producer.stdout is not None
            seconds, their_cpu = map(float, producer.stdout.read().split())
        after = _spent(broker, their_cpu)
        check(ingestion, rows)
    load = Load("record", rows, seconds, {name: after[name] - before[name] for name in after})
    title = "a Kafka topic under a steady producer"
    return figure(title, load, outcome, chosen.rate, "every record came once")


def ingest(bench: Bench, server: KafkaServer, topic: str, stack: ExitStack) -> Ingestion:
    """The ingestion of a topic."""
    source = asyncio.run(create(server.options, topic, "bench"))
    stack.callback(source.close)
    feeds = (raw(source, 0, "t", Json(SCHEMA)),)
    return stack.enter_context(bench.ingestion(source, feeds, SYSTEM))


def _spent(broker: int, producer: float) -> dict[str, float]:
    whole, its = cpu_seconds(os.getpid()), cpu_seconds(broker)
    return {"producer": producer, "broker": its, "noonmark": whole - its - producer}


def check(ingestion: Ingestion, rows: int) -> None:
    """Every record came once."""
    read = ingestion.outputs[0].read
    now = read.upper.only()
    assert now is not None
    found = read.snapshot(now - 1).result().to_arrow()
    diffs, ids = (found.column(name).to_numpy() for name in ("_diff", "id"))
    assert int(diffs.sum()) == rows
    assert int((diffs * ids).sum()) == rows * (rows - 1) // 2


def produce(bootstrap: str, rows: int, rate: int, seed: int) -> None:
    """The producer's own process: says how long it took, and its CPU time."""
    producer = KafkaServer(bootstrap).producer(linger_ms=20)
    began = SYSTEM.monotonic()
    pieces = json_documents(rows, seed, -(-rows // PIECE))
    for documents in paced(pieces, rate / PIECE):
        for at, document in enumerate(documents):
            producer.produce(TOPIC, document, partition=at % PARTITIONS)
        producer.poll(0)
    assert producer.flush(60) == 0
    spent = os.times()
    print(SYSTEM.monotonic() - began, spent.user + spent.system)


if __name__ == "__main__":
    if sys.argv[1:2] == ["produce"]:
        produce(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        main(sys.argv[1:])
