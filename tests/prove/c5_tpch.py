"""C5: the 22 queries of TPC-H as views at scale 0.1, equal to DuckDB at every time.

All eight tables change at every time: rows come, go and are replaced. A tick covers 1 to 3 times.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.view.judged import proved
from support.view.tpch_changes import Tables
from support.view.tpch_views import TpchViews

SCALE_FACTOR, FRACTION = 0.1, 0.002


def main(argv: Sequence[str]) -> dict[str, Any]:
    return proved(
        "TPC-H as views at every time",
        argv,
        6,
        lambda client, spark, seed: TpchViews(client, spark, Tables.generated(seed, SCALE_FACTOR)),
        lambda world: world.change(FRACTION),
    )


if __name__ == "__main__":
    figure = main(sys.argv[1:])
    print(figure["note"])
    sys.exit(0 if figure["met"] else 1)
