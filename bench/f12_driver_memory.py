"""F12: the memory of the driver's Python beside the JVM, while it hydrates and ticks TPC-H.

Rows in bulk never pass through the driver. So what it needs does not depend on the size of the
tables: a process of its own loads them and writes the changes down; this one opens the location,
hydrates the views on Spark and ticks them, and says the most memory that it ever had. The JVM and
the Python workers of its tasks are other processes, and are not counted.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.tpch import QUERIES, StoredViews, options
from noonmark import persist
from noonmark.compute.jvm.session import spark_session, stop_session
from noonmark.compute.plan.definition import Definition
from noonmark.compute.view.dataflow import Dataflow
from noonmark.compute.view.view import View
from noonmark.persist.client import Client, Options
from support.view.tpch import SCHEMAS
from support.view.tpch_changes import kept

MIB_MAX = 1536


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, scale=1.0, rounds=2)
    names = chosen.queries.split(",")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        feeder = [sys.executable, "-m", "bench.f12_driver_memory", *argv]
        rest = ["--scale", str(chosen.scale), "--rounds", str(chosen.rounds)]
        subprocess.run([*feeder, *rest, "--feed", scratch], check=True)
        with persist.open(folder / "data", options=Options(notify_host=None)) as client:
            measures = measured(client, folder, names, chosen.rounds)
    value = max(measures.values())
    print(f"{value:.0f}")
    return {
        "title": f"memory of the driver's Python, TPC-H scale {chosen.scale:g}",
        "value": value,
        "unit": "MiB",
        "goal": f"< {MIB_MAX} MiB beside the JVM",
        "met": value < MIB_MAX,
        "measures": measures,
        "note": f"peak; {len(names)} views hydrated, then {chosen.rounds} rounds of ticks",
    }


def measured(client: Client, folder: Path, names: Sequence[str], rounds: int) -> dict[str, float]:
    """The most memory that this process had, by the end of each step."""
    spark = spark_session("local[2]", options={"spark.driver.memory": "3g"})
    spark.range(1).count()
    peaks = {"begin": peak_mib()}
    flow = Dataflow()
    for name in names:
        flow.add(
            View(client, lambda: spark, Definition.of_sql(name, QUERIES[name], SCHEMAS)).start()
        )
        flow.views[name].tick()
        print(f"{name} hydrated: {peak_mib():.0f} MiB", flush=True)
    peaks["hydrate"] = peak_mib()
    for number in range(rounds):
        append(client, folder, number)
        flow.tick()
        assert flow.failures == {}
        print(f"round {number}: {peak_mib():.0f} MiB", flush=True)
    peaks["tick"] = peak_mib()
    stop_session()
    return peaks


def append(client: Client, folder: Path, number: int) -> None:
    """The changes that were written down for a round."""
    lower, txn = number + 2, client.atomic()
    for name in SCHEMAS:
        table = pq.read_table(folder / f"{number}-{name}.parquet")
        txn.append(client.create_or_load(name)[0], table, lower, lower + 1)
    txn.commit().result()


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def feed(argv: Sequence[str]) -> None:
    """In a process of its own: the tables at time 1, and the changes of every round as files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--feed", type=Path, required=True)
    known, rest = parser.parse_known_args(list(argv))
    chosen = options(rest, scale=1.0, rounds=2)
    files = kept(chosen.data or known.feed, chosen.seed, chosen.scale)
    spark = spark_session("local[2]", options={"spark.driver.memory": "3g"})
    with persist.open(known.feed / "data", options=Options(notify_host=None)) as client:
        world = StoredViews(client, lambda: spark, chosen.seed, files)
    stop_session()
    for number in range(chosen.rounds):
        for name, table in world.some_changes(number + 2).items():
            pq.write_table(table, known.feed / f"{number}-{name}.parquet")


if __name__ == "__main__":
    feed(sys.argv[1:]) if "--feed" in sys.argv else main(sys.argv[1:])
