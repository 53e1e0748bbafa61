"""What the collections of a view are to hold, stored by one Spark query.

Law: ``stage_together(frames)`` stores the rows of every frame for its collection and commits
nothing, as `persist.spark.stage_frame` does for one; the errors in a frame go to a collection of
their own in the same pass. What the frames share is computed as often as Spark sees fit, and once
where it is cached.

The rows of all frames are one union: of each, one column that is a struct of its own collection's
columns and NULL for the others. A task takes them apart again, and makes further rows of some
(`noonmark.compute.incremental.output`). Tasks store their rows as they come:
Spark's own partitions become runs, and compaction makes one of them later. To partition by key
first would be a second pass over the query.

Where it runs: driver, except `StoreTask`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as f

from noonmark.compute.incremental.output import ViewOutput
from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.kernel.updates import errors_table
from noonmark.compute.plan.naming import errors_name
from noonmark.compute.spark.column import col, constant, named
from noonmark.compute.spark.frame import union
from noonmark.persist import task
from noonmark.persist.client import Client
from noonmark.persist.log.state import Collection
from noonmark.persist.part.part import Part
from noonmark.persist.part.run import DIFF, TIME
from noonmark.persist.read.slices import bare_collection
from noonmark.persist.spark import Staged, typed_errors
from noonmark.persist.spark.scan import checked, checked_beside

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TAG = "_to"
#: What a task says: of which collection, what it stored, what is too little to be stored; or that
#: it has compared the parts that it was given with their checksums.
_RESULT = "number int, parts array<binary>, rest binary, checked boolean"
_ARROW_RESULT = pa.schema(
    [
        ("number", pa.int32()),
        ("parts", pa.list_(pa.binary())),
        ("rest", pa.binary()),
        ("checked", pa.bool_()),
    ]
)
_PARTS = msgspec.msgpack.Decoder(Part)
#: Parts up to this size are compared with their checksums by one of the tasks that store; to have
#: tasks of their own for it would cost more. More than that is compared by a job beside.
CHECK_BYTES_MAX = 256 << 20


@dataclass(frozen=True)
class Contents:
    """Rows in the layout at one time, for a collection; and for another its errors, if any.

    Attributes:
        time: when they are there.
        shown: what is made of them, for the collections of the view ``shown_by`` and of its errors.
    """

    frame: DataFrame
    time: int
    name: str
    errors: str | None = None
    shown: ViewOutput | None = None
    shown_by: str = ""


def stage_together(
    client: Client, given: Sequence[Contents], checks: Sequence[Part] = ()
) -> dict[str, Staged]:
    """Run the frames and store their rows, without a commit.

    Args:
        client: the writer.
        given: what to store.
        checks: parts that the frames read, to be compared with their checksums.
    """
    client.require_writer()
    fed = [name for each in given for name in (each.name, each.errors) if name is not None]
    made = [n for each in given if each.shown for n in (each.shown_by, errors_name(each.shown_by))]
    names = [*fed, *(name for name in made if name not in fed)]
    collections = [bare_collection(client.state.collection(name)) for name in names]
    frames = _aligned([_tagged(each, fed, collections) for each in given], len(fed))
    shown = {
        names.index(each.name): ToShow(
            each.shown,
            names.index(each.shown_by),
            names.index(errors_name(each.shown_by)),
            (*client.state.collection(each.shown_by).schema.names, TIME, DIFF),
        )
        for each in given
        if each.shown is not None
    }
    place = task.TaskLocation(client.blob.url, client.config, client.parts.epoch)
    single = tuple({part.key: part for part in checks}.values())
    few_bytes = sum(part.bytes for part in single) <= CHECK_BYTES_MAX
    work = StoreTask(place, tuple(collections), shown, single if few_bytes else ())
    spark = frames[0].sparkSession
    with checked_beside(spark, client, () if few_bytes else single), typed_errors():
        # A task of Python costs tens of ms, however little there is to do: no more than cores.
        few = union(frames).coalesce(max(1, spark.sparkContext.defaultParallelism))
        stored = few.mapInArrow(work, _RESULT).toArrow().to_pylist()
        if work.checks and not any(row["checked"] for row in stored):
            checked(spark, client, work.checks, "nothing int").collect()  # there was no task at all
    staged = [_gathered([r for r in stored if r["number"] == at]) for at in range(len(names))]
    for each in shown.values():
        each.end(staged)
    return dict(zip(names, staged, strict=True))


def _gathered(rows: Sequence[dict[str, Any]]) -> Staged:
    runs = [tuple(map(_PARTS.decode, row["parts"])) for row in rows if row["parts"]]
    rest = [pa.ipc.open_stream(row["rest"]).read_all() for row in rows if row["rest"]]
    return Staged(tuple(runs), pa.concat_tables(rest) if rest else None)


def _tagged(
    given: Contents, names: Sequence[str], collections: Sequence[Collection]
) -> dict[int, tuple[DataFrame, Column, Column]]:
    """For each collection that the frame is for: the frame, which rows are its, and the struct."""
    own = names.index(given.name)
    stored = collections[own].schema.names
    values = [named(f"c{at}", name) for at, name in enumerate(stored)]
    at = constant(given.time, TIME)
    row = f.struct(*values, at, DIFF)
    fine = col(ERROR).isNull()
    made = {own: (given.frame, fine if given.errors is not None else f.lit(True), row)}
    if given.errors is not None:
        text = col(ERROR)
        failed = f.struct(
            f.substring(text, 1, 5).alias("sqlstate"),
            f.substring(text, 7, 1 << 20).alias("message"),
            at,
            DIFF,
        )
        made[names.index(given.errors)] = (given.frame, ~fine, failed)
    return made


def _aligned(
    tagged: Sequence[dict[int, tuple[DataFrame, Column, Column]]], count: int
) -> list[DataFrame]:
    """The frames with one layout: the number of the collection, and a struct for each."""
    types = {}
    for each in tagged if len(tagged) > 1 else ():
        for number, (frame, _, row) in each.items():
            types[number] = frame.select(row.alias("row")).schema[0].dataType
    made = []
    for each in tagged:
        frame = next(iter(each.values()))[0]
        to = f.lit(None).cast("int")
        columns = []
        for at in range(count):
            if at not in each:
                columns.append(f.lit(None).cast(types[at]).alias(f"s{at}"))
                continue
            _, when, row = each[at]
            to = f.when(when, f.lit(at)).otherwise(to)
            columns.append(f.when(when, row).alias(f"s{at}"))
        made.append(frame.select(to.alias(_TAG), *columns))
    return made


@dataclass(frozen=True)
class ToShow:
    """What is made of accumulators, and the numbers of the collections that it is for."""

    shown: ViewOutput
    view: int
    errors: int
    layout: tuple[str, ...]

    def end(self, staged: list[Staged]) -> None:
        """Runs on the driver: what the tasks left to be done over everything."""
        if self.shown.top is None:
            return
        given = staged[self.view].rest
        if given is None:
            return
        rows, failed = self.shown.last(given)
        staged[self.view] = Staged((), rows.rename_columns(self.layout))
        if failed:
            more = [t for t in (staged[self.errors].rest, errors_table(failed)) if t is not None]
            staged[self.errors] = replace(staged[self.errors], rest=pa.concat_tables(more))


@dataclass(frozen=True)
class StoreTask:
    """Runs on executors: stores the rows of one partition, each for its collection."""

    place: task.TaskLocation
    collections: tuple[Collection, ...]
    shown: Mapping[int, ToShow]
    checks: tuple[Part, ...] = ()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row per run, and one for what is too little to be one."""
        task.settle()
        context = TaskContext.get()
        if self.checks and context is not None and context.partitionId() == 0:
            task.verify(self.place, self.checks)
            yield _result({"checked": True})
        waiting: dict[int, list[pa.Table]] = {}
        rows_max = self.place.config.part_rows_max
        for batch in batches:
            for number, table in self._with_shown(_parted(batch)):
                tables = waiting.setdefault(number, [])
                tables.append(table)
                if sum(each.num_rows for each in tables) >= rows_max:
                    waiting[number] = []
                    yield from self._full(number, tables, waiting[number])
        for number, tables in waiting.items():
            yield from self._full(number, tables)

    def _full(
        self, number: int, tables: list[pa.Table], again: list[pa.Table] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Store what has come together; of the first rows, keep those, and send them in the end."""
        tops = [each.shown for each in self.shown.values() if each.view == number]
        if not tops or tops[0].top is None:
            yield from self._stored(number, tables)
            return
        fewer = tops[0].fewer(pa.concat_tables(tables))
        if again is None:
            yield _result({"number": number, "rest": _to_bytes(fewer)})
        else:
            again.append(fewer)

    def _with_shown(self, given: Iterable[tuple[int, pa.Table]]) -> Iterator[tuple[int, pa.Table]]:
        """The rows, and what is shown of them."""
        for number, table in given:
            yield number, table
            if number in self.shown:
                to = self.shown[number]
                rows, failed = to.shown.of(table)
                yield to.view, rows if to.shown.top else rows.rename_columns(to.layout)
                if failed:
                    yield to.errors, errors_table(failed)

    def _stored(self, number: int, tables: list[pa.Table]) -> Iterator[pa.RecordBatch]:
        written = task.write(self.place, self.collections[number], tables, one_run=True)
        rows: list[dict[str, Any]] = [
            {"number": number, "parts": [msgspec.msgpack.encode(part) for part in parts]}
            for parts in written.runs
        ]
        if written.rest is not None:
            rows.append({"number": number, "rest": _to_bytes(written.rest)})
        if rows:
            yield _result(*rows)


def _result(*rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), _ARROW_RESULT)


def _parted(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.Table]]:
    """The rows of a batch, by collection."""
    numbers = batch.column(0).to_numpy(zero_copy_only=False)
    for number in np.unique(numbers).tolist():
        own = batch.column(1 + number)
        if (numbers != number).any():
            own = own.take(pa.array(np.flatnonzero(numbers == number)))
        layout = [field.name for field in own.type]
        yield number, pa.table(own.flatten(), names=layout)


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
