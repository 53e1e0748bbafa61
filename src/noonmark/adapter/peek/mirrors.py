"""The mirrors of a process: which collections are in memory, and how they follow persist.

A collection is mirrored when it is asked for and has few enough rows (`ROWS_MAX`), and until it has
twice as many; together the mirrors have at most `TOTAL_ROWS_MAX` rows and `bytes_max` bytes, one
of them at most a quarter of those bytes, and the one that was not asked for longest goes first. A
larger collection is looked up in persist, by key.

A mirror follows at the moment it is asked: what is between its time and the time asked for is in
the newest state's batches. Mostly that is nothing, or a few batches inside the state itself, and
then no other thread is asked. So a read of what did not change costs a look into a dict.

Law: `at(collection, t)` gives a mirror that covers t, or None; the caller made sure that the
collection is complete at t. The mirror has the columns of that collection, or more when the schema
grew meanwhile: its rows are read by `Mirror.schema`, never by a schema that was looked up before.
Used by the adapter's loop alone.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence

import pyarrow as pa

from noonmark.adapter.peek.mirror import Mirror
from noonmark.adapter.peek.rows import Change, Row, changes, counted
from noonmark.persist.client import Client
from noonmark.persist.log.definite import error_at
from noonmark.persist.log.state import Collection
from noonmark.persist.read.plan import Plan, Query, check_answers, plan_read
from noonmark.persist.read.updates import inline_table, narrow

ROWS_MAX = 250_000
TOTAL_ROWS_MAX = 1_000_000
#: A history of at most so many updates is added up in a moment.
UPDATES_MAX = 2_000_000
#: The bytes of all mirrors, as Arrow counts them: that is `mirror_memory`.
BYTES_MAX = 512 << 20
#: Inline updates up to this size are taken in on the adapter's own loop.
_IN_PLACE_BYTES_MAX = 64 << 10


def row_count(collection: Collection) -> int:
    """How many rows a collection has at its newest time; more when it has a very long history.

    A table of few rows that change often has many updates: what counts is what is left of them, as
    long as adding them up is quick.
    """
    updates = sum(batch.rows for batch in collection.batches)
    if updates > UPDATES_MAX:
        return updates
    return max(0, sum(batch.diff_sum for batch in collection.batches))


class Mirrors:
    """See the module."""

    def __init__(
        self,
        client: Client,
        rows_max: int = ROWS_MAX,
        total_rows_max: int = TOTAL_ROWS_MAX,
        bytes_max: int = BYTES_MAX,
    ) -> None:
        self._client = client
        self._bytes_max = bytes_max
        # What came into each mirror. What left it is not taken off: one that changes a lot is
        # made anew now and then, and counted then.
        self._bytes: dict[int, int] = {}
        # How many rows a collection had when it was too large by its bytes.
        self._refused: dict[int, int] = {}
        self._rows_max = rows_max
        self._total_rows_max = total_rows_max
        self._mirrors: OrderedDict[int, Mirror] = OrderedDict()
        self._seen: dict[int, Collection] = {}
        self._turns: dict[int, asyncio.Lock] = {}

    def __len__(self) -> int:
        return sum(map(len, self._mirrors.values()))

    def now(self, collection: Collection, time: int) -> Mirror | None:
        """The mirror at `time`, if it can be had without waiting and the collection has rows."""
        if collection.errors and error_at(collection.errors, time) is not None:
            return None
        mirror = self._mirrors.get(collection.id)
        if mirror is None:
            return None
        self._mirrors.move_to_end(collection.id)
        mirror.widen(collection.schema)
        if mirror.covers(time):
            return mirror
        if time < mirror.changed:
            return None
        if self._seen.get(collection.id) is collection:
            # The same batches as before: all of them are in, and nothing else is at these times.
            mirror.advance((), time)
            return mirror
        plan = self._plan(collection, mirror, time)
        if plan is None or plan.runs or plan.bytes > _IN_PLACE_BYTES_MAX:
            return None
        self._take(collection, mirror, _inline(plan), time, plan.bytes)
        return mirror

    async def at(self, collection: Collection, time: int) -> Mirror | None:
        """The mirror at `time`; None when the collection is too large, or the time too old.

        Raises:
            DefiniteError: the collection has no rows at that time.
        """
        check_answers(collection, time)
        mirror = self.now(collection, time)
        if mirror is not None:
            return mirror
        async with self._turns.setdefault(collection.id, asyncio.Lock()):
            # Someone may have made it while this one waited for its turn.
            mirror = self.now(collection, time)
            if mirror is None:  # not `or`: an empty mirror is one, too
                mirror = await self._follow(collection, time)
            if mirror is None and collection.id not in self._mirrors:
                mirror = await self._make(collection, time)
        return mirror

    def forget(self, collection: int) -> None:
        """Let go of a collection: it was dropped, or others need the room."""
        self._mirrors.pop(collection, None)
        self._seen.pop(collection, None)
        self._bytes.pop(collection, None)
        self._refused.pop(collection, None)

    def _plan(self, collection: Collection, mirror: Mirror, time: int) -> Plan | None:
        """What the mirror lacks; None when that history is gone, and only a new mirror helps."""
        if not collection.since.less_equal(max(mirror.as_of, 0)):
            self.forget(collection.id)
            return None
        # What a mirror is told of is not what it answers: that is asked about in `now` and `at`.
        query = Query(as_of=time, after=mirror.as_of, despite_error=True)
        return plan_read(self._client.state.seqno, collection, query)

    async def _follow(self, collection: Collection, time: int) -> Mirror | None:
        mirror = self._mirrors.get(collection.id)
        if mirror is None or time < mirror.changed:
            return None
        plan = self._plan(collection, mirror, time)
        if plan is None:
            return None
        if sum(part.rows for part in plan.parts) > self._rows_max:
            self.forget(collection.id)
            return None
        # A large change is read by persist; only decoded rows come back to this loop.
        tables = await self._read(collection.id, plan.query)
        if tables is None:
            self._refuse(collection)
            return None
        found = await asyncio.to_thread(_changes, tables, collection)
        if mirror.covers(time):
            return mirror  # others brought it there meanwhile
        if mirror.as_of != plan.query.after:
            # Others moved it, some of the way or beyond: what was read does not fit any more.
            return await self._follow(collection, time)
        self._take(collection, mirror, found, time, _size_bytes(tables))
        return mirror

    def _take(
        self,
        collection: Collection,
        mirror: Mirror,
        found: Iterable[Change],
        time: int,
        size_bytes: int,
    ) -> None:
        mirror.widen(collection.schema)
        mirror.advance(found, time)
        # Batches beyond `time` are not in yet: this state must be looked at again.
        whole = all(batch.time_max <= time for batch in collection.batches)
        if whole:
            self._seen[collection.id] = collection
        else:
            self._seen.pop(collection.id, None)
        if collection.id in self._mirrors:
            self._bytes[collection.id] = self._bytes.get(collection.id, 0) + size_bytes
        if len(mirror) > 2 * self._rows_max or self._bytes.get(collection.id, 0) > self._one_max:
            self.forget(collection.id)  # who asked now still has it
        self._shrink()

    async def _make(self, collection: Collection, time: int) -> Mirror | None:
        count = row_count(collection)
        if count > self._rows_max or 2 * count > self._refused.get(collection.id, 2 * count):
            return None
        tables = await self._read(collection.id, Query(as_of=time))
        if tables is None:
            self._refuse(collection)
            return None
        self._refused.pop(collection.id, None)
        rows = await asyncio.to_thread(_counted, tables, collection)
        if len(rows) > self._rows_max:
            return None
        mirror = await asyncio.to_thread(Mirror, collection.name, collection.schema, rows, time)
        # When the last change was is not known: the mirror answers for this time and later ones.
        self._mirrors[collection.id] = mirror
        self._take(collection, mirror, (), time, _size_bytes(tables))
        return mirror

    @property
    def _one_max(self) -> int:
        return self._bytes_max // 4

    def _refuse(self, collection: Collection) -> None:
        """Not again until it has half as many rows."""
        self.forget(collection.id)
        self._refused[collection.id] = row_count(collection)

    def _shrink(self) -> None:
        while len(self._mirrors) > 1 and (
            len(self) > self._total_rows_max or sum(self._bytes.values()) > self._bytes_max
        ):
            oldest = next(iter(self._mirrors))
            self.forget(oldest)

    async def _read(self, collection: int, query: Query) -> list[pa.Table] | None:
        """The tables; None if they are too large."""
        reader = self._client.reader

        async def read() -> list[pa.Table] | None:
            plan = reader.plan(collection, query)
            tables: list[pa.Table] = []
            async for table in reader.contents(plan):
                tables.append(table)
                if _size_bytes(tables) > self._one_max:
                    return None
            return tables

        return await asyncio.wrap_future(self._client.runtime.submit(read()))


def _size_bytes(tables: Sequence[pa.Table]) -> int:
    return sum(table.nbytes for table in tables)


def _inline(plan: Plan) -> list[Change]:
    found: list[Change] = []
    for batch in plan.inline:
        found += changes(narrow(inline_table(plan.collection, batch), plan), plan.collection.schema)
    return found


def _changes(tables: Sequence[pa.Table], collection: Collection) -> list[Change]:
    return [change for table in tables for change in changes(table, collection.schema)]


def _counted(tables: Sequence[pa.Table], collection: Collection) -> list[tuple[Row, int]]:
    return [pair for table in tables for pair in counted(table, collection.schema)]
