"""What tables hold already: the rows of keys that are written, and whole columns.

Where it runs: asked on the adapter's loop, read on persist's.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from noonmark.adapter.table.key_query import look_up
from noonmark.adapter.table.keys import Keys
from noonmark.adapter.table.requests import Request, Row, Write
from noonmark.persist.client import Client
from noonmark.persist.codec import RowCodec
from noonmark.persist.log.state import Collection
from noonmark.persist.read.plan import Query
from noonmark.persist.read.snapshot import counts_of


class Stored:
    """Reads of the newest rows of tables."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def touched(self, group: Iterable[Request]) -> dict[str, Keys]:
        """For every table with a key that requests write: what its touched keys have now."""
        touched: dict[str, list[Write]] = {}
        for request in group:
            for name, writes in request.writes.items():
                if writes:
                    touched.setdefault(name, []).extend(writes)
        return await self.present(touched)

    async def present(self, touched: Mapping[str, Sequence[Write]]) -> dict[str, Keys]:
        """What the keys of these rows have now."""
        found: dict[str, Keys] = {}
        for name, writes in touched.items():
            collection = self._client.state.collection(name)
            if collection.key:
                found[name] = await self._keys_of(collection, writes)
        return found

    async def _keys_of(self, collection: Collection, writes: Sequence[Write]) -> Keys:
        found = Keys.of(collection)
        upper = _upper(collection)
        if collection.since == collection.upper:
            return found
        query = look_up(collection, [found.key(row) for row, _ in writes], upper - 1)
        wanted = {found.form(row) for row, _ in writes}
        rows = self._client.runtime.submit(self._look_up(collection, query))
        for row, count in (await asyncio.wrap_future(rows)).items():
            if found.form(row) in wanted:
                found.rows[row] = count
        return found

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
