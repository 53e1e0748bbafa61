"""Pairs of rows that match: the inner join of two frames.

Law (bilinear): ``pairs(x + y, z) = pairs(x, z) + pairs(y, z)``, and so on the other side. A pair is
there as often as the product of the two diffs says.

Where it runs: driver.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from noonmark.compute.plan.multiway import is_one_row
from noonmark.compute.spark.column import col, named
from noonmark.compute.spark.frame import (
    columns,
    errors_of,
    names,
    no_error,
    renamed,
    rows_of,
    union,
)
from noonmark.compute.spark.linear import computed, extended, kept
from noonmark.persist.part.run import DIFF
from noonmark.persist.spark import typed_errors
from noonmark.rows.exact import is_ordered
from noonmark.sql.functions.key import KEY_FORM
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import TRUE, Call, Scalar, may_fail

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Side:
    """One side of a join.

    Attributes:
        rows: its rows and the values of its keys, by names that do not meet the other side's.
        all: the frame with its errors.
    """

    rows: DataFrame
    all: DataFrame


def left_side(node: r.Join, frame: DataFrame, *, fails: bool) -> Side:
    """The left side, as l0, ..., lk0, ..., ltime and ldiff."""
    keys = [_comparable(key.left, key.right) for key in node.keys]
    return _side(frame, len(node.left.schema), keys, "l", fails=fails)


def right_side(node: r.Join, frame: DataFrame, *, fails: bool) -> Side:
    """The right side, as r0, ..., rk0, ..., rtime and rdiff."""
    keys = [_comparable(key.right, key.left) for key in node.keys]
    return _side(frame, len(node.right.schema), keys, "r", fails=fails)


def _comparable(key: Scalar, other: Scalar) -> Scalar:
    """What Spark finds equal iff the keys are: their canonical form, where it knows no better."""
    known = is_ordered(key.type) and is_ordered(other.type)
    return key if known else Call(KEY_FORM, (key,))


def _side(
    frame: DataFrame, width: int, keys: Sequence[Scalar], letter: str, *, fails: bool
) -> Side:
    if any(map(may_fail, keys)):
        frame = extended(frame, width, keys, "k")
        values = renamed(len(keys), "k", f"{letter}k")
    else:
        values, _ = computed(keys, columns(width), names(len(keys), f"{letter}k"))
    rows = rows_of(frame, fails).select(
        *renamed(width, "c", letter),
        *values,
        named(DIFF, f"{letter}diff"),
    )
    return Side(rows, frame)


def joined(
    node: r.Join, left: DataFrame, right: DataFrame, *, fails: tuple[bool, bool]
) -> DataFrame:
    """The inner join of two frames, and the errors of the sides that may have any."""
    sides = left_side(node, left, fails=fails[0]), right_side(node, right, fails=fails[1])
    made = pairs(node, sides[0].rows, sides[1].rows)
    return union([made, *errors_of_sides(node, sides, fails)])


def errors_of_sides(
    node: r.Join, sides: tuple[Side, Side], fails: tuple[bool, bool]
) -> list[DataFrame]:
    """The errors of the sides that may have any, in the layout of the join."""
    both = zip(sides, fails, strict=True)
    return [errors_of(side.all, node.schema) for side, may in both if may]


def same_keys(node: r.Join) -> list[Column]:
    """That the keys of both sides are equal."""
    return [
        equal(col(f"lk{at}"), col(f"rk{at}"), key.null_equal) for at, key in enumerate(node.keys)
    ]


def pairs(node: r.Join, left: DataFrame, right: DataFrame) -> DataFrame:
    """The pairs of rows whose keys are equal and for which `on` is TRUE, without errors."""
    conditions = same_keys(node)
    if conditions:
        both = left.join(right, functools.reduce(operator.and_, conditions), "inner")
    elif is_one_row(node.left, exactly=True):
        both = f.broadcast(_here(left)).crossJoin(right)
    else:
        # Without the hint Spark takes the product of partitions, which fails over Python workers.
        one = is_one_row(node.right, exactly=True)
        both = left.crossJoin(f.broadcast(_here(right) if one else right))
    widths = len(node.left.schema), len(node.right.schema)
    values = [*names(widths[0], "l"), *names(widths[1], "r")]
    made = both.select(
        *(named(name, f"c{at}") for at, name in enumerate(values)),
        no_error(),
        (col("ldiff") * col("rdiff")).alias(DIFF),
    )
    return made if node.on == TRUE else kept(made, sum(widths), node.on)


def _here(frame: DataFrame) -> DataFrame:
    """An aggregate of everything, computed now.

    Spark would make it a subquery of what is around it, which fails over Python workers.
    """
    with typed_errors():
        table = frame.toArrow()
    return frame.sparkSession.createDataFrame(table, schema=frame.schema).coalesce(1)


def equal(a: Column, b: Column, null_equal: bool) -> Column:
    """Whether two values are the same; NULL is the same as NULL only where it is meant."""
    return a.eqNullSafe(b) if null_equal else a == b
