"""Pathway as an engine of F11: tables, joins and reducers, results by `subscribe`.

Settings: two threads, a commit every 10 ms (`autocommit_duration_ms`), no persistence (nothing of
it is durable). The top 10 is a stateful reducer that keeps ten rows: bids only come. An answer is
published at the end of every time in which it changed.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.nexmark.answers import Answers

_COMMIT_MS = 10


def views(bootstrap: str, suffix: str) -> dict[str, Any]:
    """The three results."""
    import pathway as pw

    class Auction(pw.Schema):
        number: int
        seller: int
        category: int

    class Bid(pw.Schema):
        number: int
        auction: int
        price: int

    def read(topic: str, schema: type[pw.Schema]) -> Any:
        settings = {
            "bootstrap.servers": bootstrap, "group.id": f"pathway{suffix}",
            "auto.offset.reset": "earliest", "isolation.level": "read_committed",
            "fetch.wait.max.ms": "5",
        }  # fmt: skip
        return pw.io.kafka.read(
            settings, topic + suffix, schema=schema, format="json",
            json_field_paths={"number": "/id"}, autocommit_duration_ms=_COMMIT_MS,
        )  # fmt: skip

    @pw.reducers.stateful_many
    def best(state: tuple[Any, ...] | None, rows: list[tuple[list[int], int]]) -> tuple[Any, ...]:
        come = [(-price, number) for (price, number), _ in rows]
        return tuple(sorted([*(state or ()), *come])[:10])

    auctions, bids = read("auctions", Auction), read("bids", Bid)
    joined = bids.join(auctions, bids.auction == auctions.number).select(
        auction=auctions.number,
        seller=auctions.seller,
        category=auctions.category,
        price=bids.price,
    )
    sellers = joined.groupby(joined.seller).reduce(
        joined.seller, bids=pw.reducers.count(), total=pw.reducers.sum(joined.price)
    )
    each = joined.groupby(joined.category, joined.auction).reduce(
        joined.category, final=pw.reducers.max(joined.price), bids=pw.reducers.count()
    )
    categories = each.groupby(each.category).reduce(
        each.category, average=pw.reducers.avg(each.final), bids=pw.reducers.sum(each.bids)
    )
    top = bids.reduce(best=best(bids.price, bids.number))
    return {"sellers": sellers, "categories": categories, "top": top}


def subscribe(view: str, table: Any, answers: Answers) -> None:
    """Fold the changes of a result."""
    import pathway as pw

    changed = threading.Event()
    put: Callable[[dict[str, Any], int], None] = {
        "sellers": lambda row, diff: answers.seller(row["seller"], row["bids"], row["total"], diff),
        "categories": lambda row, diff: answers.category(
            row["category"], row["average"], row["bids"], diff
        ),
        "top": lambda row, diff: _top(answers, row["best"], diff),
    }[view]

    def on_change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:  # noqa: ARG001 - Pathway's
        changed.set()
        put(row, 1 if is_addition else -1)

    def on_time_end(time: int) -> None:  # noqa: ARG001 - Pathway's
        if changed.is_set():
            changed.clear()
            answers.publish(view)

    pw.io.subscribe(table, on_change=on_change, on_time_end=on_time_end)


def _top(answers: Answers, best: Any, diff: int) -> None:
    for price, number in best:
        answers.bid(number, -price, diff)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("suffix")
    parser.add_argument("answers", type=Path)
    chosen = parser.parse_args(argv)
    os.environ["PATHWAY_THREADS"] = "2"
    import pathway as pw

    answers = Answers(chosen.answers)
    for view, table in views(chosen.bootstrap, chosen.suffix).items():
        subscribe(view, table, answers)
    quiet = pw.MonitoringLevel.NONE
    running = threading.Thread(target=lambda: pw.run(monitoring_level=quiet), daemon=True)
    running.start()
    print("running", flush=True)
    sys.stdin.readline()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
