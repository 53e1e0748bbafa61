"""Turns in Spark: the rows of frames with the times at which a temporal filter changes for them.

Law: that of `noonmark.compute.incremental.temporal`; rows for which the comparison is NULL are not
there, and those on which it has no value are errors.

Where it runs: driver.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f

from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.spark.column import col, constant, named
from noonmark.compute.spark.expression import compile_scalar
from noonmark.compute.spark.foreign import Answers, answered
from noonmark.compute.spark.frame import columns
from noonmark.persist.part.run import DIFF
from noonmark.rows import types as t
from noonmark.rows.arrow import from_array
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.temporal import FOREVER, NEVER, ROUNDED_UP, Temporal, temporal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

#: The column of turns beside the layout.
AT = "_turn"


def with_turns(node: r.Filter, frame: DataFrame) -> DataFrame:
    """The updates that have a turn, with it, and the errors."""
    what = temporal(node)
    assert what is not None, "a filter that does not follow the time"
    compiled = compile_scalar(what.scalar, columns(len(node.schema)))
    if compiled.error is not None:
        frame = frame.withColumn(ERROR, f.coalesce(col(ERROR), compiled.error))
    made = frame.withColumn(AT, _turn(what, compiled.value))
    return made.where(col(ERROR).isNotNull() | col(AT).isNotNull())


def waiting(node: r.Filter, rows: DataFrame, upper: int) -> DataFrame:
    """Of rows with turns, those whose turn is still to come; the turn is their last column."""
    width = len(node.schema)
    later = rows.where((col(AT) >= upper) & (col(AT) < FOREVER))
    return later.select(*columns(width), named(AT, f"c{width}"), ERROR, DIFF)


def _turns(what: Temporal, arrays: Sequence[pa.Array], _: int) -> Answers:
    """Runs on executors: the turns of numbers that Spark does not know."""
    values = from_array(arrays[0], what.scalar.type)
    return pa.array([what.turn(each) for each in values], pa.int64()), None


def _turn(what: Temporal, value: Column) -> Column:
    if t.is_plain(what.scalar.type):
        asked = answered(partial(_turns, what), [what.scalar.type], t.BigInt())
        return asked(value)["value"]
    whole = _whole(what, value)
    if what.op in ROUNDED_UP:
        return whole
    return f.when(whole == FOREVER, whole).otherwise(whole + constant(1))


def _whole(what: Temporal, value: Column) -> Column:
    """The value as a whole number; one beyond all times is the last of them."""
    if isinstance(what.scalar.type, t.BigInt):
        return value
    rounded = f.ceil(value) if what.op in ROUNDED_UP else f.floor(value)
    most, least = f.lit(FOREVER).cast("bigint"), f.lit(NEVER).cast("bigint")
    if isinstance(what.scalar.type, t.Numeric):
        fits = rounded.cast("bigint")
        return f.when(rounded >= most, most).when(rounded <= least, least).otherwise(fits)
    edge = f.lit(float(FOREVER))  # NaN is beyond it, as in SQL
    return f.when(value >= edge, most).when(value <= -edge, least).otherwise(rounded)
