"""C5: the queries of Nexmark as views, equal to DuckDB at every time.

Events come, late ones too; bids are withdrawn, auctions prolonged. A tick covers 1 to 3 times.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.view.judged import proved
from support.view.nexmark_views import NexmarkViews

EVENTS, MORE = 8_000, 200


def main(argv: Sequence[str]) -> dict[str, Any]:
    return proved(
        "Nexmark as views at every time",
        argv,
        12,
        lambda client, spark, seed: NexmarkViews(client, spark, seed, EVENTS),
        lambda world: world.change(MORE),
    )


if __name__ == "__main__":
    figure = main(sys.argv[1:])
    print(figure["note"])
    sys.exit(0 if figure["met"] else 1)
