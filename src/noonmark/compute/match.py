"""Pairs of rows that match: the inner join of two frames.

Law (bilinear): ``pairs(x + y, z) = pairs(x, z) + pairs(y, z)``, and so on the other side. A pair is
there as often as the product of the two diffs says, from the later of the two times on.

Where it runs: driver.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from noonmark.compute.frame import ERROR, errors_of, rows_of, union
from noonmark.compute.linear import extended, kept
from noonmark.persist.run import DIFF, TIME
from noonmark.persist.spark import typed_errors
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import TRUE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def joined(node: r.Join, left: DataFrame, right: DataFrame, *, fails: bool) -> DataFrame:
    """The inner join of two frames without times, and the errors of both."""
    sides = with_left_keys(node, left), with_right_keys(node, right)
    made = pairs(node, rows_of(sides[0], fails), rows_of(sides[1], fails), timed=False)
    errors = [errors_of(side, node.schema) for side in sides] if fails else []
    return union([made, *errors])


def with_left_keys(node: r.Join, frame: DataFrame) -> DataFrame:
    """The left side with the values of its keys, k0 and on."""
    return extended(frame, len(node.left.schema), [key.left for key in node.keys], "k")


def with_right_keys(node: r.Join, frame: DataFrame) -> DataFrame:
    """The right side with the values of its keys, k0 and on."""
    return extended(frame, len(node.right.schema), [key.right for key in node.keys], "k")


def pairs(node: r.Join, left: DataFrame, right: DataFrame, *, timed: bool) -> DataFrame:
    """The pairs of rows whose keys are equal and for which `on` is TRUE, without errors."""
    widths = len(node.left.schema), len(node.right.schema)
    count = len(node.keys)
    a = renamed(left, widths[0], count, "l", timed=timed)
    b = renamed(right, widths[1], count, "r", timed=timed)
    conditions = [
        equal(f.col(f"lk{at}"), f.col(f"rk{at}"), key.null_equal)
        for at, key in enumerate(node.keys)
    ]
    if conditions:
        both = a.join(b, functools.reduce(operator.and_, conditions), "inner")
    elif is_one_row(node.left):
        both = f.broadcast(_here(a)).crossJoin(b)
    else:
        # Without the hint Spark takes the product of partitions, which fails over Python workers.
        both = a.crossJoin(f.broadcast(_here(b) if is_one_row(node.right) else b))
    values = [f.col(f"l{i}") for i in range(widths[0])] + [f.col(f"r{i}") for i in range(widths[1])]
    times = [f.greatest("ltime", "rtime").alias(TIME)] if timed else []
    made = both.select(
        *(value.alias(f"c{at}") for at, value in enumerate(values)),
        f.lit(None).cast("string").alias(ERROR),
        *times,
        (f.col("ldiff") * f.col("rdiff")).alias(DIFF),
    )
    return made if node.on == TRUE else kept(made, sum(widths), node.on)


def _here(frame: DataFrame) -> DataFrame:
    """An aggregate of everything, computed now.

    Spark would make it a subquery of what is around it, which fails over Python workers.
    """
    with typed_errors():
        table = frame.toArrow()
    return frame.sparkSession.createDataFrame(table, schema=frame.schema).coalesce(1)


def is_one_row(node: r.Relation) -> bool:
    """Whether there is exactly one row: an aggregate of everything."""
    match node:
        case r.Project():
            return is_one_row(node.input)
        case r.Aggregate():
            return not node.keys
    return False


def equal(a: Column, b: Column, null_equal: bool) -> Column:
    """Whether two values are the same; NULL is the same as NULL only where it is meant."""
    return a.eqNullSafe(b) if null_equal else a == b


def renamed(frame: DataFrame, width: int, keys: int, side: str, *, timed: bool) -> DataFrame:
    """Names that do not meet those of the other side."""
    times = [f.col(TIME).alias(f"{side}time")] if timed else []
    return frame.select(
        *(f.col(f"c{at}").alias(f"{side}{at}") for at in range(width)),
        *(f.col(f"k{at}").alias(f"{side}k{at}") for at in range(keys)),
        *times,
        f.col(DIFF).alias(f"{side}diff"),
    )
