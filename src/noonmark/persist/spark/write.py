"""Writing with Spark: a DataFrame of updates, stored by executors, committed once by the driver.

Each task sorts its rows and stores them as parts, or hands them back when they are few; the driver
makes one commit of everything. What a task stored is nothing until then (`noonmark.persist.task`).

Two ways, by size. A small DataFrame is stored as it is partitioned: every task's rows are a run of
their own. A large one is partitioned by key range first, so that all tasks together write one run
whose parts do not overlap: a read by key then opens one part, and there is nothing to compact. That
costs Spark's shuffle, and a pass over the DataFrame to find the ranges.

Where it runs: driver, except for the callables that say otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as f

from noonmark.persist import task
from noonmark.persist.client import Client
from noonmark.persist.log.command import Append
from noonmark.persist.log.state import Collection, Frontier, State
from noonmark.persist.part.part import Part
from noonmark.persist.read.slices import bare_collection
from noonmark.persist.spark.errors import typed_errors
from noonmark.persist.write import WriteHandle, append_command
from noonmark.rows import types as t

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Beyond this estimate of its size a DataFrame is partitioned by key range, into pieces like it.
RANGE_BYTES = 64 << 20
RANGES_MAX = 256

_RESULT = "partition int, parts array<binary>, rest binary"
_ARROW_RESULT = pa.schema(
    [("partition", pa.int32()), ("parts", pa.list_(pa.binary())), ("rest", pa.binary())]
)
_PARTS = msgspec.msgpack.Decoder(Part)


@dataclass(frozen=True)
class Staged:
    """Updates that are stored but not committed: runs, and a small rest in memory."""

    runs: tuple[tuple[Part, ...], ...]
    rest: pa.Table | None

    @property
    def rows(self) -> int:
        """How many updates there are."""
        stored = sum(part.rows for parts in self.runs for part in parts)
        return stored + (self.rest.num_rows if self.rest is not None else 0)

    def commands(self, collection: int) -> list[Append]:
        """What adds the runs to a collection."""
        return [append_command(collection, parts) for parts in self.runs]


def write_frame(
    frame: DataFrame,
    client: Client,
    handle: WriteHandle,
    lower: int | Frontier,
    upper: int | Frontier,
    *,
    ranges: int | None = None,
) -> Future[State]:
    """Write a DataFrame of updates and seal, from exactly `lower` to `upper`.

    Runs the DataFrame before it returns; the future is that of the commit.

    Args:
        frame: the data columns of the collection, `_time` and `_diff`.
        client: the writer.
        handle: the collection.
        lower: the upper that the collection must have.
        upper: the upper that it will have.
        ranges: into how many key ranges to partition; 0 for not at all; None to decide by size.
    """
    staged = stage_frame(frame, client, handle, ranges=ranges)
    stored = staged.commands(handle.collection)
    return client.atomic().append(handle, staged.rest, lower, upper, stored=stored).commit()


def stage_frame(
    frame: DataFrame, client: Client, handle: WriteHandle, *, ranges: int | None = None
) -> Staged:
    """Run a DataFrame of updates and store its rows, without a commit."""
    client.require_writer()
    collection = client.state.collection(handle.collection)
    if client.blob.url.startswith("memory:"):
        with typed_errors():
            return Staged((), frame.toArrow())
    if ranges is None:
        ranges = _ranges(frame)
    first = (collection.key or collection.schema.names)[0]
    one_run = ranges > 1 and not _is_nested(collection.schema[first].type)
    if one_run:
        escaped = first.replace("`", "``")
        frame = frame.repartitionByRange(ranges, f.col(f"`{escaped}`").asc_nulls_last())
    place = task.TaskLocation(client.blob.url, client.config, client.parts.epoch)
    work = WriteTask(place, bare_collection(collection), one_run)
    with typed_errors():
        result = frame.mapInArrow(work, _RESULT).toArrow()
    return _gather(result, one_run)


def _gather(result: pa.Table, one_run: bool) -> Staged:
    """What the tasks say they have written; ranges are in the order of their partitions."""
    rows = sorted(result.to_pylist(), key=lambda row: row["partition"])
    runs = [tuple(map(_PARTS.decode, row["parts"])) for row in rows if row["parts"]]
    if one_run and runs:
        runs = [tuple(part for parts in runs for part in parts)]
    rest = [pa.ipc.open_stream(row["rest"]).read_all() for row in rows if row["rest"]]
    return Staged(tuple(runs), pa.concat_tables(rest) if rest else None)


def _ranges(frame: DataFrame) -> int:
    """How many ranges, by what Spark thinks the DataFrame's size is; 0 when it is small."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    size = int(plan.stats().sizeInBytes())
    if size <= RANGE_BYTES:
        return 0
    cores = frame.sparkSession.sparkContext.defaultParallelism
    return min(max(size // RANGE_BYTES, cores), RANGES_MAX)


def _is_nested(kind: t.SqlType) -> bool:
    """Whether our order of these values is not Spark's."""
    return isinstance(kind, t.Array | t.Record | t.Interval)


@dataclass(frozen=True)
class WriteTask:
    """Runs on executors: stores the rows of one partition."""

    place: task.TaskLocation
    collection: Collection
    one_run: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row per run, and one for the rest."""
        tables = (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows)
        written = task.write(self.place, self.collection, tables, one_run=self.one_run)
        rows: list[dict[str, Any]] = [
            {"parts": [msgspec.msgpack.encode(part) for part in parts]} for parts in written.runs
        ]
        if written.rest is not None:
            rows.append({"rest": _to_bytes(written.rest)})
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        if rows:
            yield pa.RecordBatch.from_pylist(
                [{"partition": partition, **row} for row in rows], _ARROW_RESULT
            )


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
