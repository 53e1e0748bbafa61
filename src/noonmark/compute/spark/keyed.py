"""Operators that work key by key, over frames: recomputed by their meaning, in Python workers.

Law: that of `noonmark.compute.incremental.by_key`, whose `KeyedTask` executors run.

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, StructField, StructType

from noonmark.compute.incremental.by_key import SIDE, KeyedTask
from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.plan.keys import KeyedInput, keyed_types, over_scans
from noonmark.compute.spark.column import col, null
from noonmark.compute.spark.frame import errors_of, frame_schema, rows_of, union
from noonmark.compute.spark.linear import extended
from noonmark.persist.part.run import DIFF
from noonmark.sql.ir import relation as r

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def as_updates(table: pa.Table, count: int) -> pa.Table:
    """So many plain rows in the layout: each once, without an error."""
    errors, ones = pa.nulls(count, pa.string()), pa.array([1] * count, pa.int64())
    # Column by column: a table without columns does not know how many rows it has.
    return pa.table([*table.columns, errors, ones], names=[*table.column_names, ERROR, DIFF])


def keyed_frames(parts: Sequence[KeyedInput], frames: Sequence[DataFrame]) -> list[DataFrame]:
    """The frames with the values of the key, k0 and on."""
    return [
        extended(frame, len(part.relation.schema), part.key, "k")
        for part, frame in zip(parts, frames, strict=True)
    ]


def recomputed(
    node: r.Relation,
    parts: Sequence[KeyedInput],
    frames: Sequence[DataFrame],
    *,
    fails: bool = True,
    tasks: int | None = None,
) -> DataFrame:
    """The operator of the contents of the frames.

    Args:
        node: the operator.
        parts: its inputs.
        frames: what each holds.
        fails: whether the frames, or the keys, may have errors.
        tasks: how many tasks to spread the keys over; None lets Spark decide.
    """
    with_keys = keyed_frames(parts, frames)
    widths = [len(part.relation.schema) for part in parts]
    tagged = [_tagged(rows_of(frame, fails), side, parts) for side, frame in enumerate(with_keys)]
    keys = [col(f"k{at}") for at in range(len(parts[0].key))]
    if not keys:
        tagged.append(_marker(tagged[0]))
    rows = union(tagged)
    if not keys or tasks == 1:
        rows = rows.coalesce(1)
    else:
        rows = rows.repartition(tasks, *keys) if tasks else rows.repartition(*keys)
    operator = over_scans(node)
    work = KeyedTask(operator, tuple(keyed_types(parts)), len(keys), tuple(widths), timed=False)
    made = rows.mapInArrow(work, frame_schema(node.schema))
    errors = [errors_of(frame, node.schema) for frame in with_keys] if fails else []
    return union([made, *errors])


def _tagged(frame: DataFrame, side: int, parts: Sequence[KeyedInput]) -> DataFrame:
    """Rows of all inputs side by side: each has the columns of its own, and NULL for the others."""
    values: list[Column] = []
    for number, part in enumerate(parts):
        for at, each in enumerate(part.relation.schema):
            own = col(f"c{at}") if number == side else null(each.type)
            values.append(own.alias(f"s{number}_{at}"))
    keys = [f"k{at}" for at in range(len(parts[0].key))]
    return frame.select(f.lit(side).alias(SIDE), *keys, *values, DIFF)


def _marker(frame: DataFrame) -> DataFrame:
    """A row of no input, so that a task runs also when there are no rows: one group always is."""
    fields = [StructField(x.name, x.dataType) for x in frame.schema.fields]
    schema = StructType([StructField(SIDE, IntegerType()), *fields[1:]])
    empty = [-1, *([None] * (len(fields) - 2)), 0]
    return frame.sparkSession.createDataFrame([tuple(empty)], schema)
