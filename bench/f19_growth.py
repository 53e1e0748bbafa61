"""F19: no operator grows faster than its input: n rows against 10n.

Every operator, aggregate, window function and kind of frame, asked once, and a tick of one row of
maintained views whose groups are ten times as large. What is n log n takes about 13 times as long;
what is quadratic takes a hundred times.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from support.view.growing import MAINTAINED, maintained, queries, ratio

RATIO_MAX = 15.0


def main(argv: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)  # the same for every seed
    parser.add_argument("--rows", type=int, default=1_000)
    chosen = parser.parse_args(argv)
    ratios = {name: ratio(sql, chosen.rows) for name, sql in queries().items()}
    for name, sql in MAINTAINED.items():
        ratios[f"maintain {name}"] = maintained(sql, chosen.rows)
    for name in sorted(ratios, key=ratios.__getitem__):
        print(f"{ratios[name]:7.2f}  {name}")
    worst = max(ratios, key=ratios.__getitem__)
    return {
        "title": f"the same query over {chosen.rows:,} rows and over ten times as many",
        "value": ratios[worst],
        "unit": "x",
        "goal": f"<= {RATIO_MAX:g}x for every operator and class of functions",
        "met": ratios[worst] <= RATIO_MAX,
        "measures": {n: ratios[n] for n in sorted(ratios, key=ratios.__getitem__)[-20:]},
        "note": f"{len(ratios)} queries; the worst is {worst}",
    }


if __name__ == "__main__":
    main(sys.argv[1:])
