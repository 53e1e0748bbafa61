"""C5: the queries of Nexmark as views, equal to DuckDB at every time.

Events come, late ones too; bids are withdrawn, auctions prolonged. A tick covers 1 to 3 times.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from noonmark import persist
from noonmark.compute.session import spark_session, stop_session
from noonmark.persist.client import Options
from support.nexmark_views import NexmarkViews
from support.proving import answer, bar, options
from support.views_judged import judged

EVENTS, MORE = 8_000, 200


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 12, "ticks")
    ticks = [1 + at % 3 for at in range(chosen.count)]
    spark = spark_session("local[2]", options={"spark.driver.memory": "3g"})
    with (
        tempfile.TemporaryDirectory() as folder,
        persist.open(folder, options=Options(notify_host=None)) as client,
        bar("rounds", len(ticks) + 1) as advance,
    ):
        world = NexmarkViews(client, lambda: spark, chosen.seed, EVENTS)
        done = judged(world, lambda: world.change(MORE), ticks, advance)
        strategies = Counter(record.strategy for record in world.flow.records)
    stop_session()
    taken = ", ".join(f"{name} {count}" for name, count in sorted(strategies.items()))
    note = f"{done.compared} answers compared, {done.filled} with rows; ticks of views: {taken}"
    goal = f"0 in {len(world.queries)} queries x {sum(ticks)} times"
    return answer(
        "Nexmark as views at every time", goal, done.wrong, {"answers": done.compared}, note
    )


if __name__ == "__main__":
    figure = main(sys.argv[1:])
    print(figure["note"])
    sys.exit(0 if figure["met"] else 1)
