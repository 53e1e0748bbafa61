"""The contents of a relation in Spark, in the layout of `noonmark.compute.kernel.layout`.

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType

from noonmark.compute.kernel.layout import ERROR, layout_schema
from noonmark.compute.spark.column import col, constant, named, null
from noonmark.persist.part.run import DIFF
from noonmark.rows import types as t
from noonmark.rows.schema import Schema
from noonmark.rows.spark import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def names(width: int, letter: str = "c") -> list[str]:
    """The names of the columns of a relation."""
    return [f"{letter}{at}" for at in range(width)]


def columns(width: int, letter: str = "c") -> list[Column]:
    """The columns of a relation."""
    return [col(name) for name in names(width, letter)]


def renamed(width: int, letter: str, other: str = "c") -> list[Column]:
    """The columns of one letter by the names of another."""
    pairs = zip(names(width, letter), names(width, other), strict=True)
    return [named(name, alias) for name, alias in pairs]


def no_error() -> Column:
    """The errors of a frame that has none."""
    return null(t.Text(), ERROR)


def one() -> Column:
    """The diffs of a frame whose rows are each there once."""
    return constant(1, DIFF)


def frame_schema(schema: Schema) -> StructType:
    """The Spark schema of the frames of a relation."""
    fields = [StructField(f"c{at}", spark_type(c.type)) for at, c in enumerate(schema)]
    fields.append(StructField(ERROR, StringType()))
    return StructType([*fields, StructField(DIFF, LongType())])


def local_frame(spark: SparkSession, table: pa.Table, schema: Schema) -> DataFrame:
    """A small table in the layout as a DataFrame of one partition."""
    return spark.createDataFrame(table, schema=frame_schema(schema)).coalesce(1)


def empty_frame(spark: SparkSession, schema: Schema) -> DataFrame:
    """No rows and no errors."""
    empty = layout_schema(schema, timed=False).empty_table()
    return local_frame(spark, empty, schema)


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """All updates of all frames, which have one layout."""
    result = frames[0]
    for frame in frames[1:]:
        result = result.unionAll(frame)
    return result


def rows_of(frame: DataFrame, fails: bool = True) -> DataFrame:
    """The rows, without the errors; a frame that cannot have any is left as it is."""
    return frame.where(col(ERROR).isNull()) if fails else frame


def grouped(
    frame: DataFrame, keys: Sequence[Column], folds: Sequence[Column], *, fails: bool
) -> tuple[DataFrame, Column, Column]:
    """The rows of a frame by some of its columns, folded; and of each group error and diff.

    If there may be errors, they are groups of their own, each as often as it is there: so one pass
    is enough. Without columns that cannot be: a group of all rows is there without rows, too.
    """
    if not fails:
        return frame.groupBy(*keys).agg(*folds), no_error(), one()
    assert keys, "errors apart from all rows need a pass of their own"
    made = frame.groupBy(*keys, ERROR).agg(*folds, f.sum(DIFF).alias(DIFF))
    often = f.when(col(ERROR).isNull(), constant(1)).otherwise(col(DIFF))
    return made, col(ERROR), often.alias(DIFF)


def errors_of(frame: DataFrame, schema: Schema) -> DataFrame:
    """The errors, in the layout of another relation."""
    empty = [null(each.type, f"c{at}") for at, each in enumerate(schema)]
    failed = frame.where(col(ERROR).isNotNull())
    return failed.select(*empty, ERROR, DIFF)
