"""Parts in a mappable form, on the executor's own disk.

A part is immutable, so what is derived from it stays true for as long as it is wanted: each column
that is asked for as an Arrow file, and for each key that is asked for an index, all mapped into
memory. Opening costs nothing until a page is touched, and processes share the pages.

Law: ``Cached(part).column(n)`` is column n of the part, whose bytes were compared with their
checksum when the file was made; what is half written has no name yet. The cache is a folder of
this run of Spark and goes with it: nothing in it is ever trusted after a crash.

It is bounded: beyond `BYTES_MAX` the parts that were not used for longest go.

Where it runs: executors.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from noonmark.compute.walk.index import Index, build
from noonmark.compute.walk.rows import Ints, one_array
from noonmark.persist import task
from noonmark.persist.part import Part

#: The size that the files of one cache may reach together.
BYTES_MAX = 32 << 30


class Cached:
    """One part in the cache of this machine."""

    def __init__(self, root: Path, place: task.Place, part: Part) -> None:
        digest = hashlib.blake2b(f"{place.url} {part.key} {part.checksum}".encode(), digest_size=12)
        self.folder = root / digest.hexdigest()
        self.place = place
        self.part = part
        self._columns: dict[str, pa.Array | None] = {}
        self.indexes: dict[str, Index] = {}
        self._orders: dict[str, Ints] = {}

    def columns(self, names: Sequence[str]) -> dict[str, pa.Array | None]:
        """The columns; None for one that the part, being older, does not have."""
        wanted = [name for name in names if name not in self._columns]
        if wanted:
            if any(not self._file(name).exists() for name in wanted):
                self._write(wanted)
            for name in wanted:
                self._columns[name] = _open(self._file(name))
        return self._columns

    def index(self, label: str, arrays: Sequence[pa.Array]) -> Index:
        """The index by a key, of which `arrays` are the values; made once for each label."""
        if label not in self.indexes:
            name = hashlib.blake2b(label.encode(), digest_size=12).hexdigest()
            paths = self.folder / f"{name}.hashes.npy", self.folder / f"{name}.rows.npy"
            if not paths[1].exists():
                with self._alone():
                    if not paths[1].exists():
                        made = build(arrays, self.part.rows)
                        _save(paths[0], made.hashes)
                        _save(paths[1], made.rows)
            hashes, rows = (np.load(path, mmap_mode="r") for path in paths)
            self.indexes[label] = Index(hashes, rows)
        return self.indexes[label]

    def order(self, label: str, make: Callable[[], Ints]) -> Ints:
        """The places of all rows in an order; made once for each label."""
        if label not in self._orders:
            name = hashlib.blake2b(label.encode(), digest_size=12).hexdigest()
            path = self.folder / f"{name}.order.npy"
            if not path.exists():
                with self._alone():
                    if not path.exists():
                        _save(path, make())
            self._orders[label] = np.load(path, mmap_mode="r")
        return self._orders[label]

    def touch(self) -> None:
        """Say that it was used."""
        if self.folder.exists():
            os.utime(self.folder)

    def _file(self, name: str) -> Path:
        return self.folder / f"{hashlib.blake2b(name.encode(), digest_size=12).hexdigest()}.arrow"

    def _write(self, names: Sequence[str]) -> None:
        with self._alone():
            missing = [name for name in names if not self._file(name).exists()]
            if not missing:
                return
            store = self.place.open()
            data = store.runtime.submit(store.fetch(self.part)).result()
            table = store.decode(self.part, data, missing)
            for name in missing:
                column = table.column(name) if name in table.column_names else None
                _write_column(self._file(name), column)
        make_room(self.folder.parent)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time makes files of this part."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


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


def make_room(root: Path, bytes_max: int = BYTES_MAX) -> None:
    """Let parts go, those not used for longest first, until the rest fits.

    A process that has one of them mapped keeps it until it lets go: the bytes are freed then.
    """
    sizes = {
        folder: sum(file.stat().st_size for file in folder.glob("*") if file.is_file())
        for folder in root.iterdir()
        if folder.is_dir()
    }
    total = sum(sizes.values())
    for folder in sorted(sizes, key=lambda each: each.stat().st_mtime):
        if total <= bytes_max:
            return
        shutil.rmtree(folder, ignore_errors=True)
        total -= sizes[folder]
