"""F7: the same change over ten times the state.

The 22 views of TPC-H at a scale and at ten times that scale; at every round both get a change of
the same number of rows, and every view ticks on both, one after the other. The walks run in this
process, as a task would run them, without a Spark job around them: the job costs the same on both
sides, and would only make the ratio smaller. Views that read all of an input at every change are
named.

TPC-H has many groups of few rows; beside it are views over few groups that grow with the state.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.measure import timed
from bench.tpch import QUERIES, options
from noonmark.compute.plan.definition import Definition
from noonmark.compute.plan.maintenance import changes_cost_all
from support.view.tpch import SCHEMAS
from support.view.tpch_changes import KEYS, Tables, updates
from support.view.walk import Walker

FACTOR, ROWS_MAX, RATIO_MAX = 10, 300, 1.3
GROUPS = {
    "sums": "SELECT l_returnflag, sum(l_extendedprice::float8) AS total, "
    "avg(l_tax::float8) AS mean, stddev(l_quantity) AS spread FROM lineitem GROUP BY l_returnflag",
    "ends": "SELECT l_linestatus, min(l_shipdate) AS low, max(l_extendedprice) AS high "
    "FROM lineitem GROUP BY l_linestatus",
    "both": "SELECT l_returnflag, count(*) AS n, max(l_shipdate) AS latest FROM lineitem "
    "GROUP BY l_returnflag",
    "latest": "SELECT DISTINCT ON (l_shipmode) l_shipmode, l_shipdate, l_orderkey FROM lineitem "
    "ORDER BY l_shipmode, l_shipdate DESC, l_orderkey",
    "all": "SELECT count(*) AS n, max(l_extendedprice) AS high FROM lineitem",
}
VIEWS = QUERIES | GROUPS


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, scale=0.02, rounds=5)
    names = [*chosen.queries.split(","), *GROUPS]
    with tempfile.TemporaryDirectory() as folder:
        small = World(Path(folder) / "small", chosen.seed, chosen.scale, names)
        large = World(Path(folder) / "large", chosen.seed, chosen.scale * FACTOR, names)
        ratios: dict[str, list[float]] = {name: [] for name in names}
        for number in range(chosen.rounds + 2):
            small.change()
            large.change()
            for name in names:
                pair = [timed(lambda w=w, n=name: w.walker.tick(n)) for w in (small, large)]  # type: ignore[misc]
                if number > 1:  # the first two are the warm-up
                    ratios[name].append(pair[1] / pair[0])
        small.walker.stop()
        large.walker.stop()
    return figure({name: statistics.median(each) for name, each in ratios.items()}, chosen)


class World:
    """The tables at a scale, and the views over them."""

    def __init__(self, path: Path, seed: int, scale: float, names: Sequence[str]) -> None:
        path.mkdir()
        self.tables = Tables.generated(seed, scale)
        self.walker = Walker(path, SCHEMAS, KEYS)
        self.now = 1
        self._append({name: updates(table, 1, 1) for name, table in self.tables.now.items()})
        for name in names:
            self.walker.create(Definition.of_sql(name, VIEWS[name], SCHEMAS))

    def change(self) -> None:
        """The same number of rows, whatever the scale."""
        self._append(self.tables.change(self.now, 1.0, ROWS_MAX, few=False))

    def _append(self, tables: dict[str, Any]) -> None:
        client, txn = self.walker.client, self.walker.client.atomic()
        for name, table in tables.items():
            txn.append(client.create_or_load(name)[0], table, self.now, self.now + 1)
        txn.commit().result()
        self.now += 1


def figure(ratios: dict[str, float], chosen: Any) -> dict[str, Any]:
    whole = {n for n in ratios if changes_cost_all(Definition.of_sql(n, VIEWS[n], SCHEMAS), KEYS)}
    for name in sorted(ratios, key=ratios.__getitem__):
        print(f"{name:7}{ratios[name]:5.2f}{'  reads all of an input' if name in whole else ''}")
    value = statistics.median(ratios[name] for name in ratios if name not in GROUPS)
    rest = statistics.median(ratios[name] for name in ratios if name not in whole)
    groups = statistics.median(ratios[name] for name in GROUPS)
    print(f"of those that do not read all of an input: median {rest:.2f}")
    print(f"of few groups that grow: median {groups:.2f}")
    print(f"{value:.2f}")
    return {
        "title": f"the same change over {FACTOR}x the state (scale {chosen.scale:g})",
        "value": value,
        "unit": "x",
        "goal": f"<= {RATIO_MAX}x, median of the queries; and of few groups that grow",
        "met": max(value, groups) <= RATIO_MAX,
        "measures": ratios,
        "note": f"median of {chosen.rounds} rounds; {len(whole)} queries read all of an input; "
        f"few groups that grow: {groups:.2f}x",
    }


if __name__ == "__main__":
    main(sys.argv[1:])
