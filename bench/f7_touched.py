"""F7, by generator: rows touched per changed row, over a hundred times the state.

Generated views over joins with composite, skewed and functional keys (`support.view.growth`), over
a state and over one a hundred times as large, which both get the same number of changes. What is
counted is how many stored rows a tick looks at. Of every view of which EXPLAIN says that a change
reads neither a group nor a relation, the ratio of the two must stay: the worst is the figure. The
others are named.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.view.growth import growth, is_incremental, views

FACTOR, RATIO_MAX = 100, 1.3


def main(argv: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--size", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(argv)
    over = views(chosen.seed, chosen.count)
    with tempfile.TemporaryDirectory() as folder:
        found = growth(
            Path(folder), chosen.seed, over, size=chosen.size, factor=FACTOR, rounds=chosen.rounds
        )
    ratios = {name: large / small for name, (small, large) in found.items()}
    bounded = {name for name, view in over.items() if is_incremental(view)}
    for name in sorted(ratios, key=ratios.__getitem__):
        told = "" if name in bounded else "  reads groups"
        print(f"{ratios[name]:7.2f}{told}  {over[name].sql}")
    worst = max(ratios[name] for name in bounded)
    return {
        "title": f"rows touched per changed row, over {FACTOR}x the state, generated views",
        "value": worst,
        "unit": "x",
        "goal": f"<= {RATIO_MAX}x for every view that EXPLAIN calls incremental",
        "met": worst <= RATIO_MAX,
        "measures": {name: ratios[name] for name in sorted(bounded)},
        "note": f"{len(bounded)} of {len(over)} views; the others read the rows of a key",
    }


if __name__ == "__main__":
    main(sys.argv[1:])
