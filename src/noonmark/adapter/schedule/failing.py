"""What a view cannot compute now: the errors that every read of it gives.

`<view>_errors` has them as data. It is read when a tick changed it and when the view is taken up,
so statuses and figures know it without reading anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from noonmark.compute.plan.naming import errors_name
from noonmark.persist.client import Client
from noonmark.persist.part.run import DIFF
from noonmark.persist.read.handle import plan_at
from noonmark.persist.read.plan import Query


@dataclass(frozen=True)
class Failing:
    """A view without an answer: how many errors it has, and the first of them by its text."""

    errors: int
    sqlstate: str
    message: str


def failing_now(client: Client, view: str) -> Failing | None:
    """Why a view has no answer at its newest time; None when it has one. Blocks."""
    name = errors_name(view)
    if name not in client.state.names:
        return None
    collection = client.state.collection(name)
    upper, since = collection.upper.only(), collection.since.only()
    if upper is None or since is None or upper <= since or not collection.batches:
        return None
    plan = plan_at(client, name, Query(upper - 1, despite_error=True))
    count, first = 0, None
    for table in client.iterate(client.reader.contents(plan)):
        if table.num_rows:
            count += pc.sum(table.column(DIFF)).as_py()
            least = table.sort_by([("sqlstate", "ascending"), ("message", "ascending")])
            found = least.column("sqlstate")[0].as_py(), least.column("message")[0].as_py()
            first = found if first is None else min(first, found)
    return None if first is None else Failing(count, *first)
