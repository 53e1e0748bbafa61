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

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pyarrow as pa

from noonmark.errors import SchemaMismatch
from noonmark.persist.client import Client
from noonmark.persist.codec import RowCodec
from noonmark.persist.log.state import Collection
from noonmark.persist.part.run import DIFF, TIME
from noonmark.persist.read.handle import ReadHandle
from noonmark.persist.read.snapshot import Listen, Snapshot, Step
from noonmark.persist.runtime import Runtime
from noonmark.rows.schema import Schema
from noonmark.tvc import Antichain


class AsyncSubscription:
    """Steps by `next`, on the loop; `close` ends it."""

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
        self._filter = filter
        schema = collection.schema
        self._names = list(schema.names if projection is None else projection)
        _check_columns(collection, self._names)
        self._codec = RowCodec(Schema(tuple(schema[name] for name in self._names)))
        self._read = ReadHandle(client, collection.id, RowCodec(schema))
        self._at = at
        self._is_owed_snapshot = snapshot
        self._listen: Listen | None = None
        #: What was heard and not handed over: an error may come between.
        self._heard: Step | None = None
        self._first_read: Future[Snapshot] | None = None
        self._cancelled = False

    @classmethod
    async def open(
        cls,
        client: Client,
        collection: Collection,
        at: int | None,
        *,
        snapshot: bool,
        filter: Any,
        projection: tuple[str, ...] | None,
    ) -> AsyncSubscription:
        """A subscription with its hold."""
        opened = cls(
            client, collection, at, snapshot=snapshot, filter=filter, projection=projection
        )
        if at is not None:
            opened._listen = await opened._read.open_listen(at, hold=True)
        return opened

    async def next(self) -> Step | None:
        """The next step, once there is one; None at the end.

        After an error it may be called again: nothing is lost and nothing is given twice.
        """
        if self._at is None or self._listen is None or self._cancelled:
            return None
        if self._is_owed_snapshot:
            contents = await self._contents(self._at)
            if contents is None:
                return None
            step = await self._narrow(contents, Antichain.of(self._at + 1))
            self._is_owed_snapshot = False
            return step
        if self._heard is None:
            self._heard = await self._listen.next()
        if self._heard is None:
            return None
        step = await self._narrow(self._heard.table, self._heard.progress)
        self._heard = None
        return step

    async def close(self) -> None:
        """End the subscription and release its hold; a step that is waited for is given up."""
        self._cancelled = True
        if self._first_read is not None:
            self._first_read.cancel()
        if self._listen is not None:
            await self._listen.close()

    async def _contents(self, at: int) -> pa.Table | None:
        """The contents at `at` as updates at `at`, once they are complete; None if cancelled."""
        self._first_read = self._read.snapshot(at)
        try:
            snapshot = await asyncio.wrap_future(self._first_read)
        except asyncio.CancelledError:
            if self._cancelled:
                return None
            raise
        tables = [table async for table in snapshot]
        contents = pa.concat_tables([snapshot.schema.empty_table(), *tables])
        times = pa.repeat(pa.scalar(at, pa.int64()), contents.num_rows)
        return contents.add_column(contents.column_names.index(DIFF), TIME, times)

    async def _narrow(self, table: pa.Table, progress: Antichain[int]) -> Step:
        def narrowed() -> pa.Table:
            chosen = table if self._filter is None else table.filter(self._filter)
            return chosen.select([*self._names, TIME, DIFF])

        return Step(await self._client.runtime.offload(narrowed), progress, self._codec)


class Subscription:
    """Iterate, once, to receive steps; `cancel` from any thread to end it."""

    def __init__(self, runtime: Runtime, steps: AsyncSubscription) -> None:
        self._runtime = runtime
        self._steps = steps

    def __iter__(self) -> Iterator[Step]:
        try:
            while (step := self._runtime.submit(self._steps.next()).result()) is not None:
                yield step
        finally:
            self._runtime.submit(self._steps.close()).result()

    def cancel(self) -> None:
        """End the subscription; a step that is waited for is given up."""
        self._runtime.submit(self._steps.close())


def _check_columns(collection: Collection, names: list[str]) -> None:
    for name in names:
        if name not in collection.schema.names:
            raise SchemaMismatch(
                f'"{collection.name}" has no column "{name}"',
                detail=f"Its columns are {', '.join(collection.schema.names)}.",
                hint="Project to some of those.",
                column=name,
            )
