"""Slices on Spark: one task for each, with the kernels of the in-process reader.

Where it runs: driver, except for what says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType

from noonmark.persist import task
from noonmark.persist.client import Client
from noonmark.persist.log.state import Collection
from noonmark.persist.part import run
from noonmark.persist.read.plan import Plan, Query
from noonmark.persist.read.slices import slices
from noonmark.rows.shown import shown_schema
from noonmark.rows.spark import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_schema(
    collection: Collection, query: Query, *, updates: bool, shown: bool = False
) -> StructType:
    """The Spark schema of the rows that a query returns; `shown` is for others (`rows.shown`)."""
    schema = shown_schema(collection.schema) if shown else collection.schema
    fields = {field.name: field for field in spark_schema(schema).fields}
    names = query.columns or collection.schema.names
    extra = [StructField(run.TIME, LongType()), StructField(run.DIFF, LongType())]
    return StructType([*(fields[name] for name in names), *(extra if updates else [])])


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
    place = task.TaskLocation(client.blob.url, config)
    work = MergeSlices(place, tuple(slices(plan, config.part_rows_max)))
    schema = frame_schema(plan.collection, plan.query, updates=plan.query.after is not None)
    count = len(work.plans)
    return spark.range(0, count, 1, count).mapInArrow(work, schema)


@dataclass(frozen=True)
class MergeSlices:
    """Runs on executors: reads the slices whose numbers come in."""

    place: task.TaskLocation
    plans: tuple[Plan, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the slices."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_slice(self.place, self.plans[number])


def read_slice(place: task.TaskLocation, plan: Plan) -> Iterator[pa.RecordBatch]:
    """Runs on executors: the rows of one slice, plain or as updates."""
    for table in task.read(place, plan):
        yield from finish(table, plan).to_batches(max_chunksize=place.config.merge_rows_max)
