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
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.adapter.peek.gather import Gatherer, query_of
from noonmark.adapter.peek.shape import Leaf
from noonmark.adapter.worker.scratch import scratch_folder
from noonmark.persist.log.state import Collection
from noonmark.persist.part.run import DIFF
from noonmark.rows.arrow import arrow_type

BYTES_MAX = 2 << 30
#: Rows of a batch: a file of fewer is mapped as one array for each column.
BATCH_ROWS = 1 << 20

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
        self.bytes_max = bytes_max
        self._files: OrderedDict[_Name, _File] = OrderedDict()
        self._folder: Path | None = None
        self._made = 0
        #: One is written at a time: a batch of it is in memory meanwhile.
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
        draft = path.with_suffix(".draft")
        async with self._turn:
            # A thread cannot be ended, and what it uses must not be closed: it has its own writer.
            writer = _Writer(draft, pa.schema(fields))
            try:
                async for table in self._gatherer.tables(leaf, collection, time):
                    await asyncio.to_thread(writer.add, table)
                await asyncio.to_thread(writer.end)
            except BaseException:
                asyncio.get_running_loop().run_in_executor(None, writer.give_up)
                raise
        draft.rename(path)
        return path.stat().st_size

    def _shrink(self) -> None:
        total = sum(file.bytes for file in self._files.values())
        for name, file in list(self._files.items()):
            if total <= self.bytes_max:
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


class _Writer:
    """Writes tables as batches of `BATCH_ROWS` rows: so much is in memory, and mapped as one array.

    Multiplicities are written if one is not 1, or when there is nothing else; what was written
    without them is written again.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._schema = schema
        self._turn = threading.Lock()
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._open(path, with_diff=not schema.names)

    def add(self, table: pa.Table) -> None:
        """Take the next rows."""
        with self._turn:
            self._waiting.append(table)
            self._rows += table.num_rows
            if self._rows >= BATCH_ROWS:
                self._write(BATCH_ROWS)

    def end(self) -> None:
        """Write the last of them; a file has one batch at least."""
        with self._turn:
            if self._rows or not self._batches:
                self._write(max(1, self._rows))
            self._close()

    def give_up(self) -> None:
        """Nobody needs the file any more; waits for what is being written."""
        with self._turn:
            self._waiting.clear()
            self._close()

    def _write(self, size: int) -> None:
        """Write what waits, but for what does not fill a batch."""
        empty = pa.schema([*self._schema, (DIFF, pa.int64())]).empty_table()
        tables = [each.select(empty.column_names).cast(empty.schema) for each in self._waiting]
        rows = pa.concat_tables([empty, *tables])
        full = len(rows) - len(rows) % size if len(rows) else 0
        self._waiting, self._rows = [rows.slice(full)] if full < len(rows) else [], len(rows) - full
        if not self._with_diff and pc.all(pc.equal(rows.column(DIFF), 1)).as_py() is False:
            self._begin_again()
        if not self._with_diff:
            rows = rows.drop_columns([DIFF])
        for start in range(0, max(1, full), size):
            batch = rows.slice(start, min(size, full - start)).combine_chunks()
            self._put(batch)

    def _put(self, table: pa.Table) -> None:
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
        for batch in batches:
            self._writer.write_batch(batch)
            self._batches += 1

    def _begin_again(self) -> None:
        """What was written so far has each row once: that is written beside it now."""
        self._close()
        before = self._path.with_suffix(".once")
        self._path.rename(before)
        try:
            self._open(self._path, with_diff=True)
            with pa.memory_map(str(before)) as file:
                reader = pa.ipc.open_file(file)
                for at in range(reader.num_record_batches):
                    batch = reader.get_batch(at)
                    ones = pa.array(np.ones(batch.num_rows, np.int64))
                    self._put(pa.Table.from_batches([batch]).append_column(DIFF, ones))
        finally:
            before.unlink()

    def _open(self, path: Path, *, with_diff: bool) -> None:
        fields = [*self._schema, *([pa.field(DIFF, pa.int64())] if with_diff else [])]
        self._with_diff, self._batches = with_diff, 0
        self._file = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_file(self._file, pa.schema(fields))

    def _close(self) -> None:
        self._writer.close()
        self._file.close()
