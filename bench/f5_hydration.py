"""F5: creating a materialized view, against plain Spark that writes the same query to Parquet.

The queries of TPC-H, each made a view of its own over stored tables and hydrated at one time; the
peer reads the same rows from Parquet, asks the same query and writes its answer as Parquet. The
figure is the median of the ratios; ours also sorts, checksums, fsyncs and commits.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import sqlglot

from bench.measure import timed
from bench.tpch import QUERIES, Again, both, options


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, scale=0.1, rounds=1)
    names = chosen.queries.split(",")
    times: dict[str, tuple[float, float]] = {}
    with both(chosen) as (world, again, folder):
        world.create(names)
        for name in names:
            theirs = min(timed(partial(written, again, name, folder)) for _ in range(2))
            times[name] = timed(world.flow.views[name].tick), theirs
            print(f"{name}: {times[name][0]:.2f} s, Spark {theirs:.2f} s", flush=True)
    ratios = {name: mine / theirs for name, (mine, theirs) in times.items()}
    value = statistics.median(ratios.values())
    slowest = max(ratios, key=ratios.__getitem__)
    print(f"slowest: {slowest} at {ratios[slowest]:.2f}x")
    print(f"{value:.2f}")
    return {
        "title": f"creating a materialized view, TPC-H scale {chosen.scale:g}",
        "value": value,
        "unit": "x",
        "goal": "<= 1.2x of plain Spark writing the query to Parquet",
        "met": value <= 1.2,
        "measures": ratios,
        "note": f"median of {len(names)} queries, each hydrated once; slowest {slowest}",
    }


def written(again: Again, name: str, folder: Path) -> None:
    """The peer's work: ask, and write the answer."""
    text = sqlglot.transpile(QUERIES[name], read="postgres", write="spark")[0]
    found = again.spark.sql(text)
    columns = [f"c{at}" for at in range(len(found.columns))]
    found.toDF(*columns).write.mode("overwrite").parquet(f"{folder}/answer-{name}")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
