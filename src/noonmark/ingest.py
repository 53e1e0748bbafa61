"""Ingestion: a source becomes definite collections on the timeline, tick by tick.

One tick, each step durable before the next depends on it:

    1  probe     ask the source for its upper
    2  mint      bind a fresh time to it: one append to the remap
    3  read      one Spark job reads the offsets from the last durable upper to the binding, gives
                 every record its time through the remap, and stores the updates as parts
    4  commit    one transaction appends to every output and to the errors, and seals them all at
                 the remap's upper: a transaction upstream is never split
    5  release   what is durable everywhere is released upstream, and the remap compacted behind it

All progress is in persist. After a crash at any point the next tick finds the uppers as they are:
a binding without data is read now, through the same binding, so every record gets the same time;
data that is durable is below the resumption frontier and not read again. A tick with nothing new
runs no Spark job: its uppers move in one commit of the control plane.

Where it runs: driver, except `IngestTask`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import pyarrow as pa

from noonmark.errors import SourceStalled
from noonmark.oracle.contract import TimestampOracle
from noonmark.persist import command as c
from noonmark.persist import task
from noonmark.persist.client import Client, ReadHandle
from noonmark.persist.part import Part
from noonmark.persist.run import DIFF, TIME
from noonmark.persist.spark_read import bare_collection
from noonmark.persist.state import Collection, Frontier, schema_to_wire
from noonmark.persist.write import MultiWriteHandle, WriteHandle, append_command
from noonmark.remap import begin, mint, offset_resumption
from noonmark.remap.binding import Remap
from noonmark.remap.lookup import TimeTable
from noonmark.remap.rows import REMAP_SCHEMA, from_rows, to_rows
from noonmark.rows.schema import Schema
from noonmark.source import spark as source_spark
from noonmark.source.contract import (
    ERRORS_SCHEMA,
    NO_OUTPUT,
    OFFSET,
    OUTPUT,
    PARTITION,
    REASON,
    START,
    Source,
    Split,
    batch_output,
    is_error,
)
from noonmark.tvc import Antichain, Partitioned, Update

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What a task says it has stored: the number of an output, parts, a small rest.
Row = dict[str, Any]

#: How much history every collection of a source keeps, unless it is told otherwise.
RETAIN_MS = 600_000


@dataclass(frozen=True)
class Tick:
    """What one tick did: for people, for metrics and for tests."""

    time: int
    rows: int
    splits: int
    jobs: int
    released: Antichain[Partitioned]


@dataclass(frozen=True)
class Target:
    """One collection that a tick writes."""

    name: str
    write: WriteHandle
    read: ReadHandle


class Engine(Protocol):
    """What runs the reading of splits."""

    def run(self, source: Source, splits: Sequence[Split], work: IngestTask) -> list[Row]:
        """The rows that `work` yields over the records of all splits, each read once."""


@dataclass(frozen=True)
class SparkEngine:
    """One Spark job per tick, one task per group of splits."""

    session: Callable[[], SparkSession]

    def run(self, source: Source, splits: Sequence[Split], work: IngestTask) -> list[Row]:
        """See `Engine.run`."""
        try:
            frame = source_spark.run(self.session(), source, splits, work, RESULT)
            rows: list[Row] = frame.toArrow().to_pylist()
        except Exception as error:
            waiting = source_spark.stalled(error)
            if waiting is None:
                raise
            raise SourceStalled(waiting.message) from error
        return rows


@dataclass(frozen=True)
class InPlaceEngine:
    """No Spark: every split is read in the calling process, one after another. The reference."""

    def run(self, source: Source, splits: Sequence[Split], work: IngestTask) -> list[Row]:
        """See `Engine.run`."""
        batches = work(source_spark.read_splits(source, splits))
        return [row for batch in batches for row in batch.to_pylist()]


@dataclass
class Ingestion:
    """The ingestion of one source. Not thread-safe: one caller ticks it.

    Attributes:
        client: the writer of the location.
        oracle: gives the times of bindings.
        source: what is read.
        name: its remap is ``<name>_remap``, its errors are ``<name>_errors``.
        engine: runs the reading; asked only when there is something to read.
    """

    client: Client
    oracle: TimestampOracle
    source: Source
    name: str
    engine: Engine
    retain_ms: int = RETAIN_MS
    outputs: tuple[Target, ...] = field(init=False)
    errors: Target = field(init=False)
    remap_target: Target = field(init=False)
    remap: Remap[Partitioned] = field(init=False)

    def __post_init__(self) -> None:
        wanted = [(o.name, o.schema, o.key) for o in self.source.outputs if o.schema is not None]
        wanted.append((f"{self.name}_errors", ERRORS_SCHEMA, ()))
        wanted.append((f"{self.name}_remap", REMAP_SCHEMA, ("partition",)))
        self._create(wanted)
        targets = [Target(name, *self.client.create_or_load(name)) for name, _, _ in wanted]
        *outputs, self.errors, self.remap_target = targets
        self.outputs = tuple(outputs)
        self.remap = self._load_remap()

    def _create(self, wanted: list[tuple[str, Schema, tuple[str, ...]]]) -> None:
        """Bring a new source's collections to life together, all from the same time on."""
        missing = [each for each in wanted if each[0] not in self.client.state.names]
        if missing:
            start = Antichain.of(self.oracle.write_ts())
            self.client.submit(
                tuple(
                    c.Create(name, key, schema_to_wire(schema), start)
                    for name, schema, key in missing
                )
            ).result()

    def _load_remap(self) -> Remap[Partitioned]:
        """The remap as it is stored; a new source begins with its first binding."""
        read = self.remap_target.read
        since, upper = read.since, read.upper
        start, end = since.only(), upper.only()
        assert start is not None, "a remap is not closed while its source lives"
        if since == upper:
            minted = begin(START, start)
            self._append_remap(minted.updates, upper, minted.remap.upper)
            return minted.remap
        contents = read.snapshot(start).result().counts()
        updates = [Update(row, start, count) for row, count in contents.items()]
        if end is None or end > start + 1:
            updates += self.client.runtime.submit(_changes(read, start)).result()
        return from_rows(updates, since, upper)

    def _append_remap(self, updates: Sequence[Any], lower: Frontier, upper: Frontier) -> None:
        write = self.remap_target.write
        write.compare_and_append(to_rows(updates), lower, upper).result()

    # -- one tick ---------------------------------------------------------------------------

    def tick(self) -> Tick:
        """Bring every collection of the source up to now.

        Raises:
            SourceStalled: upstream did not answer; nothing is lost, call again later.
        """
        probe = self.client.runtime.submit(
            self.source.latest(self.client.clock, self.remap.latest)
        ).result()
        time = self.oracle.write_ts()
        minted = mint(self.remap, probe, time)
        txn = self.client.atomic()
        lower, upper = self.remap.upper, minted.remap.upper
        txn.append(self.remap_target.write, to_rows(minted.updates), lower, upper)
        if not minted.updates and self.resumption_frontier() == lower:
            # Nothing new and nothing owed: the binding and all uppers move in one commit.
            self._append_outputs(txn, [], upper, time)
            splits, rows = 0, 0
            txn.commit().result()
            self.remap = minted.remap
        else:
            txn.commit().result()
            self.remap = minted.remap
            splits, rows = self.catch_up(time)
        self.oracle.apply_write(time)
        released = offset_resumption(self.remap, self.remap.upper)
        self.client.runtime.submit(self.source.release(released)).result()
        return Tick(time, rows, splits, 1 if splits else 0, released)

    def catch_up(self, time: int) -> tuple[int, int]:
        """Read what is bound and not durable yet, and seal everything at the remap's upper.

        Returns:
            How many splits were read, and how many updates they had.
        """
        lower = offset_resumption(self.remap, self.resumption_frontier())
        splits = self.source.plan(lower, self.remap.latest)
        written = self.engine.run(self.source, splits, self._task(lower)) if splits else []
        txn = self.client.atomic()
        rows = self._append_outputs(txn, written, self.remap.upper, time)
        txn.commit().result()
        return len(splits), rows

    def _append_outputs(
        self, txn: MultiWriteHandle, written: list[Row], upper: Frontier, time: int
    ) -> int:
        """Add to a transaction what was read, the seals, and how much history is kept."""
        rows = 0
        for number, target in [*enumerate(self.outputs), (NO_OUTPUT, self.errors)]:
            stored, rest = _of_output(written, number, target.write.collection)
            rows += sum(each.rows for each in stored) + (rest.num_rows if rest else 0)
            txn.append(target.write, rest, target.read.upper, upper, stored=stored)
        horizon = Antichain.of(max(0, time - self.retain_ms))
        for target in (*self.outputs, self.errors, self.remap_target):
            allowed = self.client.state.collection(target.write.collection).allowed
            if horizon.at_or_beyond(allowed) and horizon != allowed:
                txn.allow_compaction(target.write, horizon)
        return rows

    def resumption_frontier(self) -> Frontier:
        """The meet of the uppers of every collection of the source, the remap among them."""
        frontier = self.remap.upper
        for target in (*self.outputs, self.errors):
            frontier = frontier.meet(target.read.upper)
        return frontier

    def _task(self, lower: Antichain[Partitioned]) -> IngestTask:
        place = task.Place(self.client.blob.url, self.client.config, self.client.parts.epoch)
        state = self.client.state
        return IngestTask(
            place,
            TimeTable.of(self.remap, lower),
            tuple(bare_collection(state.collection(t.write.collection)) for t in self.outputs),
            bare_collection(state.collection(self.errors.write.collection)),
            tuple(output.name for output in self.source.outputs),
        )


async def _changes(read: ReadHandle, after: int) -> list[Any]:
    """Every update after a time, up to upper."""
    listen = await read._listen(after, hold=False)
    step = await listen.next()
    return step.updates if step is not None else []


RESULT = pa.schema(
    [("output", pa.int32()), ("parts", pa.list_(pa.binary())), ("rest", pa.binary())]
)
_PARTS = msgspec.msgpack.Decoder(Part)


def _of_output(
    written: list[Row], number: int, collection: int
) -> tuple[list[Any], pa.Table | None]:
    """What all tasks wrote for one output: runs that are stored, and a small rest."""
    mine = [row for row in written if row["output"] == number]
    runs = [tuple(map(_PARTS.decode, row["parts"])) for row in mine if row["parts"]]
    rest = [pa.ipc.open_stream(row["rest"]).read_all() for row in mine if row["rest"]]
    stored = [append_command(collection, parts) for parts in runs]
    return stored, pa.concat_tables(rest) if rest else None


@dataclass(frozen=True)
class IngestTask:
    """Runs on executors: records in, stored updates out, for all outputs of a source at once."""

    place: task.Place
    times: TimeTable
    outputs: tuple[Collection, ...]
    errors: Collection
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row per output that had anything."""
        gathered: dict[int, list[pa.Table]] = {}
        for batch in batches:
            if not batch.num_rows:
                continue
            timed = pa.Table.from_batches([self.times.assign(batch)])
            number = NO_OUTPUT if is_error(batch) else batch_output(batch)
            made = self._error_rows(timed) if number == NO_OUTPUT else _data_rows(timed)
            gathered.setdefault(number, []).append(made)
        rows = []
        for number, tables in gathered.items():
            collection = self.errors if number == NO_OUTPUT else self.outputs[number]
            rows += _results(number, task.write(self.place, collection, tables, one_run=False))
        if rows:
            yield pa.RecordBatch.from_pylist(rows, RESULT)

    def _error_rows(self, timed: pa.Table) -> pa.Table:
        names = [
            self.names[number] if number >= 0 else None
            for number in timed.column(OUTPUT).to_pylist()
        ]
        return pa.table(
            {
                "output": pa.array(names, pa.string()),
                "partition": timed.column(PARTITION).cast(pa.string()),
                "offset": timed.column(OFFSET),
                "key": timed.column("key"),
                "value": timed.column("value"),
                "reason": timed.column(REASON),
                TIME: timed.column(TIME),
                DIFF: pa.array([1] * timed.num_rows, pa.int64()),
            }
        )


def _data_rows(timed: pa.Table) -> pa.Table:
    return timed.drop_columns([PARTITION, OFFSET, OUTPUT])


def _results(number: int, written: task.Written) -> list[Row]:
    rows: list[Row] = [
        {"output": number, "parts": [msgspec.msgpack.encode(part) for part in parts]}
        for parts in written.runs
    ]
    if written.rest is not None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, written.rest.schema) as writer:
            writer.write_table(written.rest)
        rows.append({"output": number, "rest": bytes(sink.getvalue())})
    return rows
