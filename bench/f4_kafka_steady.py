"""F4 under steady load: a Kafka topic that grows by a fixed number of records a second.

JSON records in four partitions, envelope NONE, from a producer in a process of its own. What a
record costs everybody is shown. In the end every record must have come once: ids are
numbered, so their count and sum tell.

The figure is the rate that was written while ingestion kept up (``bench/steady.py``).
"""

from __future__ import annotations

import argparse
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
from bench.steady import children, cpu_seconds, follow, paced
from noonmark.clock import SYSTEM
from noonmark.compute.session import spark_session, stop_session
from noonmark.ingest import Ingestion, raw
from noonmark.source.format.json import Json
from noonmark.source.impl.kafka import create

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.kafka import KafkaServer, _jars, start_kafka
from support.servers import _folder

PIECE, CORES = 1000, 2


def main(argv: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=int, default=30_000)
    parser.add_argument("--seconds", type=int, default=120)
    chosen = parser.parse_args(list(argv))
    rows = chosen.rate * chosen.seconds
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        others = children()
        server = stack.enter_context(start_kafka(stack.enter_context(_folder("kafka")), _jars()))
        (broker,) = children() - others
        server.make_topic(TOPIC, PARTITIONS)
        bench = Bench(folder, spark_session("local[2]"))
        stack.callback(stop_session)
        fill(server, "warm", PIECE, chosen.seed)
        ingest(bench, server, "warm", stack).tick()
        ingestion = ingest(bench, server, TOPIC, stack)
        command = [sys.executable, "-m", "bench.f4_kafka_steady", "produce", server.bootstrap]
        command += map(str, (rows, chosen.rate, chosen.seed))
        spent = _spent(broker, 0)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as producer:
            outcome = follow(ingestion, lambda: producer.poll() is not None)
            assert producer.stdout is not None
            seconds, their_cpu = map(float, producer.stdout.read().split())
        after = _spent(broker, their_cpu)
        cpu_us = {name: 1e6 * (after[name] - spent[name]) / rows for name in after}
        check(ingestion, rows)
    written = rows / seconds
    shown = ", ".join(f"{name} {each:.1f}" for name, each in cpu_us.items())
    limit = 1e6 * CORES / sum(cpu_us.values())
    print(f"CPU us a record: {shown}; {CORES} cores have room for {limit:,.0f} a second")
    print(f"age p50 {outcome.age_p50_s:.1f} s, max {outcome.age_max_s:.1f} s")
    value = written if outcome.keeps_up else rows / outcome.seconds
    print(f"{value:,.0f}")
    return {
        "title": "a Kafka topic under a steady producer, records/s that are kept up with",
        "value": value,
        "unit": "records/s",
        "goal": f">= {chosen.rate:,} without falling behind",
        "met": outcome.keeps_up and written >= 0.99 * chosen.rate,
        "measures": {
            "age p50 s": outcome.age_p50_s,
            "age max s": outcome.age_max_s,
            **{f"{name}, CPU us a record": each for name, each in cpu_us.items()},
        },
        "note": f"{rows:,} JSON records in {seconds:.0f} s, {len(outcome.ages_s)} ticks; "
        f"CPU us a record: {shown}; every record came once",
    }


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
