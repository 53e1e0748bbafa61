"""F14: large ticks of views over TPC-H, against plain Spark that asks the query anew.

Views over stored tables; at each step so much of the tables changes, and every view ticks once, by
the strategy that it chooses itself. The peer asks the same query of Parquet files. Of each change
the evaluation by tasks is also timed in one task and in two, without a commit. The figure is the
worst ratio of a tick to the peer; beside it, how cost grows from 1 to 5 % of the tables, and what
the second task brings.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any

from bench.measure import timed
from bench.tpch import Again, both, hydrate, parser
from noonmark.compute.runner.large import run_large
from noonmark.compute.view.view import View
from support.view.tpch_changes import Tables

FRACTIONS = (0.001, 0.01, 0.05, 0.2)
QUERIES = "q01,q03,q05,q06,q10,q12,q14,q18"
#: A change of a fifth deletes and replaces at most so many rows of a table at scale 1.
SAMPLE_ROWS = 900_000
GROWTH_MAX, SECOND_MIN = 6.0, 1.6


def main(argv: Sequence[str]) -> dict[str, Any]:
    options = parser(1.0, 1)
    options.set_defaults(queries=QUERIES)
    options.add_argument("--task-bytes", type=int, help="changes beyond it are cut over tasks")
    chosen = options.parse_args(list(argv))
    names = chosen.queries.split(",")
    with both(chosen) as (world, again, _):
        sample = max(1, int(SAMPLE_ROWS * chosen.scale))
        world.tables = Tables.sampled(chosen.seed, world.files, sample)
        hydrate(world, names, chosen.scale)
        for view in world.flow.views.values() if chosen.task_bytes is not None else ():
            view.task_bytes_max = chosen.task_bytes
        peer = {name: asked(again, name) for name in names}
        ticks: dict[float, dict[str, float]] = {}
        second: list[float] = []
        for fraction in (FRACTIONS[0], *FRACTIONS):  # the first is the warm-up
            rows = world.change(fraction, 1 << 60, few=False)
            ticks[fraction] = {}
            for name in names:
                took, gain, strategy = ticked(world.flow.views[name])
                ticks[fraction][name] = took
                second += gain if fraction in (0.01, 0.05) else []
                text = f"{name} {fraction:.1%} ({rows:,} updates): {took:.2f} s by {strategy}"
                print(f"{text}, Spark anew {peer[name]:.2f} s", flush=True)
    return figure(chosen.scale, ticks, peer, second)


def figure(
    scale: float, ticks: dict[float, dict[str, float]], peer: dict[str, float], second: list[float]
) -> dict[str, Any]:
    worst = {f: max(took / peer[name] for name, took in each.items()) for f, each in ticks.items()}
    growth = statistics.median(ticks[0.05][name] / ticks[0.01][name] for name in peer)
    gain = statistics.median(second) if second else 0.0
    value = max(worst.values())
    print(f"{value:.2f}")
    return {
        "title": f"large ticks, TPC-H scale {scale:g}",
        "value": value,
        "unit": "x",
        "goal": "<= 1x of plain Spark asking anew; 5x the change <= 6x the cost; 2 tasks >= 1.6x",
        "met": value <= 1 and growth <= GROWTH_MAX and gain >= SECOND_MIN,
        "measures": {f"{fraction:.1%}": ratio for fraction, ratio in worst.items()}
        | {"1 % to 5 %": growth, "second task": gain},
        "note": f"worst of {len(peer)} queries at each size; growth and gain are medians",
    }


def asked(again: Again, name: str) -> float:
    """What the query costs anew, warm."""
    again.on_spark(name)
    return statistics.median(timed(partial(again.on_spark, name)) for _ in range(3))


def ticked(view: View) -> tuple[float, list[float], str]:
    """How long a tick takes, what two tasks gain over one, and how it was done."""
    begun = view.begin()
    assert begun is not None, "something changed"
    both = [view.large_tick(begun, cores) for cores in (1, 2)] if begun.strategy == "tasks" else []
    began = view.client.clock.monotonic()
    record = view.tick()
    took = view.client.clock.monotonic() - began
    assert record is not None, "it had begun"
    if not both or both[0].tasks > 1:
        return took, [], record.strategy
    one, two = (timed(partial(run_large, view.spark, each)) for each in both)  # not committed
    return took, [one / two], record.strategy


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
