"""The rows of one leaf of a plan at one time, the cheapest way that is exact.

    mirror      the collection is small: from memory, by index or all of it
    look-up     it is large and the leaf's columns begin its key: persist reads those pages
    read        all of it, as far as the parts' statistics let a part be skipped

Law: `Gatherer.now` and `Gatherer.rows` give rows of the leaf's columns (`shape`): exactly those
for which the leaf's `test` is TRUE are its own, and where its keys decide, all of them are. The
caller made sure that the collection is complete at that time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from noonmark.adapter.peek.mirror import Mirror
from noonmark.adapter.peek.mirrors import ROWS_MAX, Mirrors, row_count
from noonmark.adapter.peek.rows import Row, counted
from noonmark.adapter.peek.shape import Leaf
from noonmark.adapter.worker.errors import OutOfMemory
from noonmark.persist.client import Client
from noonmark.persist.log.state import Collection
from noonmark.persist.read.plan import Query
from noonmark.rows import types as t
from noonmark.rows.numeral import EXACT_CONTEXT, equal_range
from noonmark.rows.order import equal_form
from noonmark.rows.schema import Schema
from noonmark.sql.evaluate import Outer, evaluate
from noonmark.sql.ir.relation import Scan

Multiset = dict[Row, int]
#: Rows with their multiplicities; a row may be there several times.
Given = Sequence[tuple[Row, int]]

#: Rows that are decoded at once while a large answer is streamed.
PIECE_ROWS = 5_000
#: More rows than this are not looked at on the adapter's own loop.
AT_ONCE_ROWS_MAX = 500


class Gatherer:
    """Reads leaves. Used by the adapter's loop alone."""

    def __init__(self, client: Client, mirrors: Mirrors, memory_bytes: int | None = None) -> None:
        self._client = client
        self.mirrors = mirrors
        self._memory_bytes = memory_bytes

    def collection(self, leaf: Leaf) -> Collection:
        """The collection of a leaf, in the newest state."""
        return self._client.state.collection(leaf.collection)

    def now(self, leaf: Leaf, time: int, given: Outer | None = None) -> Given | None:
        """The rows, if they can be had at once: from memory, and without looking at many.

        `given` has the values of parameters where the leaf's keys, and they alone, ask for some.
        """
        collection = self.collection(leaf)
        mirror = self.mirrors.now(collection, time)
        if mirror is None or (not leaf.keys and len(mirror) > AT_ONCE_ROWS_MAX):
            return None
        return columns_of(leaf, mirror.schema, _mirrored(leaf, mirror, given))

    async def rows(self, leaf: Leaf, time: int) -> Given:
        """The rows; waits for storage where it must.

        Raises:
            OutOfMemory: they are more than a statement may use.
        """
        collection = self.collection(leaf)
        mirror = await self.mirrors.at(collection, time)
        if mirror is None:
            tables = await self._bounded(leaf, collection, time)
            return await asyncio.to_thread(_rows_of, leaf, collection.schema, tables)
        found = _mirrored(leaf, mirror)
        if len(found) <= AT_ONCE_ROWS_MAX:
            return columns_of(leaf, mirror.schema, found)
        return await asyncio.to_thread(columns_of, leaf, mirror.schema, found)

    async def _bounded(self, leaf: Leaf, collection: Collection, time: int) -> list[pa.Table]:
        tables, size_bytes = [], 0
        async for table in self.tables(leaf, collection, time):
            tables.append(table)
            size_bytes += table.nbytes
            if self._memory_bytes is not None and size_bytes > self._memory_bytes:
                raise OutOfMemory.of_statement(self._memory_bytes)
        return tables

    async def whole(self, collection: Collection, time: int) -> Multiset:
        """All rows of a collection."""
        leaf = Leaf("", Scan(collection.name, collection.schema))
        tables = [table async for table in self.tables(leaf, collection, time)]
        rows = await asyncio.to_thread(_rows_of, leaf, collection.schema, tables)
        return narrowed(leaf, collection.schema, rows)

    async def stream(
        self, leaf: Leaf, time: int, collection: Collection | None = None
    ) -> AsyncGenerator[Given, None]:
        """The rows, piece by piece, in bounded memory; of the collection, if the name has moved."""
        collection = collection or self.collection(leaf)
        async for table in self.tables(leaf, collection, time):
            for start in range(0, table.num_rows, PIECE_ROWS):
                piece = [table.slice(start, PIECE_ROWS)]
                yield await asyncio.to_thread(_rows_of, leaf, collection.schema, piece)

    async def tables(
        self, leaf: Leaf, collection: Collection, time: int
    ) -> AsyncIterator[pa.Table]:
        """The leaf's columns as tables, with multiplicities, before anything else is asked."""
        reader, runtime = self._client.reader, self._client.runtime
        query = query_of(leaf, collection, time)

        async def start() -> AsyncIterator[pa.Table]:
            return reader.contents(reader.plan(collection.id, query))

        async def following(tables: AsyncIterator[pa.Table]) -> pa.Table | None:
            return await anext(tables, None)

        tables = await asyncio.wrap_future(runtime.submit(start()))
        while True:
            table = await asyncio.wrap_future(runtime.submit(following(tables)))
            if table is None:
                return
            yield table


def query_of(leaf: Leaf, collection: Collection, time: int) -> Query:
    """What persist is asked for a leaf: by key where the leaf's columns begin the key."""
    columns = leaf.scan.columns.names
    names = [columns[at] for at in leaf.columns]
    prefix = prefix_of(leaf, collection)
    if prefix:
        at = [names.index(name) for name in prefix]
        kinds = [collection.schema[name].type for name in prefix]
        found = {tuple([key[i] for i in at]) for key in known_keys(leaf)}
        keys = [key for key in found if all(map(_is_value, key, kinds))]
        # When all keys are NULL, which equals nothing, the predicate refuses what is found.
        return Query(time, columns=columns, keys=keys or [(None,)])
    where: dict[str, tuple[Any, Any]] = {}
    if len(leaf.keys) == 1:
        values = known_keys(leaf)
        if values:
            kinds = [collection.schema[name].type for name in names]
            where = {
                name: equal_range(value) if t.is_plain(kind) else (value, value)
                for name, value, kind in zip(names, values[0], kinds, strict=True)
                if _is_value(value, kind)
            }
    return Query(time, columns=columns, where=where)


def _is_value(value: Any, kind: t.SqlType) -> bool:
    """Whether a column of the type can hold the value: a number may have more digits."""
    if not isinstance(kind, t.Numeric) or kind.is_plain:
        return True
    finest = Decimal((0, (1,), -kind.stored_scale))
    if not value.is_finite() or value.adjusted() >= kind.stored_precision - kind.stored_scale:
        return False
    return bool(value.quantize(finest, context=EXACT_CONTEXT).compare(value) == 0)


def prefix_of(leaf: Leaf, collection: Collection) -> tuple[str, ...]:
    """The columns with which the collection's key begins and that the leaf knows."""
    names = {leaf.scan.columns.names[at] for at in leaf.columns}
    prefix: list[str] = []
    for name in collection.key:
        if name not in names or t.is_plain(collection.schema[name].type):
            break
        prefix.append(name)
    return tuple(prefix)


def known_keys(leaf: Leaf, given: Outer | None = None) -> list[Row]:
    """The keys to look up; one with a NULL equals nothing."""
    keys = [tuple([evaluate(scalar, (), given) for scalar in key]) for key in leaf.keys]
    return [key for key in dict.fromkeys(keys) if None not in key]


def _positions(leaf: Leaf, schema: Schema) -> tuple[int, ...]:
    """The leaf's key columns as positions in the collection's rows."""
    names = leaf.scan.columns.names
    if names == schema.names:
        return leaf.columns
    return tuple(schema.index(names[at]) for at in leaf.columns)


def _mirrored(leaf: Leaf, mirror: Mirror, given: Outer | None = None) -> list[tuple[Row, int]]:
    """Whole rows of a mirror: those of the leaf's keys, or all."""
    if not leaf.keys:
        return list(mirror.rows.items())  # a copy: the mirror moves on
    columns = _positions(leaf, mirror.schema)
    return [pair for key in known_keys(leaf, given) for pair in mirror.find(columns, key)]


def columns_of(leaf: Leaf, schema: Schema, rows: Sequence[tuple[Row, int]]) -> Given:
    """Whole rows of a collection as rows of the leaf's columns."""
    names = leaf.scan.columns.names
    if names == schema.names:
        return rows
    at = [schema.index(name) for name in names]
    return [(tuple([row[i] for i in at]), count) for row, count in rows]


def own_rows(leaf: Leaf, rows: Given) -> Given:
    """Rows of a leaf's columns without those that its keys, where they decide, refuse."""
    if not leaf.decided:
        return rows
    wanted, columns = {tuple(map(equal_form, key)) for key in known_keys(leaf)}, leaf.columns
    return [pair for pair in rows if tuple([equal_form(pair[0][at]) for at in columns]) in wanted]


def narrowed(leaf: Leaf, schema: Schema, rows: Iterable[tuple[Row, int]]) -> Multiset:
    """Whole rows of a collection as the leaf's rows."""
    test, found = leaf.test, Counter[Row]()
    for row, count in own_rows(leaf, columns_of(leaf, schema, list(rows))):
        if test is None or evaluate(test, row) is True:
            found[row] += count
    return found


def _rows_of(leaf: Leaf, schema: Schema, tables: Sequence[pa.Table]) -> Given:
    kept = Schema(tuple(schema[name] for name in leaf.scan.columns.names))
    return own_rows(leaf, [pair for table in tables for pair in counted(table, kept)])


def touched(leaf: Leaf, collection: Collection) -> int:
    """About how many rows of its collection a leaf makes us look at."""
    rows = row_count(collection)
    # By key, in memory or in storage; a key may have several rows, but rarely many.
    if leaf.keys and (rows <= ROWS_MAX or prefix_of(leaf, collection)):
        return min(rows, len(leaf.keys))
    return rows
