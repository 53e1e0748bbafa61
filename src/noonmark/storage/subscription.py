"""Subscriptions: a snapshot, then updates, with in-line statements of progress.

The steps of a subscription at frontier {t} are: the contents at t as updates at t, once t is
complete; then the updates after t, as they become known. Each step carries the subscription's
upper: times before it are delivered in full. So the updates of all steps so far, summed up to any
time before that upper, are the exact contents at that time.

Filter and projection are applied where the data is read, before it is handed over. Either side
may cancel. The subscription has a hold of its own, from when it was made until it ends: renewed
while its process lives, and moved up behind what was delivered.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from typing import Any

import pyarrow as pa

from noonmark.errors import SchemaMismatch
from noonmark.persist.client import Client
from noonmark.persist.codec import RowCodec
from noonmark.persist.read_handle import ReadHandle
from noonmark.persist.run import DIFF, TIME
from noonmark.persist.snapshot import Listen, Snapshot, Step
from noonmark.persist.state import Collection
from noonmark.rows.schema import Schema
from noonmark.tvc import Antichain


class Subscription:
    """Iterate, once, to receive steps; `cancel` from any thread to end it."""

    def __init__(
        self,
        client: Client,
        collection: Collection,
        at: int | None,
        *,
        snapshot: bool,
        filter: Any,
        projection: tuple[str, ...] | None,
    ) -> None:
        """Begin at the frontier {`at`}, or, for None, at the empty one: nothing will come."""
        self._client = client
        self._snapshot = snapshot
        self._filter = filter
        schema = collection.schema
        self._names = list(schema.names if projection is None else projection)
        _check_columns(collection, self._names)
        self._codec = RowCodec(Schema(tuple(schema[name] for name in self._names)))
        self._read = ReadHandle(client, collection.id, RowCodec(schema))
        self._at = at
        self._listen: Listen | None = None if at is None else self._read.listen(at, hold=True)
        self._mutex = threading.Lock()
        self._first_read: Future[Snapshot] | None = None
        self._cancelled = False

    def __iter__(self) -> Iterator[Step]:
        if self._at is None or self._listen is None:
            return
        try:
            if self._snapshot:
                contents = self._contents(self._at)
                if contents is None:
                    return
                yield self._narrow(contents, Antichain.of(self._at + 1))
            for step in self._listen:
                yield self._narrow(step.table, step.progress)
        finally:
            self.cancel()

    def cancel(self) -> None:
        """End the subscription; a step that is waited for is given up."""
        with self._mutex:
            self._cancelled = True
            if self._first_read is not None:
                self._first_read.cancel()
        if self._listen is not None:
            self._client.runtime.submit(self._listen.close())

    def _contents(self, at: int) -> pa.Table | None:
        """The contents at `at` as updates at `at`, once they are complete; None if cancelled."""
        with self._mutex:
            if self._cancelled:
                return None
            self._first_read = self._read.snapshot(at)
        try:
            contents = self._first_read.result().to_arrow()
        except CancelledError:
            return None
        times = pa.repeat(pa.scalar(at, pa.int64()), contents.num_rows)
        return contents.add_column(contents.column_names.index(DIFF), TIME, times)

    def _narrow(self, table: pa.Table, progress: Antichain[int]) -> Step:
        if self._filter is not None:
            table = table.filter(self._filter)
        return Step(table.select([*self._names, TIME, DIFF]), progress, self._codec)


def _check_columns(collection: Collection, names: list[str]) -> None:
    for name in names:
        if name not in collection.schema.names:
            raise SchemaMismatch(
                f'"{collection.name}" has no column "{name}"',
                detail=f"Its columns are {', '.join(collection.schema.names)}.",
                hint="Project to some of those.",
                column=name,
            )
