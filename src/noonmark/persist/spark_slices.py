"""Slices: a plan cut by key, one task for each piece, with the kernels of the in-process reader.

Law: the rows of all slices of a plan are the rows of the plan. What one slice reads has nothing to
do with the others, so that a task can be done again anywhere.

Where it runs: driver, except for what says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType

from noonmark.persist import run, task
from noonmark.persist.client import Client
from noonmark.persist.plan import Plan, Query
from noonmark.persist.ranges import KeyRange, cut
from noonmark.persist.state import Collection
from noonmark.rows.spark import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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


def local_frame(spark: SparkSession, plan: Plan, tables: list[pa.Table]) -> DataFrame:
    """Rows that travel in the plan."""
    schema = frame_schema(plan.collection, plan.query, updates=plan.query.after is not None)
    tables = [table for table in tables if table.num_rows]
    if not tables:
        return spark.createDataFrame([], schema)
    return spark.createDataFrame(pa.concat_tables(tables), schema=schema)


def finish(table: pa.Table, plan: Plan) -> pa.Table:
    """Updates as they are; contents as plain rows."""
    return table if plan.query.after is not None else task.repeated(table, plan.collection.name)


def merge_frame(spark: SparkSession, client: Client, plan: Plan) -> DataFrame:
    """The rows of a plan, by one task per slice."""
    config = client.config
    if plan.query.columns is None:
        # Merging sorted runs is faster than hashing; hashing needs the asked columns alone.
        config = replace(config, prefetch_bytes_max=0)
    place = task.Place(client.blob.url, config)
    work = MergeSlices(place, tuple(slices(plan, config.part_rows_max)))
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
        yield from finish(table, plan).to_batches(max_chunksize=place.config.merge_rows_max)
