"""F6: the 22 queries of TPC-H maintained under change, against plain Spark and DuckDB anew.

At every tick 0.1 % of the rows are inserted, deleted and updated, at most 6,000 rows. Each query is
a view of its own; a round ticks every view once and asks each peer once, so that all of them meet
the same machine. ``--scale 10 --peers duckdb`` is the figure against DuckDB: plain Spark would take
most of an hour.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any

from bench.measure import timed
from bench.tpch import Again, StoredViews, both, hydrate, parser, why

#: What is to be reached against each peer: in words, the median, and whether by all queries.
GOALS = {
    "spark": ("all faster than Spark, median >= 15x at scale 1", 15, True),
    "duckdb": ("median >= 5x faster than DuckDB at scale 10", 5, False),
}
#: Seconds of each round, by query.
Times = dict[str, list[float]]


def main(argv: Sequence[str]) -> dict[str, Any]:
    arguments = parser(scale=1.0, rounds=3)
    arguments.add_argument("--peers", default="spark,duckdb", help="asked anew at every round")
    chosen = arguments.parse_args(list(argv))
    names = chosen.queries.split(",")
    with both(chosen) as (world, again, _):
        hydrate(world, names, chosen.scale)
        times = measured(world, again, names, chosen.rounds, chosen.peers.split(","))
    return figure(times, chosen.scale, chosen.rounds)


def measured(
    world: StoredViews, again: Again, names: list[str], rounds: int, peers: Sequence[str]
) -> dict[str, Times]:
    anew = {"spark": again.on_spark, "duckdb": again.on_duckdb}
    times: dict[str, Times] = {who: {n: [] for n in names} for who in ("view", *peers)}
    for number in range(rounds + 1):
        changed = world.change_some()
        for name in names:
            spent = {"view": timed(world.flow.views[name].tick)}
            spent |= {peer: timed(partial(anew[peer], name)) for peer in peers}
            if number:  # the first is the warm-up
                for who, seconds in spent.items():
                    times[who][name].append(seconds)
        print(f"round {number}: {changed} updates", flush=True)
    return times


def figure(times: dict[str, Times], scale: float, rounds: int) -> dict[str, Any]:
    middle = {who: {n: statistics.median(x) for n, x in own.items()} for who, own in times.items()}
    view = middle.pop("view")
    ratios = {who: {n: own[n] / view[n] for n in view} for who, own in middle.items()}
    peer = "spark" if "spark" in ratios else "duckdb"
    print("query   tick ms" + "".join(f"{who + ' ms':>12}      x" for who in ratios))
    for name in sorted(view, key=ratios[peer].__getitem__):
        rest = (f"{middle[who][name] * 1e3:12.0f} {ratios[who][name]:6.1f}" for who in ratios)
        print(f"{name}   {view[name] * 1e3:8.0f}{''.join(rest)}")
    faster = {who: sum(ratio > 1 for ratio in own.values()) for who, own in ratios.items()}
    medians = {who: statistics.median(own.values()) for who, own in ratios.items()}
    for who, value in medians.items():
        print(f"{who}: {faster[who]}/{len(view)} faster than it, median {value:.1f}x")
    slowest = sorted(view, key=ratios[peer].__getitem__)[:3]
    reasons = ", ".join(f"{name} {ratios[peer][name]:.1f}x ({why(name)})" for name in slowest)
    print(f"slowest: {reasons}")
    print(f"{medians[peer]:.1f}")
    goal, least, all_faster = GOALS[peer]
    each = (f"{who}: {faster[who]}/{len(view)} faster, {medians[who]:.1f}x" for who in ratios)
    return {
        "title": f"TPC-H maintained, scale {scale:g}: {peer} anew against a tick",
        "value": medians[peer],
        "unit": "x",
        "goal": goal,
        "met": medians[peer] >= least and (not all_faster or faster[peer] == len(view)),
        "measures": ratios[peer],
        "note": f"median of {rounds} rounds; {'; '.join(each)}; slowest {reasons}",
    }


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
