"""Subscriptions: a snapshot, then updates, with in-line statements of progress.

The steps of a subscription at frontier {t} are: the contents at t as updates at t, once t is
complete; then the updates after t, as they become known. Each step carries the subscription's
upper: times before it are delivered in full. So the updates of all steps so far, summed up to any
time before that upper, are the exact contents at that time.

Filter and projection are applied where the data is read, before it is handed over. Either side
may cancel. The subscription holds a read capability of its own and downgrades it behind what was
delivered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from noonmark.persist.client import ReadHandle
from noonmark.persist.codec import RowCodec
from noonmark.persist.run import DIFF, TIME
from noonmark.persist.snapshot import Listen, Step
from noonmark.rows.schema import Schema
from noonmark.storage.capability import ReadCapability
from noonmark.tvc import Antichain

if TYPE_CHECKING:
    from noonmark.storage.storage import Storage


class Subscription:
    """Iterate to receive steps; `cancel` from any thread to end it."""

    def __init__(
        self,
        storage: Storage,
        capability: ReadCapability,
        *,
        snapshot: bool,
        filter: Any,
        projection: tuple[str, ...] | None,
    ) -> None:
        self._storage = storage
        self._capability = capability
        self._snapshot = snapshot
        self._filter = filter
        collection = storage.client.state.collection(capability.id)
        schema = collection.schema
        self._names = list(schema.names if projection is None else projection)
        self._codec = RowCodec(Schema(tuple(schema[name] for name in self._names)))
        self._read = ReadHandle(storage.client, collection.id, RowCodec(schema))
        self._listen: Listen | None = None
        self._cancelled = False

    def __iter__(self) -> Iterator[Step]:
        at = self._capability.frontier.only()
        try:
            if at is None or self._cancelled:
                return
            # Without a hold of its own: the capability already keeps since where it must be.
            self._listen = self._read.listen(at, hold=False)
            if self._snapshot:
                yield self._first(at)
            for step in self._listen:
                yield self._narrow(step.table, step.progress)
                self._release_behind(step)
        finally:
            self._storage.drop(self._capability)

    def cancel(self) -> None:
        """End the subscription; a waiting step is given up."""
        self._cancelled = True
        if self._listen is not None:
            self._listen.cancel()

    def _first(self, at: int) -> Step:
        contents = self._read.snapshot(at).result().to_arrow()
        times = pa.array([at], pa.int64()).take(pa.array([0] * contents.num_rows, pa.int64()))
        place = contents.column_names.index(DIFF)
        return self._narrow(contents.add_column(place, TIME, times), Antichain.of(at + 1))

    def _narrow(self, table: pa.Table, progress: Antichain[int]) -> Step:
        if self._filter is not None:
            table = table.filter(self._filter)
        return Step(table.select([*self._names, TIME, DIFF]), progress, self._codec)

    def _release_behind(self, step: Step) -> None:
        """What was delivered need not be held: keep the time before progress, for what follows."""
        upper = step.progress.only()
        if upper is None:
            return
        frontier = Antichain.of(upper - 1)
        if frontier.at_or_beyond(self._capability.frontier):
            self._capability = self._storage.downgrade(self._capability, frontier)
