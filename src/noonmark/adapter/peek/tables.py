"""Tables of collections in files, for workers, which map them: they read no storage themselves.

A file has the columns that a plan uses of a collection, at one time. It is kept for the next plan
that uses the same: as long as the collection has the same batches, it has the same rows at every
time behind the last of them. All files together take at most `bytes_max`; the one that was not
asked for longest goes first.

Law: `held(leaf, time)` gives a file with the rows of the leaf's collection at that time, or at
least those that its keys ask for; it stays until the block ends.

Used by the adapter's loop alone.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from noonmark.adapter.peek.gather import Gatherer, query_of
from noonmark.adapter.peek.shape import Leaf
from noonmark.adapter.worker.columnar import ROWS
from noonmark.adapter.worker.scratch import scratch_folder
from noonmark.persist.log.state import Collection
from noonmark.persist.part.run import DIFF
from noonmark.rows.arrow import arrow_type

BYTES_MAX = 1 << 30

_Name = tuple[int, tuple[str, ...]]


@dataclass
class _File:
    path: Path
    batches: Any
    bytes: int = 0
    users: int = 0
    is_stale: bool = False
    made: asyncio.Lock = field(default_factory=asyncio.Lock)


class TableFiles:
    """See the module."""

    def __init__(self, gatherer: Gatherer, bytes_max: int = BYTES_MAX) -> None:
        self._gatherer = gatherer
        self._bytes_max = bytes_max
        self._files: OrderedDict[_Name, _File] = OrderedDict()
        self._folder: Path | None = None
        self._made = 0
        #: One is written at a time: its rows are in memory meanwhile.
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def held(self, leaf: Leaf, time: int) -> AsyncIterator[Path]:
        """The file of a leaf, for as long as the block runs."""
        collection = self._gatherer.collection(leaf)
        file = self._find(leaf, collection, time)
        file.users += 1
        try:
            async with file.made:
                if not file.path.exists():
                    # What is kept for others has all rows, whatever this one looks for.
                    asked = leaf if file.batches is None else Leaf(leaf.name, leaf.scan)
                    file.bytes = await self._write(asked, collection, time, file.path)
                    self._shrink()
            yield file.path
        except BaseException:
            if not file.bytes:
                self._forget(file)
            raise
        finally:
            file.users -= 1
            if file.is_stale:
                self._remove(file)

    def close(self) -> None:
        """Remove all files."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _find(self, leaf: Leaf, collection: Collection, time: int) -> _File:
        by_key = query_of(leaf, collection, time).keys is not None
        newest = all(batch.time_max <= time for batch in collection.batches)
        if by_key or not newest:
            return _File(self._fresh(), None, is_stale=True)
        name = (collection.id, tuple(leaf.scan.columns.names))
        file = self._files.get(name)
        if file is None or file.batches != collection.batches:
            if file is not None:
                self._forget(file)
            file = self._files[name] = _File(self._fresh(), collection.batches)
        self._files.move_to_end(name)
        return file

    def _fresh(self) -> Path:
        if self._folder is None:
            self._folder = scratch_folder()
        self._made += 1
        return self._folder / str(self._made)

    async def _write(self, leaf: Leaf, collection: Collection, time: int, path: Path) -> int:
        names = leaf.scan.columns.names
        fields = [(name, arrow_type(collection.schema[name].type)) for name in names]
        schema = pa.schema([*fields, (DIFF, pa.int64())])
        async with self._turn:
            tables = [table async for table in self._gatherer.tables(leaf, collection, time)]
            # All in one go: a thread cannot be ended, and what it uses must not be closed.
            await asyncio.to_thread(_write, path.with_suffix(".draft"), schema, tables)
        path.with_suffix(".draft").rename(path)
        return path.stat().st_size

    def _shrink(self) -> None:
        total = sum(file.bytes for file in self._files.values())
        for name, file in list(self._files.items()):
            if total <= self._bytes_max:
                return
            if not file.users:
                total -= file.bytes
                del self._files[name]
                self._remove(file)

    def _forget(self, file: _File) -> None:
        for name, each in list(self._files.items()):
            if each is file:
                del self._files[name]
        file.is_stale = True
        if not file.users:
            self._remove(file)

    def _remove(self, file: _File) -> None:
        if not file.users:
            for path in (file.path, file.path.with_suffix(".draft")):
                with suppress(FileNotFoundError):
                    path.unlink()


def _write(path: Path, schema: pa.Schema, tables: list[pa.Table]) -> None:
    """Write the rows as one batch, so that a column is mapped as one array; takes the tables."""
    rows = sum(table.num_rows for table in tables)
    columns = {}
    for name in schema.names:  # one after the other: no column is in memory twice for long
        chunks = [chunk for table in tables for chunk in table.column(name).chunks]
        tables[:] = [table.drop_columns([name]) for table in tables]
        column = pa.chunked_array(chunks, schema.field(name).type)
        if name == DIFF and pc.all(pc.equal(column, 1)).as_py() is not False:
            continue
        columns[name] = pa.table({name: column}).combine_chunks().column(name)
    given = pa.table(columns).replace_schema_metadata({ROWS: str(rows)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, given.schema) as writer:
        writer.write_table(given)
