"""What happened to a collection, read and decoded once for all who follow it.

Time is cut into segments: a segment begins where somebody asked, and ends at the upper that was
known then. Whoever follows a collection is given a few whole times of a segment after the other,
and holds nothing else while its client does not read. The segments themselves are kept here, for
all who follow: those who keep up share each read, and who falls behind so far that its segment is
gone reads again. What happened meanwhile stays stored.

Law: what `following` gives after t, one after the other, has every update at times after t exactly
once.
Law (memory): the segments that are kept use at most `subscribe_memory` together, as objects of
Python. One has at most `subscribe_rows_max` updates, and its share of that; those of one time are
one piece however many they are, up to what one statement may write (`statement_write_rows_max`,
`copy_memory`).

Where it runs: the adapter's loop.
"""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from noonmark.adapter.peek.rows import Change, changes
from noonmark.adapter.worker.errors import ProgramLimitExceeded
from noonmark.adapter.worker.limits import Limits
from noonmark.persist.client import Client
from noonmark.persist.codec import TIME_MAX
from noonmark.persist.log.state import Collection, State
from noonmark.persist.read.plan import Query
from noonmark.rows.schema import Schema

#: Segments that are kept, over all collections, and how many large ones there is room for.
SEGMENTS_MAX = 256
SEGMENTS_LARGE = 8
#: What is given of a segment at once, unless one time has more.
SLICE_ROWS = 1_000
SLICE_BYTES = 1 << 20
#: What a change uses beside its data, and each of its values.
_CHANGE_BYTES, _VALUE_BYTES = 128, 64


@dataclass(frozen=True)
class Room:
    """What a segment may have at most."""

    rows: int
    size_bytes: int


@dataclass(frozen=True)
class ChangeRange:
    """The updates of one collection at times after `after`, before `upper` (None: for ever)."""

    after: int
    upper: int | None
    changes: tuple[Change, ...]
    schema: Schema
    size_bytes: int = 0

    def slice(self, after: int) -> ChangeRange:
        """The first whole times after a time: a few updates, if one time has no more."""
        start = bisect_right(self.changes, after, key=_time)
        each = max(1, self.size_bytes // max(1, len(self.changes)))
        stop = start + max(1, min(SLICE_ROWS, SLICE_BYTES // each))
        upper = self.upper
        if stop < len(self.changes):
            last = _time(self.changes[stop - 1])
            stop = bisect_right(self.changes, last, lo=stop, key=_time)
            upper = last + 1 if stop < len(self.changes) else upper
        found = self.changes[start:stop]
        return ChangeRange(after, upper, found, self.schema, each * len(found))

    def before(self, upper: int | None) -> ChangeRange:
        """As far as a time, which is not beyond its own."""
        if upper == self.upper:
            return self
        kept = tuple(change for change in self.changes if upper is None or change[1] < upper)
        return ChangeRange(self.after, upper, kept, self.schema, self.size_bytes)


class Changes:
    """See the module."""

    def __init__(self, client: Client, limits: Callable[[], Limits]) -> None:
        self._client = client
        self._limits = limits
        self._kept: OrderedDict[tuple[int, int], ChangeRange] = OrderedDict()
        #: How far the segments of a collection that were ever kept reach.
        self._reach: dict[int, float] = {}
        self._turns: dict[int, asyncio.Lock] = {}
        self.reads = self.kept_bytes = 0

    async def following(self, collection: int, after: int) -> ChangeRange:
        """What happened after `after`, once there is something: some whole times of it."""
        if (known := self._known(collection, after)) is not None:
            return known
        await self.moved((collection,), after + 1)
        async with self._turns.setdefault(collection, asyncio.Lock()):
            if (known := self._known(collection, after)) is not None:
                return known
            found = self._client.state.collection(collection)
            segment = await self.piece(found, after, found.upper.only())
            self._keep((collection, after), segment)
            return segment.slice(after)

    def _known(self, collection: int, after: int) -> ChangeRange | None:
        """What a segment that is kept has after `after`."""
        key: tuple[int, int] | None = (collection, after)
        if key not in self._kept:
            if after + 1 >= self._reach.get(collection, 0):
                return None  # who keeps up asks for what nobody has read
            covering = (
                (number, begin)
                for (number, begin), each in self._kept.items()
                if number == collection
                and begin < after
                and (each.upper is None or after + 1 < each.upper)
            )
            key = next(covering, None)
        if key is None:
            return None
        self._kept.move_to_end(key)
        return self._kept[key].slice(after)

    async def piece(self, collection: Collection, after: int, upper: int | None) -> ChangeRange:
        """The updates at times after `after`, and before `upper` or as far as there is room.

        Raises:
            ProgramLimitExceeded: those of one time are too many.
        """
        limits, first = self._limits(), after + 1
        upper = _reached(collection, after, upper, limits.subscribe_rows)
        while True:
            alone = upper is not None and upper <= first + 1
            room = _room(limits, alone)
            segment = await self._between(collection, after, upper, room)
            if segment is not None:
                return segment
            if alone:
                raise ProgramLimitExceeded(
                    f"more than {room.rows} rows, or {room.size_bytes >> 20}MB, changed at {first}",
                    detail="That is statement_write_rows_max, or copy_memory. "
                    "All changes before were given.",
                    hint=f"To go on behind: SUBSCRIBE ... AS OF {first} WITH (SNAPSHOT = false).",
                )
            if upper is None:
                upper = 1 + max(batch.time_max for batch in collection.batches)
            upper = first + max(1, (upper - first) // 2)

    async def between(self, collection: Collection, after: int, upper: int | None) -> ChangeRange:
        """The updates at times after `after` and before `upper`, which is complete.

        Those of times without an answer are among them: `Stream` ends before the first such time.
        """
        segment = await self._between(collection, after, upper, None)
        assert segment is not None
        return segment

    async def _between(
        self, collection: Collection, after: int, upper: int | None, room: Room | None
    ) -> ChangeRange | None:
        last = TIME_MAX if upper is None else upper - 1
        self.reads += 1
        query = Query(as_of=last, after=after, despite_error=True)
        tables = await self._read(collection.id, query, room)
        if tables is None:
            return None
        found = await asyncio.to_thread(_decoded, tables, collection)
        size_bytes = sum(map(_size, tables))
        return ChangeRange(after, upper, found, collection.schema, size_bytes)

    async def moved(self, collections: tuple[int, ...], seen: int) -> None:
        """Wait until one of the collections is complete beyond `seen`."""

        def ready(state: State) -> bool:
            return any(not state.collection(each).upper.less_equal(seen) for each in collections)

        if not ready(self._client.state):
            waiting = self._client.journal.wait_for(ready)
            await asyncio.wrap_future(self._client.runtime.submit(waiting))

    def _keep(self, key: tuple[int, int], segment: ChangeRange) -> None:
        room = self._limits().subscribe_memory_mb << 20
        if segment.size_bytes > room:
            return  # of one time: nobody else may need it
        self._kept[key] = segment
        reach = math.inf if segment.upper is None else segment.upper
        self._reach[key[0]] = max(reach, self._reach.get(key[0], 0))
        self.kept_bytes += segment.size_bytes
        while len(self._kept) > SEGMENTS_MAX or self.kept_bytes > room:
            self.kept_bytes -= self._kept.popitem(last=False)[1].size_bytes

    async def _read(
        self, collection: int, query: Query, room: Room | None
    ) -> list[pa.Table] | None:
        """The tables; None if they have more than there is room for."""
        reader = self._client.reader

        async def read() -> list[pa.Table] | None:
            plan = reader.plan(collection, query)
            tables, rows, size_bytes = [], 0, 0
            async for table in reader.contents(plan):
                rows += table.num_rows
                size_bytes += _size(table)
                if room is not None and (rows > room.rows or size_bytes > room.size_bytes):
                    return None
                tables.append(table)
            return tables

        return await asyncio.wrap_future(self._client.runtime.submit(read()))


def _room(limits: Limits, alone: bool) -> Room:
    """What a piece may have; one of a single time as much as one statement may write."""
    if not alone:
        return Room(limits.subscribe_rows, (limits.subscribe_memory_mb << 20) // SEGMENTS_LARGE)
    size_mb = max(limits.copy_memory_mb, limits.subscribe_memory_mb)
    return Room(max(limits.write_rows, limits.subscribe_rows), size_mb << 20)


def _reached(collection: Collection, after: int, upper: int | None, rows_max: int) -> int | None:
    """How far a piece of so many updates reaches, by what is known of the stored batches."""
    total, reached = 0, after + 1
    batches = [batch for batch in collection.batches if batch.time_max > after]
    for batch in sorted(batches, key=lambda batch: batch.time_max):
        total += batch.rows
        if total > rows_max and reached > after + 1:
            return reached if upper is None else min(reached, upper)
        reached = batch.time_max + 1
    return upper


def _time(change: Change) -> int:
    return change[1]


def _size(table: pa.Table) -> int:
    """What the changes of a table use once they are decoded."""
    each: int = _CHANGE_BYTES + _VALUE_BYTES * table.num_columns
    return int(table.nbytes) + int(table.num_rows) * each


def _decoded(tables: list[pa.Table], collection: Collection) -> tuple[Change, ...]:
    found = [change for table in tables for change in changes(table, collection.schema)]
    return tuple(sorted(found, key=_time))
