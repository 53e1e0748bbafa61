"""F6: the 22 queries of TPC-H maintained under change, against plain Spark and DuckDB anew.

At every tick 0.1 % of the rows are inserted, deleted and updated, at most about 6,000 rows. Each
query is a view of its own; a round ticks every view once and asks each peer once, so that all of
them meet the same machine. ``--scale 10`` is for a larger one.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any

from bench.measure import timed
from bench.tpch import FRACTION, ROWS_MAX, Again, TpchViews, both, hydrate, options

Times = dict[str, list[float]]


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, scale=1.0, rounds=3)
    names = chosen.queries.split(",")
    with both(chosen) as (world, again, _):
        hydrate(world, names, chosen.scale)
        times = measured(world, again, names, chosen.rounds)
    return figure(times, chosen.scale, chosen.rounds)


def measured(world: TpchViews, again: Again, names: list[str], rounds: int) -> dict[str, Times]:
    times: dict[str, Times] = {who: {n: [] for n in names} for who in ("view", "spark", "duckdb")}
    for number in range(rounds + 1):
        changed = world.change(FRACTION, ROWS_MAX, few=False)
        for name in names:
            view = world.flow.views[name]
            spent = {
                "view": timed(view.tick),
                "spark": timed(partial(again.on_spark, name)),
                "duckdb": timed(partial(again.on_duckdb, name)),
            }
            if number:  # the first is the warm-up
                for who, seconds in spent.items():
                    times[who][name].append(seconds)
        print(f"round {number}: {changed} updates", flush=True)
    return times


def figure(times: dict[str, Times], scale: float, rounds: int) -> dict[str, Any]:
    middle = {who: {n: statistics.median(x) for n, x in own.items()} for who, own in times.items()}
    ratios = {n: middle["spark"][n] / middle["view"][n] for n in middle["view"]}
    duck = {n: middle["duckdb"][n] / middle["view"][n] for n in middle["view"]}
    print("query  tick ms  Spark ms     x  DuckDB ms     x")
    for name in sorted(ratios, key=ratios.__getitem__):
        own, peer, other = (middle[who][name] * 1e3 for who in ("view", "spark", "duckdb"))
        print(f"{name}  {own:8.0f} {peer:9.0f} {ratios[name]:5.1f} {other:10.0f} {duck[name]:5.1f}")
    faster = sum(ratio > 1 for ratio in ratios.values())
    value = statistics.median(ratios.values())
    against = statistics.median(duck.values())
    print(f"{faster}/{len(ratios)} faster than Spark; DuckDB: median {against:.1f}x")
    print(f"{value:.1f}")
    return {
        "title": f"TPC-H maintained, scale {scale:g}: plain Spark anew against a tick",
        "value": value,
        "unit": "x",
        "goal": "all faster than Spark, median >= 15x at scale 1",
        "met": faster == len(ratios) and value >= 15,
        "measures": ratios,
        "note": f"median of {rounds} rounds; {faster}/{len(ratios)} faster; DuckDB {against:.1f}x",
    }


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
