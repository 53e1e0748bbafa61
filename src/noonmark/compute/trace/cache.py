"""Parts in a mappable form, on the executor's own disk.

A part is immutable, so what is derived from it stays true for as long as it is wanted: each column
that is asked for as an Arrow file, and for each key that is asked for an index, all mapped into
memory. Opening costs nothing until a page is touched, and processes share the pages.

Neighbours of one run are mapped together: to look a key up costs a search in each piece, however
large the pieces are.

Law: ``Cached(parts).columns(n)`` are columns of the parts, one after the other, whose bytes were
compared with their checksums when the file was made; what is half written has no name yet. The
cache is a folder of this run of Spark and goes with it. A later run begins with the same files
(`trace.kept`), each compared with its checksum: nothing is ever trusted after a crash.

It is bounded: beyond `BYTES_MAX` the parts that were not used for longest go.

Where it runs: executors.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from noonmark.compute.kernel.index import Index
from noonmark.compute.kernel.updates import one_array
from noonmark.compute.trace.kept import kept_files, make_room, tidy
from noonmark.persist import task
from noonmark.persist.part.part import Part

#: The size that the files of one cache may reach together.
BYTES_MAX = 32 << 30
#: Parts are mapped together up to this many rows: what is decoded at once stays small.
PIECE_ROWS = 4_000_000
#: What Arrow's texts of one array may be together.
_TEXT_BYTES_MAX = (1 << 31) - 1


class TooLong(Exception):
    """The texts of these parts do not go together."""


def pieces(parts: Sequence[Part], rows_max: int = PIECE_ROWS) -> Iterator[tuple[Part, ...]]:
    """The parts of a run in groups of neighbours, each of one schema and not too many rows."""
    group: list[Part] = []
    rows = 0
    for part in parts:
        if group and (rows + part.rows > rows_max or part.schema_id != group[0].schema_id):
            yield tuple(group)
            group, rows = [], 0
        group.append(part)
        rows += part.rows
    if group:
        yield tuple(group)


class Cached:
    """Some parts of one run, of one schema, in the cache of this machine."""

    def __init__(self, root: Path, place: task.TaskLocation, parts: Sequence[Part]) -> None:
        digest = hashlib.blake2b(place.url.encode(), digest_size=12)
        for part in parts:
            digest.update(f" {part.key} {part.checksum}".encode())
        self.folder = root / digest.hexdigest()
        self.place = place
        self.parts = tuple(parts)
        self.rows = sum(part.rows for part in parts)
        self._kept = kept_files(place, parts)
        self._columns: dict[str, pa.Array | None] = {}
        self.indexes: dict[str, Index] = {}

    def columns(self, names: Sequence[str]) -> dict[str, pa.Array | None]:
        """The columns; None for one that the parts, being older, do not have.

        Raises:
            TooLong: one of them is too long to be mapped as a whole.
        """
        wanted = [name for name in names if name not in self._columns]
        if wanted:
            if any(not self._file(name).exists() for name in wanted):
                self._write(wanted)
            for name in wanted:
                self._columns[name] = _open(self._file(name))
        return self._columns

    def index(self, label: str, make: Callable[[], Index]) -> Index:
        """An index of the rows; made once for each label."""
        if label not in self.indexes:
            name = hashlib.blake2b(label.encode(), digest_size=12).hexdigest()
            paths = self.folder / f"{name}.hashes.npy", self.folder / f"{name}.rows.npy"
            if not paths[1].exists():
                with self._alone():
                    if not all(map(self._is_there, paths)):
                        made = make()
                        _save(paths[0], made.hashes)
                        _save(paths[1], made.rows)
                        for path in paths:
                            self._keep(path)
                self._taken(12 * self.rows)
            hashes, rows = (np.load(path, mmap_mode="r") for path in paths)
            self.indexes[label] = Index(hashes, rows)
        return self.indexes[label]

    def touch(self) -> None:
        """Say that it was used."""
        if self.folder.exists():
            os.utime(self.folder)
            if self._kept is not None:
                self._kept.touch()

    def _is_there(self, path: Path) -> bool:
        """Whether a file is in the cache, of this run or of one before it."""
        return path.exists() or (self._kept is not None and self._kept.take(path))

    def _keep(self, path: Path) -> None:
        if self._kept is not None:
            self._kept.keep(path)

    def _taken(self, size: int) -> None:
        if ROOM.taken(self.folder.parent, size):
            tidy(self.place.url, ROOM.bytes_max)

    def _file(self, name: str) -> Path:
        return self.folder / f"{hashlib.blake2b(name.encode(), digest_size=12).hexdigest()}.arrow"

    def _write(self, names: Sequence[str]) -> None:
        with self._alone():
            missing = [name for name in names if not self._is_there(self._file(name))]
            if not missing:
                return
            store = self.place.open()
            tables = []
            for part in self.parts:
                data = store.runtime.submit(store.fetch(part)).result()
                tables.append(store.decode(part, data, missing))
            table = pa.concat_tables(tables)
            if any(map(_is_too_long, table.columns)):
                raise TooLong
            for name in missing:
                column = table.column(name) if name in table.column_names else None
                _write_column(self._file(name), column)
                self._keep(self._file(name))
        self._taken(table.nbytes)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time makes files of these parts."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _is_too_long(column: pa.ChunkedArray) -> bool:
    text = pa.types.is_string(column.type) or pa.types.is_binary(column.type)
    return bool(text and column.nbytes > _TEXT_BYTES_MAX)


def _write_column(path: Path, column: pa.ChunkedArray | None) -> None:
    """The column as one record batch; a file without columns for a column that is not there."""
    arrays = [] if column is None else [one_array(column)]
    table = pa.table(arrays, names=["column"][: len(arrays)])
    fresh = path.with_suffix(".new")
    with pa.OSFile(str(fresh), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    fresh.rename(path)


def _open(path: Path) -> pa.Array | None:
    table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    return one_array(table.column(0)) if table.num_columns else None


def _save(path: Path, values: np.ndarray) -> None:
    fresh = path.with_suffix(".new.npy")
    np.save(fresh, values)
    fresh.rename(path)


class Room:
    """What a process has added to the cache since it last saw to it that there is room."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self._added = 0

    def taken(self, root: Path, size: int) -> bool:
        """So many bytes more; whether room was made: to look at all files takes long."""
        self._added += size
        if self._added <= self.bytes_max // 64:
            return False
        make_room(root, self.bytes_max)
        self._added = 0
        return True


ROOM = Room()
