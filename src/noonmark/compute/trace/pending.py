"""What waits for its turn: the arrangements of temporal filters, by the time at which they act.

A row of such an arrangement is a row of the filter's input and its `turn`; the arrangement is
sorted by it (`noonmark.compute.incremental.temporal` has the law). Law: what is due in a tick over
``[lower, upper)`` is what waited just before `lower` with a turn in that range: turns before it
are gone.

A look for what is due costs no Spark job, and opens only the pages that hold those turns; of small
batches, which travel with the state, the turns stay known.

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noonmark.persist.client import Client
from noonmark.persist.log.state import Batch, Collection
from noonmark.persist.read.handle import plan_at
from noonmark.persist.read.plan import Plan, Query
from noonmark.persist.read.updates import inline_table
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import BigInt
from noonmark.sql.ir.relation import Relation

TURN = "turn"
#: So many milliseconds are looked up one by one: the pages that hold them are all that is opened.
_PROBES_MAX = 4_096


def turns_schema(relation: Relation) -> Schema:
    """The columns of what waits: those of the rows, and their turn."""
    columns = [Column(f"c{at}", each.type) for at, each in enumerate(relation.schema)]
    return Schema((*columns, Column(TURN, BigInt(), False)))


@dataclass(frozen=True)
class Due:
    """What is due in a tick, by arrangement."""

    plans: Mapping[str, Plan] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """How large it is; what is looked up turn by turn is taken to be small."""
        return sum(plan.bytes for plan in self.plans.values() if plan.query.keys is None)

    def read(self, client: Client) -> dict[str, pa.Table]:
        """The rows, their turns, and how many there are of each."""
        made = {}
        for name, plan in self.plans.items():
            tables = [t for t in client.iterate(client.reader.contents(plan)) if t.num_rows]
            if tables:
                made[name] = pa.concat_tables(tables)
        return made


class PendingUpdates:
    """The arrangements of one view's temporal filters."""

    def __init__(self, client: Client, names: Sequence[str]) -> None:
        self._client = client
        self._names = tuple(names)
        self._known: dict[tuple[str, int], npt.NDArray[np.int64]] = {}

    def due(self, lower: int, upper: int) -> Due:
        """What is due over ``[lower, upper)``."""
        self._forget()
        plans = {}
        for name in self._names:
            plan = plan_at(self._client, name, due_query(lower, upper))
            near = tuple(b for b in plan.inline if self._between(plan.collection, b, lower, upper))
            if plan.runs or near:
                plans[name] = replace(plan, inline=near)
        return Due(plans)

    def next(self) -> int | None:
        """A time before which nothing is due; None when nothing waits."""
        return min(self._next(), default=None)

    def _next(self) -> Iterator[int]:
        for name in self._names:
            collection = self._client.state.collection(name)
            upper = collection.upper.only()
            if upper is None:
                continue
            for batch in collection.batches:
                if batch.inline is not None:
                    turns = self._turns(collection, batch)
                    yield from turns[np.searchsorted(turns, upper) :][:1].tolist()
                for part in batch.parts:
                    low, high, _ = part.columns[len(collection.schema) - 1]
                    if high is None or high >= upper:
                        yield upper if low is None else max(low, upper)

    def _between(self, collection: Collection, batch: Batch, lower: int, upper: int) -> bool:
        turns = self._turns(collection, batch)
        first, last = np.searchsorted(turns, [lower, upper])
        return bool(first < last)

    def _turns(self, collection: Collection, batch: Batch) -> npt.NDArray[np.int64]:
        """The turns of a small batch, in order."""
        key = (collection.name, batch.id)
        if key not in self._known:
            turns = inline_table(collection, batch).column(TURN).to_numpy()
            self._known[key] = np.sort(turns)
        return self._known[key]

    def _forget(self) -> None:
        """Only of batches that are still there."""
        state = self._client.state
        there = {(n, batch.id) for n in self._names for batch in state.collection(n).batches}
        self._known = {key: turns for key, turns in self._known.items() if key in there}


def due_query(lower: int, upper: int) -> Query:
    """What is due over ``[lower, upper)``, of one arrangement."""
    if upper - lower <= _PROBES_MAX:
        return Query(lower - 1, keys=range(lower, upper))
    return Query(lower - 1, where={TURN: (lower, upper - 1)})
