"""Maintained views as text: a query, how it is maintained, its rows before and after a change.

The collections and their history are below. What a view says is compared with the meaning of its
query over the inputs at the same time before it is shown: a case that is rewritten cannot be wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from noonmark.compute.plan.definition import Definition
from noonmark.compute.view.explain import explain_view
from noonmark.rows.schema import Schema
from noonmark.sql.parse import plan_query
from noonmark.tvc import Update
from support.view.views import answer
from support.view.walk import Walker

FOLDER = Path(__file__).resolve().parents[2] / "cases" / "maintain"

SCHEMAS = {
    "orders": Schema.of(id="bigint not null", customer="bigint not null", price="bigint not null"),
    "customers": Schema.of(id="bigint not null", name="text not null", region="bigint not null"),
    "regions": Schema.of(id="bigint not null", name="text not null"),
}
KEYS = {"orders": ("id",), "customers": ("id",), "regions": ("id",)}

Row = tuple[Any, ...]
#: (row, time, diff): at 1 what there is, at 2 what changes.
HISTORY: dict[str, list[tuple[Row, int, int]]] = {
    "orders": [
        ((1, 10, 5), 1, 1), ((2, 10, 20), 1, 1), ((3, 11, 7), 1, 1), ((4, 12, 9), 1, 1),
        ((2, 10, 20), 2, -1), ((2, 10, 6), 2, 1), ((5, 11, 30), 2, 1), ((4, 12, 9), 2, -1),
    ],
    "customers": [
        ((10, "ann", 1), 1, 1), ((11, "bob", 2), 1, 1), ((12, "cid", 2), 1, 1),
        ((11, "bob", 2), 2, -1), ((11, "bob", 1), 2, 1),
    ],
    "regions": [((1, "north"), 1, 1), ((2, "south"), 1, 1)],
}  # fmt: skip


def maintained(path: Path, sql: str) -> str:
    """How a view is maintained, and what it says at both times."""
    walker = Walker(path, SCHEMAS, KEYS)
    try:
        updates = {name: [Update(*each) for each in rows] for name, rows in HISTORY.items()}
        judged = plan_query(sql, SCHEMAS).ordered  # as it is written, without any rule
        walker.write(updates, 2)
        walker.create(Definition.of_sql("v", sql, SCHEMAS))
        walker.write(updates, 3)
        walker.tick("v")
        plan = explain_view(walker.views["v"])
        parts = [re.sub(r"arrangement \S+ by", "arrangement by", plan)]
        for time in (1, 2):
            said = walker.at("v", time)
            assert said == answer(judged, updates, time)
            rows = [" ".join(map(str, row)) for row in sorted(Counter(said).elements(), key=str)]
            parts.append("\n".join([f"at {time}", *(f"  {row}" for row in rows)]))
        return "\n".join(parts)
    finally:
        walker.client.stop()
