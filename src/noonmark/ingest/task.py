"""What executors do in a tick: records in, stored updates out.

    records -> decoded (formats) -> timed (remap) -> updates (envelope) -> parts, or a small rest

for all outputs of a source at once, batch by batch: a task holds at most `Config.part_rows_max`
rows of an output before it stores them as a run. It commits nothing: what it has stored is named in
the rows that it yields (`RESULT`), and exists once the driver commits it. The last row says how
many records it read, and how many bytes they took.

UPSERT needs all records of a key in one place, and what the key had before. With one task that is
the task itself. With several, `IngestTask` scatters such records by a hash of their key, and
`GatherTask` behind a shuffle takes each bucket whole. Either way the order of a key's records is
(time, partition, offset, place), so the outcome does not depend on how the splits were shared out.
What a key had before is looked up in the collection as of the time before the tick: only the
pages that can hold a touched key are read.

A truncation ends a *generation* of its feed: the updates before and after it are stored apart, and
those after it find nothing there. The task says when it was; `ingest_truncate` retracts, at that
time, what the collection held and the generation that ended. What came at that very time was never
to be seen, and is not stored as far as the task still has it.

Where it runs: executors. No pyspark here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from noonmark.ingest.feed import Feed
from noonmark.persist import task
from noonmark.persist.log.state import Collection
from noonmark.persist.part.run import TIME
from noonmark.persist.read.plan import Query, plan_read
from noonmark.remap.lookup import TimeTable
from noonmark.rows.arrow import from_array
from noonmark.rows.identity import hashable
from noonmark.source.contract import (
    DIFF,
    ENDS,
    NO_OUTPUT,
    OFFSET,
    OUTPUT,
    PARTITION,
    REASON,
    batch_output,
    is_error,
    is_truncation,
)
from noonmark.source.envelope import Updates, source_errors
from noonmark.source.format.decode import KEYED

Buckets = npt.NDArray[np.int64]

#: What a task says it has stored, hands on, or saw emptied: the place of a feed (or `NO_OUTPUT`:
#: errors, those of the feed `errors_of`).
Row = dict[str, Any]

RESULT = pa.schema(
    [
        ("feed", pa.int32()),
        ("errors_of", pa.int32()),
        ("generation", pa.int32()),
        ("truncated_at", pa.int64()),
        ("bucket", pa.int32()),
        ("place", pa.int32()),
        ("parts", pa.list_(pa.binary())),
        ("rest", pa.binary()),
        ("records", pa.binary()),
        ("read_rows", pa.int64()),
        ("read_bytes", pa.int64()),
        ("ended", pa.list_(pa.struct([("time", pa.int64()), ("reason", pa.string())]))),
    ]
)
#: Where rows go that are no records of a bucket: one place, whichever task yields them.
NO_BUCKET = -1

_RUN_BYTES_MAX = 256 << 20
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Destination:
    """A feed and its collection.

    Attributes:
        feed: what to do with its records.
        collection: of an UPSERT with its batches, to look keys up; of others without.
        as_of: the time before the tick.
    """

    feed: Feed
    collection: Collection
    as_of: int


@dataclass(frozen=True)
class IngestTask:
    """Runs on executors: all records of some splits. `buckets` is 0 when it is the only task."""

    place: task.TaskLocation
    times: TimeTable
    destinations: tuple[Destination, ...]
    errors: Collection
    errors_as_of: int
    offset_unit: int = 1
    buckets: int = 0

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of `RESULT`."""
        reading = _Reading(self)
        read_rows = read_bytes = 0
        for batch in batches:
            if batch.num_rows:
                read_rows, read_bytes = read_rows + batch.num_rows, read_bytes + batch.nbytes
                yield from reading.take(batch)
        yield from reading.finish()
        if read_rows:
            row = {"feed": NO_OUTPUT, "bucket": NO_BUCKET}
            row |= {"read_rows": read_rows, "read_bytes": read_bytes}
            yield pa.RecordBatch.from_pylist([row], RESULT)

    def timed(self, batch: pa.RecordBatch) -> pa.Table:
        """Records with their times."""
        return pa.Table.from_batches([self.times.assign(batch)])


class _Reading:
    """One pass of a task over its records."""

    def __init__(self, work: IngestTask) -> None:
        self._work = work
        self._by_output = {each.feed.output: at for at, each in enumerate(work.destinations)}
        self._sinks = Sinks(work)
        self._gathered = Gathered(work)
        self._generations: Counter[int] = Counter()

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Records of one output, errors, or a truncation."""
        work = self._work
        at = self._by_output.get(batch_output(batch), NO_OUTPUT)
        if is_error(batch):
            name = None if at == NO_OUTPUT else work.destinations[at].feed.collection
            timed = work.timed(batch)
            yield from _ended(at, timed)
            self._sinks.add(Stored(NO_OUTPUT), source_errors(timed, name, work.offset_unit))
        elif at == NO_OUTPUT:
            return  # of a table that nobody asked for
        elif is_truncation(batch):
            yield from self._truncate(at, work.timed(batch))
        else:
            yield from self._take(at, batch)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What is left."""
        for at in sorted(self._gathered.tables):
            yield from self._apply(at)
        yield from self._sinks.finish()

    def _take(self, at: int, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        feed, generation = self._work.destinations[at].feed, self._generations[at]
        if DIFF in batch.schema.names:
            timed = self._work.timed(batch).drop_columns([PARTITION, OFFSET, OUTPUT])
            self._sinks.add(Stored(at, at, generation), timed)
            return
        assert feed.envelope is not None, "raw records have an envelope"
        records = self._work.timed(feed.decode(batch))
        if feed.is_upsert:
            yield from self._gathered.add(at, records, generation)
        else:
            self._sinks.add_updates(at, generation, feed.envelope.apply(records))

    def _apply(self, at: int) -> Iterator[pa.RecordBatch]:
        """Hand on the records of an UPSERT that were gathered, or make updates of them."""
        generation = self._generations[at]
        if self._work.buckets:
            yield from self._gathered.scatter(at, generation)
        else:
            records = pa.concat_tables(self._gathered.tables.pop(at))
            self._sinks.add_updates(at, generation, upsert(self._work, at, records, generation))

    def _truncate(self, at: int, timed: pa.Table) -> Iterator[pa.RecordBatch]:
        if not timed.num_rows:
            return  # it is not bound yet
        time = timed.column(TIME)[0].as_py()
        if at in self._gathered.tables:
            self._gathered.forget(at, time)
            yield from self._apply(at)
        generation = self._generations[at]
        self._sinks.forget(Stored(at, at, generation), time)
        row = {"feed": at, "bucket": NO_BUCKET, "generation": generation, "truncated_at": time}
        yield pa.RecordBatch.from_pylist([row], RESULT)
        self._generations[at] += 1


@dataclass
class Gathered:
    """Records of UPSERTs: kept to the end by the only task, else handed on when they are many."""

    work: IngestTask
    tables: dict[int, list[pa.Table]] = field(default_factory=dict)
    _places: int = 0

    def add(self, at: int, records: pa.Table, generation: int) -> Iterator[pa.RecordBatch]:
        """Take records; rows of `RESULT` when there are enough to hand on."""
        tables = self.tables.setdefault(at, [])
        tables.append(records)
        rows_max = self.work.place.config.part_rows_max
        if self.work.buckets and sum(table.num_rows for table in tables) >= rows_max:
            yield from self.scatter(at, generation)

    def forget(self, at: int, time: int) -> None:
        """Leave out what has a key and came at a time at which it was gone again."""
        records = pa.concat_tables(self.tables[at])
        gone = pc.and_(records.column(KEYED), pc.equal(records.column(TIME), time))
        self.tables[at] = [records.filter(pc.invert(gone))]

    def scatter(self, at: int, generation: int) -> Iterator[pa.RecordBatch]:
        """The records of each bucket as one row; `place` is the order in which they came."""
        records = pa.concat_tables(self.tables.pop(at))
        hashed = bucket_of(records, self.work.destinations[at].feed.key, self.work.buckets)
        for bucket in np.unique(hashed).tolist():
            mine = packed(records.filter(pa.array(hashed == bucket)))
            row: Row = {"feed": at, "bucket": bucket, "place": self._places, "records": mine}
            row["generation"] = generation
            yield pa.RecordBatch.from_pylist([row], RESULT)
        self._places += 1


@dataclass(frozen=True)
class GatherTask:
    """Runs on executors, behind the shuffle: whole buckets, and what earlier tasks have stored."""

    work: IngestTask

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of `RESULT` without records."""
        sinks = Sinks(self.work)
        gathered: dict[tuple[int, int, int], list[tuple[int, pa.Table]]] = {}
        for batch in batches:
            stored = pc.equal(batch.column("bucket"), NO_BUCKET)
            yield batch.filter(stored)
            for row in batch.filter(pc.invert(stored)).to_pylist():
                whose = (row["feed"], row["generation"], row["bucket"])
                tables = gathered.setdefault(whose, [])
                tables.append((row["place"], unpacked(row["records"])))
        for whose in sorted(gathered):
            at, generation, _ = whose
            # Of one task, in the order in which it read; of others, their points tell.
            tables = sorted(gathered.pop(whose), key=lambda each: each[0])
            records = pa.concat_tables([table for _, table in tables])
            sinks.add_updates(at, generation, upsert(self.work, at, records, generation))
        yield from sinks.finish()


class Stored(NamedTuple):
    """What is stored together: updates of one feed, or errors (`NO_OUTPUT`) of one's records."""

    feed: int
    errors_of: int = NO_OUTPUT
    generation: int = 0


@dataclass
class Sinks:
    """Where updates gather until there are enough of them to store."""

    work: IngestTask
    _tables: dict[Stored, list[pa.Table]] = field(default_factory=dict)
    _sizes: dict[Stored, tuple[int, int]] = field(default_factory=dict)
    _rows: list[Row] = field(default_factory=list)

    def add_updates(self, at: int, generation: int, updates: Updates) -> None:
        """Rows and errors of one feed."""
        self.add(Stored(at, at, generation), updates.rows)
        self.add(Stored(NO_OUTPUT, at, generation), updates.errors)

    def add(self, whose: Stored, table: pa.Table) -> None:
        """Updates of one feed, or errors."""
        if not table.num_rows:
            return
        self._tables.setdefault(whose, []).append(table)
        rows, size = self._sizes.get(whose, (0, 0))
        self._sizes[whose] = rows, size = rows + table.num_rows, size + table.nbytes
        if rows >= self.work.place.config.part_rows_max or size >= _RUN_BYTES_MAX:
            self._store(whose)

    def forget(self, whose: Stored, time: int) -> None:
        """Leave out what came at a time at which it was gone again."""
        tables = self._tables.pop(whose, [])
        self._sizes.pop(whose, None)
        for table in tables:
            self.add(whose, table.filter(pc.not_equal(table.column(TIME), time)))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """All that was stored, as rows of `RESULT`."""
        for whose in sorted(self._tables):
            self._store(whose)
        if self._rows:
            yield pa.RecordBatch.from_pylist(self._rows, RESULT)

    def _store(self, whose: Stored) -> None:
        tables = self._tables.pop(whose)
        self._sizes.pop(whose)
        work = self.work
        is_errors = whose.feed == NO_OUTPUT
        collection = work.errors if is_errors else work.destinations[whose.feed].collection
        written = task.write(work.place, collection, tables, one_run=True)
        self._rows += stored_rows(whose, written)


def stored_rows(whose: Stored, written: task.Written) -> list[Row]:
    """What was written, as rows of `RESULT`."""
    named: Row = {**whose._asdict(), "bucket": NO_BUCKET}
    rows = [
        {**named, "parts": [msgspec.msgpack.encode(part) for part in parts]}
        for parts in written.runs
    ]
    return rows if written.rest is None else [*rows, {**named, "rest": packed(written.rest)}]


def _ended(at: int, errors: pa.Table) -> Iterator[pa.RecordBatch]:
    """What ends an output, and when: the first of these errors that does."""
    ends = errors.filter(errors.column(ENDS))
    if ends.num_rows:
        first = ends.sort_by(TIME).slice(0, 1)
        told = {"time": first.column(TIME)[0].as_py(), "reason": first.column(REASON)[0].as_py()}
        row = {"feed": at, "bucket": NO_BUCKET, "ended": [told]}
        yield pa.RecordBatch.from_pylist([row], RESULT)


def upsert(work: IngestTask, at: int, records: pa.Table, generation: int) -> Updates:
    """The updates of records that are all there are of their keys, in one generation."""
    destination = work.destinations[at]
    envelope, collection = destination.feed.envelope, destination.collection
    assert envelope is not None
    keyed = records.filter(records.column(KEYED))
    rows, errors = envelope.nothing()
    is_first = generation == 0
    if is_first and collection.batches and keyed.num_rows:
        rows = _held(work, collection, destination.as_of, _keys(destination.feed, keyed), rows)
    if is_first and work.errors.batches and keyed.num_rows:
        texts = list(dict.fromkeys(envelope.key_texts(keyed)))
        errors = _held(work, work.errors, work.errors_as_of, texts, errors)
    return envelope.apply(records, Updates(rows, errors))


def _keys(feed: Feed, keyed: pa.Table) -> list[Any]:
    """The distinct keys of records, as the values that a look-up takes."""
    columns = [from_array(keyed.column(name), feed.schema[name].type) for name in feed.key]
    return list({hashable(key): key for key in zip(*columns, strict=True)}.values())


def _held(
    work: IngestTask, collection: Collection, as_of: int, keys: list[Any], empty: pa.Table
) -> pa.Table:
    """The contents of a collection for some keys, in the schema of `empty`."""
    plan = plan_read(0, collection, Query(as_of, keys=keys, despite_error=True))
    tables = [empty]
    for table in task.read(work.place, plan):
        timed = table.append_column(TIME, pa.array(np.full(table.num_rows, as_of)))
        columns = [timed.column(name) for name in empty.column_names]
        tables.append(pa.Table.from_arrays(columns, schema=empty.schema))
    return pa.concat_tables(tables)


def bucket_of(records: pa.Table, key: tuple[str, ...], buckets: int) -> Buckets:
    """A bucket for each record: the same for equal keys, and 0 for those without one.

    Only whole numbers, texts and bytes are hashed. A column of another type is left out: then
    different keys meet in one bucket, which is slower and not wrong.
    """
    hashed = np.zeros(records.num_rows, np.uint64)
    for name in key:
        column = records.column(name)
        if pa.types.is_integer(column.type):
            hashed = hashed * _MULTIPLIER + pc.fill_null(column, 0).to_numpy().astype(np.uint64)
        elif column.type in (pa.string(), pa.binary()):
            digests = [
                0 if value is None else xxhash.xxh3_64_intdigest(value)
                for value in column.cast(pa.binary()).to_pylist()
            ]
            hashed = hashed * _MULTIPLIER + np.array(digests, np.uint64)
    hashed = (hashed * _MULTIPLIER) >> np.uint64(32)
    there = records.column(KEYED).to_numpy()
    return np.where(there, hashed % np.uint64(buckets), 0).astype(np.int64)


def packed(table: pa.Table) -> bytes:
    """A table as a row of `RESULT` carries it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpacked(data: bytes) -> pa.Table:
    """The table that a row of `RESULT` carries."""
    return pa.ipc.open_stream(data).read_all()
