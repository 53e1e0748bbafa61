"""What tables hold already: the rows of keys that are written, and whole columns.

Keys are looked up in the table's mirror (`noonmark.adapter.peek.mirrors`) where it has one that can
follow at once: a dict instead of a read of persist. Nobody waits for a mirror to be made: a table
that is written by key again and again gets one beside its writes, and until then, or where it has
too many rows, persist is asked.

Law (same): both ways give the rows of the keys at the table's newest time.

Where it runs: asked on the adapter's loop, read on persist's.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from noonmark.adapter.aside import LENGTH_MAX, aside
from noonmark.adapter.peek.mirror import can_index
from noonmark.adapter.peek.mirrors import Mirrors
from noonmark.adapter.table.key_query import look_up
from noonmark.adapter.table.keys import (
    ROW_WEIGHT,
    Keys,
    are_distinct,
    have_same_bits,
    meet,
    query_of_range,
)
from noonmark.adapter.table.requests import Request, Row, Write
from noonmark.errors import NoonmarkError
from noonmark.persist.client import Client
from noonmark.persist.codec import RowCodec
from noonmark.persist.log.state import Collection
from noonmark.persist.read.plan import Query
from noonmark.persist.read.snapshot import counts_of

#: After so many reads of persist for its keys a table gets a mirror.
_READS_MAX = 4


class Stored:
    """Reads of the newest rows of tables."""

    def __init__(self, client: Client, mirrors: Callable[[], Mirrors]) -> None:
        self._client = client
        self._mirrors = mirrors
        #: How often persist was read for keys, by collection.
        self._reads: Counter[int] = Counter()
        self._making: dict[int, asyncio.Future[None]] = {}

    async def touched(self, group: Iterable[Request]) -> dict[str, Keys]:
        """For every table with a key that requests write: what the keys have now that one adds."""
        touched: dict[str, list[Sequence[Write]]] = {}
        for request in group:
            for name, writes in request.writes.items():
                if writes:
                    touched.setdefault(name, []).append(writes)
        return await self._present(touched)

    async def present(self, touched: Mapping[str, Sequence[Write]]) -> dict[str, Keys]:
        """What the keys have now that these rows add."""
        return await self._present({name: [writes] for name, writes in touched.items()})

    async def _present(self, touched: Mapping[str, Sequence[Sequence[Write]]]) -> dict[str, Keys]:
        found: dict[str, Keys] = {}
        for name, writes in touched.items():
            collection = self._client.state.collection(name)
            if collection.key:
                found[name] = await self._keys_of(collection, writes)
        return found

    async def _keys_of(self, collection: Collection, each: Sequence[Sequence[Write]]) -> Keys:
        weight = sum(map(len, each)) * ROW_WEIGHT
        found = await aside(weight, Keys.of(collection).added_by, each)
        upper = _upper(collection)
        if collection.since == collection.upper or not found.wanted:
            return found
        # A mirror is the loop's alone: it is asked for as many keys as the loop has the time for.
        weight = len(found.wanted) * ROW_WEIGHT
        if weight <= LENGTH_MAX and self._from_mirror(collection, found, upper - 1):
            return found
        keys = list(found.wanted.values())
        query = await aside(weight, look_up, collection, keys, upper - 1)
        rows = self._client.runtime.submit(self._look_up(collection, query))
        there = await asyncio.wrap_future(rows)
        await aside(len(there) * ROW_WEIGHT, found.take, there)
        return found

    async def has_room(self, collection: Collection, data: pa.Table, time: int) -> bool:
        """Whether each key of these rows is there once, and none of them at that time already.

        By columns, so False also where Arrow does not know which keys are one.
        """
        keys = data.select(list(collection.key))
        if not have_same_bits(collection) or not await asyncio.to_thread(are_distinct, keys):
            return False
        if not collection.batches:
            return True
        query = await asyncio.to_thread(query_of_range, collection, keys, time)
        found = self._client.runtime.submit(self._meets(collection, keys, query))
        return not await asyncio.wrap_future(found)

    async def _meets(self, collection: Collection, keys: pa.Table, query: Query) -> bool:
        """Whether a row of the query has one of these keys; on persist's loop."""
        reader = self._client.reader
        gathered: list[pa.Table] = []
        async for table in reader.contents(reader.plan(collection.id, query)):
            gathered.append(table.select(keys.column_names))
            # Each comparison looks at all of these keys: with as many as there are of them.
            if sum(each.num_rows for each in gathered) >= keys.num_rows:
                if await asyncio.to_thread(meet, pa.concat_tables(gathered), keys):
                    return True
                gathered = []
        return bool(gathered) and await asyncio.to_thread(meet, pa.concat_tables(gathered), keys)

    def _from_mirror(self, collection: Collection, found: Keys, time: int) -> bool:
        """Fill in the rows at that time; False where there is no mirror that has them now."""
        columns = collection.schema.columns
        if not all(can_index(columns[place].type) for place in found.places):
            return False
        mirror = self._mirrors().now(collection, time)
        if mirror is None:
            self._reads[collection.id] += 1
            if self._reads[collection.id] >= _READS_MAX and collection.id not in self._making:
                made = asyncio.ensure_future(self._make(collection, time))
                self._making[collection.id] = made
                self._reads.pop(collection.id)
            return False
        assert found.wanted is not None, "rows are looked up for keys that are known"
        for key in found.wanted.values():
            for known, count in mirror.find(found.places, key):
                found.rows[known] = count
        return True

    async def _make(self, collection: Collection, time: int) -> None:
        try:
            await self._mirrors().at(collection, time)
        except NoonmarkError:
            pass  # dropped meanwhile, or persist is away: whoever writes is told by his own read
        finally:
            self._making.pop(collection.id, None)

    async def columns(
        self, collection: Collection, names: tuple[str, ...]
    ) -> list[tuple[Row, int]]:
        """Some columns of a whole table."""
        upper = _upper(collection)
        if collection.since == collection.upper:
            return []
        rows = self._client.runtime.submit(self._look_up(collection, Query(upper - 1)))
        places = [collection.schema.index(name) for name in names]
        found = (await asyncio.wrap_future(rows)).items()
        return [(tuple([row[place] for place in places]), count) for row, count in found]

    async def _look_up(self, collection: Collection, query: Query) -> Counter[Row]:
        """The rows of some keys at a time; on persist's loop."""
        reader, codec = self._client.reader, RowCodec(collection.schema)
        plan = reader.plan(collection.id, query)
        tables = [table async for table in reader.contents(plan)]
        return counts_of(pa.concat_tables(tables), codec) if tables else Counter()


def _upper(collection: Collection) -> int:
    upper = collection.upper.only()
    assert upper is not None, "a table is not closed while it lives"
    return upper
