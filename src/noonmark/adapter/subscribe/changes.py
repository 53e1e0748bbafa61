"""What happened to a collection, read and decoded once for all who follow it.

Time is cut into segments: a segment begins where the one before ends, and ends at the upper that
was known when somebody first asked for it. Everybody who follows a collection walks the same
segments at their own pace, so that those who keep up share each read. Only the last segments are
kept: who falls behind reads again.

Law: the segments after `t`, one after the other, have every update at times after t exactly once.
Where it runs: the adapter's loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

import pyarrow as pa

from noonmark.adapter.peek.rows import Change, changes
from noonmark.persist.client import Client
from noonmark.persist.codec import TIME_MAX
from noonmark.persist.plan import Query
from noonmark.persist.state import Collection, State
from noonmark.rows.schema import Schema

#: Segments that are kept, over all collections, and the most rows one of them may have to be kept.
SEGMENTS_MAX = 256
SEGMENT_ROWS_MAX = 10_000


@dataclass(frozen=True)
class Segment:
    """The updates of one collection at times after `after`, before `upper` (None: for ever)."""

    after: int
    upper: int | None
    changes: tuple[Change, ...]
    schema: Schema


class Changes:
    """See the module."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._kept: OrderedDict[tuple[int, int], Segment] = OrderedDict()
        self._turns: dict[int, asyncio.Lock] = {}
        self.reads = 0

    async def following(self, collection: int, after: int) -> Segment:
        """The segment after `after`, once there is one."""
        key = (collection, after)
        if key in self._kept:
            return self._kept[key]
        await self.moved((collection,), after + 1)
        async with self._turns.setdefault(collection, asyncio.Lock()):
            if key in self._kept:
                return self._kept[key]
            found = self._client.state.collection(collection)
            segment = await self.between(found, after, found.upper.only())
            self._keep(key, segment)
            return segment

    async def between(self, collection: Collection, after: int, upper: int | None) -> Segment:
        """The updates at times after `after` and before `upper`, which is complete.

        Those of times without an answer are among them: `Stream` ends before the first such time.
        """
        last = TIME_MAX if upper is None else upper - 1
        self.reads += 1
        tables = await self._read(collection.id, Query(as_of=last, after=after, despite_error=True))
        found = await asyncio.to_thread(_decoded, tables, collection)
        return Segment(after, upper, found, collection.schema)

    async def moved(self, collections: tuple[int, ...], seen: int) -> None:
        """Wait until one of the collections is complete beyond `seen`."""

        def ready(state: State) -> bool:
            return any(not state.collection(each).upper.less_equal(seen) for each in collections)

        if not ready(self._client.state):
            waiting = self._client.journal.wait_for(ready)
            await asyncio.wrap_future(self._client.runtime.submit(waiting))

    def _keep(self, key: tuple[int, int], segment: Segment) -> None:
        if len(segment.changes) <= SEGMENT_ROWS_MAX:
            self._kept[key] = segment
        while len(self._kept) > SEGMENTS_MAX:
            self._kept.popitem(last=False)

    async def _read(self, collection: int, query: Query) -> list[pa.Table]:
        reader = self._client.reader

        async def read() -> list[pa.Table]:
            plan = reader.plan(collection, query)
            return [table async for table in reader.contents(plan)]

        return await asyncio.wrap_future(self._client.runtime.submit(read()))


def _decoded(tables: list[pa.Table], collection: Collection) -> tuple[Change, ...]:
    found = [change for table in tables for change in changes(table, collection.schema)]
    return tuple(sorted(found, key=lambda change: change[1]))
