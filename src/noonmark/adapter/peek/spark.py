"""A peek as a Spark job: for inputs too large to be evaluated in process.

Law: the multiset that `compute.reference` defines for the plan at that time; a row on which a
scalar has no value, or a view among the inputs without an answer, makes the whole answer an error.

Where it runs: driver, in a thread that may block.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from noonmark.adapter.peek.errors import error_of
from noonmark.adapter.peek.rows import Row, decoded
from noonmark.compute import session
from noonmark.compute.batch import Batch
from noonmark.compute.definition import inlined
from noonmark.compute.frame import ERROR
from noonmark.compute.reading import frame_at
from noonmark.persist.client import Client
from noonmark.persist.run import DIFF
from noonmark.rows.arrow import conform
from noonmark.rows.schema import Column, Schema
from noonmark.sql.ir import relation as r

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ask_spark(
    spark: SparkSession, client: Client, relation: r.Relation, time: int, job: str
) -> dict[Row, int]:
    """The rows of a plan over collections at a time; `job` is what `give_up` knows it by."""
    spark.sparkContext.setJobGroup(job, "a query", interruptOnCancel=True)
    plan = inlined(relation, {})
    batches = session.for_batches(spark)
    batch = Batch(batches, partial(frame_at, batches, client, time), inputs_fail=True)
    table = batch.frame(plan).toArrow()
    for text in table.column(ERROR).drop_null().to_pylist()[:1]:
        sqlstate, _, message = text.partition(" ")
        raise error_of(sqlstate, message)
    names = list(plan.schema.names)
    free = Schema(tuple(Column(each.name, each.type) for each in plan.schema))
    data = conform(table.select(range(len(names))).rename_columns(names), free)
    total: Counter[Row] = Counter()
    diffs = table.column(DIFF).to_pylist()
    for row, diff in zip(decoded(data, free), diffs, strict=True):
        total[row] += diff
    return {row: count for row, count in total.items() if count}


def give_up(spark: SparkSession, job: str) -> None:
    """End the jobs of a query that nobody waits for any more."""
    spark.sparkContext.cancelJobGroup(job)
