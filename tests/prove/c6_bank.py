"""C6: internal consistency: bank transfers under kill -9; every published answer is of one time.

The views and what must hold of them are in `support.view.bank`. By default 3,000 transfers and 10
kills. Plain Structured Streaming gets the same kind of transfers, as far as it can express the
views (`support.view.bank_streaming`), and the table at the end says who was wrong how often.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console
from rich.table import Table

from noonmark.compute.jvm.session import spark_session, stop_session
from support.house.proving import answer, options
from support.view.bank import VIEWS, Bank
from support.view.bank_streaming import HOW, Streaming

KILLS = 10
#: Of the transfers, so many are enough for the peer: its answers come once a micro-batch.
PEER_TRANSFERS_MAX = 600


def main(argv: Sequence[str], kills: int = KILLS, *, peer: bool = True) -> dict[str, Any]:
    chosen = options(argv, 3000, "transfers")
    with tempfile.TemporaryDirectory() as folder:
        bank = Bank(Path(folder), chosen.seed, chosen.count, kills)
        bank.run()
    if peer:
        compare(bank, streamed(chosen.seed, min(chosen.count, PEER_TRANSFERS_MAX)))
    note = ", ".join(f"{count} {kind}" for kind, count in sorted(bank.counts.items()))
    faults = {"kill -9": bank.counts["kill -9"]}
    goal = f"0 wrong of all outputs of {chosen.count} transfers"
    return answer("internal consistency", goal, bank.violations, faults, note)


def streamed(seed: int, transfers: int) -> Streaming:
    """What plain Structured Streaming publishes."""
    spark = spark_session("local[2]", options={"spark.sql.shuffle.partitions": "2"})
    with tempfile.TemporaryDirectory() as folder:
        streaming = Streaming(Path(folder), seed, transfers)
        streaming.run(spark)
    stop_session()
    return streaming


def compare(bank: Bank, peer: Streaming) -> None:
    """Who was wrong how often."""
    table = Table(
        "view", "Noonmark: wrong / outputs", "Structured Streaming: wrong / outputs", "how"
    )
    for name in VIEWS:
        ours, theirs = (f"{each.wrong[name]} / {each.outputs[name]}" for each in (bank, peer))
        table.add_row(name, ours, theirs, HOW[name])
    console = Console(width=140)
    console.print(table)
    for name, text in peer.example.items():
        console.print(f"of no prefix of the transfers: {name} = {text}")


if __name__ == "__main__":
    figure = main(sys.argv[1:])
    print(figure["note"])
    sys.exit(0 if figure["met"] else 1)
