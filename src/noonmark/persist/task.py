"""What executors do with parts: verify, read, write and merge them.

A task opens the blob store by URL and keeps it open for as long as its Python process lives. It
takes values that pickle and gives tables or `Part`s back; it never commits. A part that a task
wrote exists for readers only when the driver commits it, and its name is fresh at every attempt:
a task that is killed, retried or run twice leaves an orphan, never half a batch or two.

Where it runs: executors. No pyspark here: `noonmark.persist.spark*` hands these to Spark.
"""

from __future__ import annotations

import gc
import os
import resource
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import xxhash

from noonmark.clock import SYSTEM
from noonmark.errors import IntegrityError
from noonmark.persist.codec import RowCodec, update_table
from noonmark.persist.config import Config
from noonmark.persist.impl.open import open_blob
from noonmark.persist.location import Blob
from noonmark.persist.log.state import Batch, Collection
from noonmark.persist.part import run
from noonmark.persist.part.part import Part, corrupt
from noonmark.persist.part.ranges import KeyRange
from noonmark.persist.part.store import PartStore
from noonmark.persist.read.plan import Plan
from noonmark.persist.read.updates import PlanReader
from noonmark.persist.retry import Retries
from noonmark.persist.runtime import Runtime
from noonmark.persist.upkeep import compact

#: The variable that says what a Python worker of Spark may use of memory, in MB.
MEMORY_VARIABLE = "NOONMARK_SPARK_PYTHON_MEMORY_MB"
#: A whole object is hashed in pieces of this size, so that memory stays small.
_VERIFY_BYTES = 8 << 20


@dataclass(frozen=True)
class TaskLocation:
    """Where a task finds parts, and under which epoch it writes them."""

    url: str
    config: Config
    epoch: int = 0

    def open(self) -> PartStore:
        """The parts of the location, on this process's own runtime."""
        runtime, blob = _opened.open(self.url)
        store = PartStore(blob, runtime, self.config, Retries(runtime.clock, self.config))
        store.epoch = self.epoch
        return store


class _Opened:
    """The locations that this process has opened, on one runtime; the oldest give way."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, also in a process that was forked: threads do not follow it."""
        self._lock = threading.Lock()
        self._runtime: Runtime | None = None
        self._blobs: dict[str, Blob] = {}

    def open(self, url: str) -> tuple[Runtime, Blob]:
        with self._lock:
            runtime = self._runtime = self._runtime or Runtime.start(SYSTEM)
            blob = self._blobs.pop(url) if url in self._blobs else open_blob(url)
            self._blobs[url] = blob
            while len(self._blobs) > _KEPT:
                oldest = self._blobs.pop(next(iter(self._blobs)))
                runtime.submit(oldest.close()).result()
            return runtime, blob


#: So many locations are kept open by one process.
_KEPT = 16
_opened = _Opened()
os.register_at_fork(after_in_child=_opened.forget)


def read(place: TaskLocation, plan: Plan) -> Iterator[pa.Table]:
    """The tables of a plan, or of the key range that it is confined to."""
    store = place.open()
    tables = PlanReader(store.runtime, store, place.config).tables(plan)

    async def following() -> pa.Table | None:
        return await anext(tables, None)

    while (table := store.runtime.submit(following()).result()) is not None:
        yield table


def repeated(table: pa.Table, name: str) -> pa.Table:
    """Plain rows: each as often as its `_diff` says, and without it."""
    diffs = table.column(run.DIFF).to_numpy()
    rows = table.drop_columns([run.DIFF])
    if len(diffs) == 0 or (diffs == 1).all():
        return rows
    if (diffs < 0).any():
        raise IntegrityError(
            f'"{name}" has rows with negative multiplicity',
            detail="More copies of a row were retracted than written.",
            hint="Read its changes, or the multiplicities with `ReadHandle.snapshot`.",
            collection=name,
        )
    return rows.take(pa.array(np.repeat(np.arange(len(diffs)), diffs)))


def settle() -> None:
    """Called when a task begins: what its worker has by now is not garbage.

    A worker looks for garbage after every task, among everything that it ever imported: that takes
    longer than a small task does, and the next task waits for it.

    From then on it may use as much memory as `MEMORY_VARIABLE` says, in MB: what needs more fails.
    """
    gc.freeze()
    memory_mb = int(os.environ.get(MEMORY_VARIABLE, "0"))
    if memory_mb:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (memory_mb << 20, hard))


def verify(place: TaskLocation, parts: Iterable[Part]) -> None:
    """Compare whole objects with their checksums; `Corrupt` or `MissingObject` otherwise."""
    store = place.open()
    for part in parts:
        store.runtime.submit(_verify(store, part)).result()


async def _verify(store: PartStore, part: Part) -> None:
    digest = xxhash.xxh3_64()
    for start in range(0, part.bytes + 1, _VERIFY_BYTES):
        data = await store.fetch(part, start, _VERIFY_BYTES)
        await store.runtime.offload(digest.update, data)
    if digest.intdigest() != part.checksum:
        raise corrupt(part, f"Its bytes are not the {part.bytes} that were written.")


@dataclass(frozen=True)
class Written:
    """What one task made of its rows: runs that are stored, and what was too little to store."""

    runs: tuple[tuple[Part, ...], ...] = ()
    rest: pa.Table | None = None


def write(
    place: TaskLocation, collection: Collection, tables: Iterable[pa.Table], *, one_run: bool
) -> Written:
    """Sort updates and store them as runs.

    Args:
        place: with the epoch of the writer.
        collection: without its batches.
        tables: data columns, `_time` and `_diff`; conformed and checked here.
        one_run: store all rows as one run, in the memory of this process; otherwise runs of
            `Config.part_rows_max` rows each.
    """
    store, schema = place.open(), collection.schema
    codec, schema_id = RowCodec(schema), len(collection.schemas) - 1
    rows_max = place.config.part_rows_max
    runs: list[tuple[Part, ...]] = []
    gathered: list[pa.Table] = []
    rows = 0

    def store_run() -> None:
        table = run.sort(pa.concat_tables(gathered), collection.key)
        gathered.clear()
        table = run.consolidate(table, sorted_by=collection.key)
        waiting = [
            store.runtime.submit(
                store.write_sorted(
                    collection.id,
                    collection.key,
                    schema_id,
                    table.slice(start, rows_max),
                    consolidated=True,
                )
            )
            for start in range(0, table.num_rows, rows_max)
        ]
        if waiting:
            runs.append(tuple(part.result() for part in waiting))

    for table in tables:
        gathered.append(update_table(table, codec, schema))
        rows += table.num_rows
        if rows >= rows_max and not one_run:
            store_run()
            rows = 0
    if not rows:
        return Written(tuple(runs))
    if sum(table.nbytes for table in gathered) <= place.config.inline_bytes_max:
        return Written(tuple(runs), pa.concat_tables(gathered))
    store_run()
    return Written(tuple(runs))


def rewrite(
    place: TaskLocation, collection: Collection, batches: tuple[Batch, ...], within: KeyRange
) -> tuple[Part, ...]:
    """The parts of a compacted key range."""
    store = place.open()
    work = compact.rewrite(collection, batches, store, place.config, within)
    return store.runtime.submit(work).result().parts
