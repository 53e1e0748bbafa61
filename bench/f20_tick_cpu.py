"""F20: the processor time of a tick, by the number of rows that changed; no Spark, no network.

The three views of F11 over bids and auctions, each tick done in this process as a resident task
does it (`support.view.walk`): what the kernels cost, and what is fixed. Processor time, so that a
busy machine changes little. The figure is the rate of the three views together, largest ticks.

    python -m bench.f20_tick_cpu --bids 300000 --sizes 20,1000,20000
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.nexmark.engine_noonmark import VIEWS
from bench.nexmark.events import AUCTIONS, Events
from noonmark.compute.plan.definition import Definition
from noonmark.rows.schema import Schema

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.view.walk import Walker

SCHEMAS = {
    "auctions": Schema.of(id="bigint", item="text", seller="bigint", category="bigint"),
    "bids": Schema.of(id="bigint", auction="bigint", price="bigint"),
}
ROUNDS, GOAL = 9, 100_000


def main(argv: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bids", type=int, default=300_000)
    parser.add_argument("--sizes", default="20,1000,20000")
    chosen = parser.parse_args(list(argv))
    sizes = [int(size) for size in chosen.sizes.split(",")]
    events = Events(chosen.seed)
    columns = events.columns(chosen.bids + ROUNDS * sum(sizes))
    measures = {}
    with tempfile.TemporaryDirectory() as folder:
        walker = Walker(Path(folder), SCHEMAS, {})
        _append(walker, "auctions", _auctions(events), 1)
        _append(walker, "bids", _bids(columns, 0, chosen.bids, 1), 1)
        for view, text in VIEWS.items():
            walker.create(Definition.of_sql(view, text, SCHEMAS))
        at, now = chosen.bids, 2
        for size in sizes:
            spent: dict[str, list[float]] = {view: [] for view in VIEWS}
            for _ in range(ROUNDS):
                _append(walker, "bids", _bids(columns, at, size, now), now)
                _append(walker, "auctions", None, now)
                at, now = at + size, now + 1
                for view in VIEWS:
                    began = time.process_time()
                    walker.tick(view)
                    spent[view].append(time.process_time() - began)
            for view, each in spent.items():
                measures[f"{view}, {size:,} rows, ms"] = 1e3 * statistics.median(each[1:])
        walker.stop()
    for name, value in measures.items():
        print(f"{name}: {value:.1f}")
    largest = sum(measures[f"{view}, {sizes[-1]:,} rows, ms"] for view in VIEWS)
    rate = 1e3 * sizes[-1] / largest
    print(f"{rate:,.0f}")
    return {
        "title": f"rows a second of one core, three views, ticks of {sizes[-1]:,} rows",
        "value": rate,
        "unit": "rows/s",
        "goal": f">= {GOAL:,}",
        "met": rate >= GOAL,
        "measures": measures,
        "note": f"medians of {ROUNDS - 1} ticks over {chosen.bids:,} bids; processor time",
    }


def _auctions(events: Events) -> pa.Table:
    numbers, items = np.arange(AUCTIONS), ["an item"] * AUCTIONS
    columns = {"id": numbers, "item": items, "seller": events.sellers}
    return _updates({**columns, "category": events.categories}, 1)


def _bids(columns: tuple[Any, Any], first: int, count: int, time: int) -> pa.Table:
    auctions, prices = (column[first : first + count] for column in columns)
    numbers = np.arange(first, first + count)
    return _updates({"id": numbers, "auction": auctions, "price": prices}, time)


def _updates(columns: dict[str, Any], time: int) -> pa.Table:
    table = pa.table(columns)
    ones = np.ones(table.num_rows, np.int64)
    return table.append_column("_time", pa.array(time * ones)).append_column(
        "_diff", pa.array(ones)
    )


def _append(walker: Walker, name: str, updates: pa.Table | None, time: int) -> None:
    write, read = walker.client.create_or_load(name)
    txn = walker.client.atomic()
    txn.append(write, updates, read.upper, time + 1)
    txn.commit().result()


if __name__ == "__main__":
    main(sys.argv[1:])
