"""Reading with Spark: a collection at a time, and its changes, as DataFrames.

The driver plans, by the statistics of the state; executors read. Two ways, by what the plan holds:

    nothing retracted    Spark's own Parquet reader scans the parts; beside it, in the same job,
                         each part is read once more and compared with its checksum
    something retracted  one task per key range merges the runs in that range, as the in-process
                         reader does: the same kernel, hence the same idea of when rows are the same
                         (Spark's GROUP BY takes -0.0 for 0.0)

Why the checksum in the first way is a pass of its own: Spark verifies the bodies of pages (their
CRC), but not their headers nor the footer, so that a flipped bit there gave other rows. The pass is
part of the DataFrame: whoever runs it, however late, runs the check, and the job fails with
`Corrupt`. It costs one sequential read: 4 % of a scan on local files.

A DataFrame is lazy: the parts that it names are kept from garbage collection for as long as the
object that was returned lives, in the process of the writer; elsewhere for
`Config.garbage_grace_ms`. A part that is gone gives `MissingObject`: make the frame again.

A store that only this process can see (``memory:``) is read here, and the rows travel in the plan.

Where it runs: driver, except for the callables that say otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec
import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StructField, StructType

from noonmark.errors import NotYetComplete, UsageError
from noonmark.persist import run, task
from noonmark.persist.client import Client, Options, open_location
from noonmark.persist.part import Part
from noonmark.persist.plan import Plan, Query, Range
from noonmark.persist.ranges import KeyRange, cut
from noonmark.persist.read import inline_table, narrow, only_adds, shape
from noonmark.persist.refusals import format_frontier
from noonmark.persist.spark_errors import typed_errors
from noonmark.persist.state import Collection
from noonmark.rows import types as t
from noonmark.rows.spark import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: Without these Spark shifts old dates to the Julian calendar; with the last it checks page bodies.
_SCAN_OPTIONS = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "mergeSchema": "false",
    "parquet.page.verify-checksum.enabled": "true",
}
#: Characters that Spark takes for a pattern in a path.
_PATTERN = frozenset("{}[]*?\\,")
_LITERAL_TYPES = (t.Boolean, t.SmallInt, t.Integer, t.BigInt, t.Real, t.Double, t.Text, t.Varchar)


def snapshot_frame(
    spark: SparkSession,
    location: Client | str | os.PathLike[str],
    name: str,
    as_of: int,
    *,
    columns: Iterable[str] | None = None,
    where: Mapping[str, Range] | None = None,
) -> DataFrame:
    """The contents of a collection at a time: each row as often as it is there.

    Args:
        spark: the session to read with.
        location: a client, or the URL of a location.
        name: of the collection.
        as_of: the time; it must be complete.
        columns: the columns to return; all by default.
        where: inclusive ranges by column, None for an open end.

    Raises:
        NotYetComplete: the time is still open.
        BeforeSince: its history is gone.
    """
    query = Query(
        as_of, columns=None if columns is None else tuple(columns), where=dict(where or {})
    )
    with opened(location) as client:
        return frame_of(spark, client, plan_at(client, name, query))


def changes_frame(
    spark: SparkSession,
    location: Client | str | os.PathLike[str],
    name: str,
    lower: int,
    upper: int,
) -> DataFrame:
    """The updates of a collection at times ``lower <= t < upper``, no two of one row and time.

    Raises:
        NotYetComplete: some of the times are still open.
        BeforeSince: the times before `lower` are not told apart from it any more.
    """
    with opened(location) as client:
        return frame_of(spark, client, plan_at(client, name, changes_query(lower, upper)))


def changes_query(lower: int, upper: int) -> Query:
    """The query for the updates over ``[lower, upper)``."""
    if not 0 <= lower <= upper:
        raise UsageError(f"[{lower}, {upper}) is not a range of times", lower=lower, upper=upper)
    return Query(as_of=upper - 1, after=lower - 1)


@contextmanager
def opened(
    location: Client | str | os.PathLike[str], consensus: str | None = None
) -> Iterator[Client]:
    """The client, or one for the length of the block that writes nothing whatsoever."""
    if isinstance(location, Client):
        yield location
        return
    client = open_location(location, consensus=consensus, options=Options(mode="independent"))
    try:
        yield client
    finally:
        client.stop()


def plan_at(client: Client, name: str, query: Query) -> Plan:
    """Plan a read of a time that is complete by now."""
    found = client.state.collection(name)
    if query.as_of >= 0 and found.upper.less_equal(query.as_of):
        raise NotYetComplete(
            f'"{name}" is not complete at {query.as_of}',
            detail=f"Its upper is {format_frontier(found.upper)}.",
            hint="Read at an earlier time, or wait.",
            as_of=query.as_of,
            upper=found.upper,
        )
    return client.reader.plan(found.id, query)


def frame_of(spark: SparkSession, client: Client, plan: Plan) -> DataFrame:
    """The rows of a plan: plain rows, or updates when the plan is of changes."""
    if client.blob.url.startswith("memory:"):
        tables = list(client.iterate(client.reader.contents(plan)))
        frame = _local_frame(spark, plan, [_finish(table, plan) for table in tables])
    elif only_adds(plan, inline := _inline(plan)) and _scannable(client, plan):
        frame = _scan(spark, client, plan, inline)
    else:
        frame = _merge(spark, client, plan)
    vars(frame)["_noonmark_plan"] = plan  # kept, and its parts with it, as long as the frame
    return frame


def frame_schema(collection: Collection, query: Query, *, updates: bool) -> StructType:
    """The Spark schema of the rows that a query returns."""
    fields = {field.name: field for field in spark_schema(collection.schema).fields}
    names = query.columns or collection.schema.names
    extra = [StructField(run.TIME, LongType()), StructField(run.DIFF, LongType())]
    return StructType([*(fields[name] for name in names), *(extra if updates else [])])


def slices(plan: Plan, rows_min: int) -> list[Plan]:
    """The plan, cut by key: what each slice reads has nothing to do with the others."""
    collection = plan.collection
    first = (collection.key or collection.schema.names)[0]
    place = collection.schema.index(first)
    bare = bare_collection(collection)
    cuts = cut(plan.runs, first, place, rows_min) if plan.probes is None else (None,)
    return [_confined(replace(plan, collection=bare), within) for within in cuts]


def bare_collection(collection: Collection) -> Collection:
    """A collection as tasks need it: schemas and key, without the batches."""
    return msgspec.structs.replace(collection, batches=(), annotation=b"")


def _confined(plan: Plan, within: KeyRange | None) -> Plan:
    if within is None:
        return plan
    runs = (tuple(part for part in parts if within.may_hold(part)) for parts in plan.runs)
    return replace(
        plan,
        query=replace(plan.query, within=within),
        runs=tuple(parts for parts in runs if parts),
    )


def _local_frame(spark: SparkSession, plan: Plan, tables: list[pa.Table]) -> DataFrame:
    """Rows that travel in the plan."""
    schema = frame_schema(plan.collection, plan.query, updates=plan.query.after is not None)
    tables = [table for table in tables if table.num_rows]
    if not tables:
        return spark.createDataFrame([], schema)
    return spark.createDataFrame(pa.concat_tables(tables), schema=schema)


def _finish(table: pa.Table, plan: Plan) -> pa.Table:
    return table if plan.query.after is not None else task.repeated(table, plan.collection.name)


# -- something retracted: one task per key range ----------------------------------------------


def _merge(spark: SparkSession, client: Client, plan: Plan) -> DataFrame:
    work = MergeSlices(
        task.Place(client.blob.url, client.config),
        tuple(slices(plan, client.config.part_rows_max)),
    )
    schema = frame_schema(plan.collection, plan.query, updates=plan.query.after is not None)
    count = len(work.plans)
    return spark.range(0, count, 1, count).mapInArrow(work, schema)


@dataclass(frozen=True)
class MergeSlices:
    """Runs on executors: reads the slices whose numbers come in."""

    place: task.Place
    plans: tuple[Plan, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the slices."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_slice(self.place, self.plans[number])


def read_slice(place: task.Place, plan: Plan) -> Iterator[pa.RecordBatch]:
    """Runs on executors: the rows of one slice, plain or as updates."""
    for table in task.read(place, plan):
        yield from _finish(table, plan).to_batches(max_chunksize=place.config.merge_rows_max)


# -- nothing retracted: Spark's own reader ----------------------------------------------------


def _scannable(client: Client, plan: Plan) -> bool:
    """Whether Spark's reader can be asked for exactly this."""
    names = plan.collection.schema.names
    urls = [client.blob.native_url(part.key) for part in plan.parts[:1]]
    return (
        all(url is not None and not _PATTERN & set(unquote(url)) for url in urls)
        and len({name.lower() for name in names}) == len(names)
        and all(
            isinstance(plan.collection.schema[name].type, _LITERAL_TYPES)
            for name in plan.query.where
        )
    )


def _inline(plan: Plan) -> list[pa.Table]:
    tables = (narrow(inline_table(plan.collection, batch), plan) for batch in plan.inline)
    return [table for table in tables if table.num_rows]


def _scan(spark: SparkSession, client: Client, plan: Plan, inline: list[pa.Table]) -> DataFrame:
    schema = frame_schema(plan.collection, plan.query, updates=False)
    frames = []
    if plan.parts:
        place = task.Place(client.blob.url, client.config)
        groups = _groups(plan.parts, spark.sparkContext.defaultParallelism)
        check = VerifyParts(place, tuple(groups), plan.collection.name)
        # First in the union: a query that stops at its first rows has run the check by then.
        frames.append(spark.range(0, len(groups), 1, len(groups)).mapInArrow(check, schema))
    single = [part for part in plan.parts if part.diff_sum == part.rows]
    several = [part for part in plan.parts if part.diff_sum != part.rows]
    for parts in (single, several):
        if parts:
            frames.append(_scan_parts(spark, client, plan, parts, schema))
    if inline or not frames:
        tables = [_finish(shape(table, plan), plan) for table in inline]
        frames.append(_local_frame(spark, plan, tables))
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.unionAll(other)
    return frame


def _scan_parts(
    spark: SparkSession, client: Client, plan: Plan, parts: list[Part], schema: StructType
) -> DataFrame:
    """Parts without retractions that all repeat rows, or all do not."""
    everything = Query(plan.query.as_of)
    stored = frame_schema(plan.collection, everything, updates=True)
    urls = [unquote(client.blob.native_url(part.key) or "") for part in parts]
    with typed_errors():
        frame = spark.read.schema(stored).options(**_SCAN_OPTIONS).parquet(*urls)
    if any(part.time_max > plan.query.as_of for part in parts):
        frame = frame.where(f.col(run.TIME) <= plan.query.as_of)
    for name, bounds in plan.query.where.items():
        frame = frame.where(_in_range(name, bounds, plan.collection.schema[name].type))
    columns = [f.col(_quoted(field.name)) for field in schema.fields]
    if any(part.diff_sum != part.rows for part in parts):
        copies = f.explode(f.sequence(f.lit(1).cast("bigint"), f.col(run.DIFF)))
        frame = frame.select(*columns, copies.alias(run.DIFF)).drop(run.DIFF)
    return frame.select(*columns)


def _in_range(name: str, bounds: Range, kind: t.SqlType) -> Column:
    """The rows inside both ends; NaN is inside no range, as in the in-process reader."""
    column, (low, high) = f.col(_quoted(name)), bounds
    inside = f.lit(True)
    if low is not None:
        inside = inside & (column >= f.lit(low))
    if high is not None:
        inside = inside & (column <= f.lit(high))
    if isinstance(kind, t.Real | t.Double) and (low is not None or high is not None):
        inside = inside & ~f.isnan(column)
    return inside


def _quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def _groups(parts: list[Part], count: int) -> list[tuple[Part, ...]]:
    """The parts in at most `count` groups of about the same size."""
    groups: list[list[Part]] = [[] for _ in range(min(count, len(parts)))]
    sizes = [0] * len(groups)
    for part in sorted(parts, key=lambda part: -part.bytes):
        at = sizes.index(min(sizes))
        groups[at].append(part)
        sizes[at] += part.bytes
    return [tuple(group) for group in groups]


@dataclass(frozen=True)
class VerifyParts:
    """Runs on executors: compares whole parts with their checksums; gives no rows."""

    place: task.Place
    groups: tuple[tuple[Part, ...], ...]
    collection: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Verify the groups whose numbers come in."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                task.verify(self.place, self.groups[number])
        return iter(())
