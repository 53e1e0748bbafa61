"""F5: creating a materialized view, against plain Spark that writes the same query to Parquet.

The queries of TPC-H, each made a view of its own over stored tables and hydrated at one time; the
peer reads the same rows from Parquet, asks the same query and writes its answer as Parquet. Both
are warmed up with the same query; a view is dropped before the next round. The figure is the median
of the ratios; ours also keeps what later ticks need, checks what it reads, sorts, fsyncs and
commits.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import sqlglot

from bench.measure import timed
from bench.tpch import QUERIES, Again, StoredViews, both, options


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, scale=1.0, rounds=3)
    names = chosen.queries.split(",")
    ratios: dict[str, float] = {}
    kept: dict[str, int] = {}
    with both(chosen) as (world, again, folder):
        for name in names:
            mine, theirs = [], []
            for _ in range(1 + chosen.rounds):  # the first is the warm-up
                theirs.append(timed(partial(written, again, name, folder)))
                world.create([name])
                mine.append(timed(world.flow.views[name].tick))
                kept[name] = rows_kept(world, name)
                world.flow.remove(name).drop()
            own, peer = statistics.median(mine[1:]), statistics.median(theirs[1:])
            ratios[name] = own / peer
            print(f"{name}: {own:.2f} s, Spark {peer:.2f} s: {own / peer:.2f}x", flush=True)
    value = statistics.median(ratios.values())
    slowest = sorted(ratios, key=ratios.__getitem__)[-3:][::-1]
    why = ", ".join(f"{n} {ratios[n]:.1f}x (keeps {kept[n]:,} rows for ticks)" for n in slowest)
    print(f"slowest: {why}")
    print(f"{value:.2f}")
    return {
        "title": f"creating a materialized view, TPC-H scale {chosen.scale:g}",
        "value": value,
        "unit": "x",
        "goal": "<= 1.2x of plain Spark writing the query to Parquet",
        "met": value <= 1.2,
        "measures": ratios,
        "note": f"median of {len(names)} queries, each the median of {chosen.rounds} rounds; "
        f"slowest {why}",
    }


def rows_kept(world: StoredViews, name: str) -> int:
    """How many rows the arrangements of a view have, which plain Spark never writes."""
    keepers = world.flow.views[name].keepers.values()
    stored = [world.client.state.collection(keeper.name).batches for keeper in keepers]
    return sum(batch.rows for batches in stored for batch in batches)


def written(again: Again, name: str, folder: Path) -> None:
    """The peer's work: ask, and write the answer."""
    text = sqlglot.transpile(QUERIES[name], read="postgres", write="spark")[0]
    found = again.spark.sql(text)
    columns = [f"c{at}" for at in range(len(found.columns))]
    found.toDF(*columns).write.mode("overwrite").parquet(f"{folder}/answer-{name}")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
