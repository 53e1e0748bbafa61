"""Operators with a key over contents, by Spark's own joins, aggregates and windows.

Law: where ``is_native_...`` holds, the functions here give the operator of what the frames hold, as
`noonmark.compute.spark.keyed` would recompute it key by key: for outer, semi and anti joins, for
min, max, bool_and, bool_or and count(DISTINCT), and for top-k.

Contents have no negative diffs: a row with a partner has one whose diff is positive. Types of keys
are those whose order and equality are Spark's (`is_exact`); what is put in order may be a float,
too; whatever else there is, is left to `keyed`.

Where it runs: driver.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from noonmark.compute.kernel import accumulator
from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.spark import aggregates, native
from noonmark.compute.spark.column import col, constant, named
from noonmark.compute.spark.expression import compile_scalar
from noonmark.compute.spark.expression import is_native as is_native_scalar
from noonmark.compute.spark.frame import (
    columns,
    errors_of,
    grouped,
    names,
    no_error,
    renamed,
    rows_of,
    union,
)
from noonmark.compute.spark.linear import extended
from noonmark.compute.spark.match import errors_of_sides, left_side, right_side, same_keys
from noonmark.persist.part.run import DIFF
from noonmark.rows.exact import FLOATS, has_extremes, is_exact, is_ordered
from noonmark.rows.spark import spark_name
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall, SortKey
from noonmark.sql.ir.scalar import TRUE, may_fail

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_JOINS = {
    r.JoinKind.LEFT: "left_outer",
    r.JoinKind.RIGHT: "right_outer",
    r.JoinKind.FULL: "full_outer",
    r.JoinKind.SEMI: "left_semi",
    r.JoinKind.ANTI: "left_anti",
}
_FOLDS: dict[str, Callable[[Column], Column]] = {
    "min": f.min,
    "max": f.max,
    "bool_and": f.bool_and,
    "every": f.bool_and,
    "bool_or": f.bool_or,
}


def is_native_join(node: r.Join) -> bool:
    """Whether `joined` gives what is meant."""
    ends = [(key.left.type, key.right.type) for key in node.keys]
    exact = all(is_exact(kind) for pair in ends for kind in pair)
    keys = exact and all(native.comparable(*pair) for pair in ends)
    on = is_native_scalar(node.on) and not may_fail(node.on)
    return node.kind in _JOINS and bool(node.keys) and keys and on


def is_native_aggregate(node: r.Aggregate) -> bool:
    """Whether `aggregated` gives what is meant."""
    keys = all(is_exact(key.type) for key in node.keys)
    return keys and all(_has_fold(call) for call in node.aggregates)


def is_native_top_k(node: r.TopK) -> bool:
    """Whether `top_k` gives what is meant."""
    orders = [each.scalar for each in node.order]
    exact = all(is_exact(each.type) for each in node.partition)
    ordered = all(is_ordered(each.type) for each in orders)
    ordered = ordered and all(has_extremes(each.type) for each in node.schema)
    return exact and ordered and not any(map(may_fail, (*node.partition, *orders)))


def _has_fold(call: AggregateCall) -> bool:
    if accumulator.is_native(call):
        return True
    if call.entry.name not in (*_FOLDS, "count") or len(call.arguments) != 1 or call.order:
        return False
    fits = has_extremes if call.entry.name in ("min", "max") else is_exact
    return fits(call.arguments[0].type)


def joined(
    node: r.Join, left: DataFrame, right: DataFrame, *, fails: tuple[bool, bool]
) -> DataFrame:
    """An outer, semi or anti join; `fails` says which sides, or their keys, may have errors."""
    sides = left_side(node, left, fails=fails[0]), right_side(node, right, fails=fails[1])
    row = [*names(len(node.left.schema), "l"), *names(len(node.right.schema), "r")]
    conditions = same_keys(node)
    if node.on != TRUE:
        conditions.append(compile_scalar(node.on, [col(name) for name in row]).value)
    condition = functools.reduce(operator.and_, conditions)
    both = sides[0].rows.join(sides[1].rows, condition, _JOINS[node.kind])
    early = node.kind in (r.JoinKind.SEMI, r.JoinKind.ANTI)
    shown = row[: len(node.left.schema)] if early else row
    diffs = [
        f.coalesce(col(name), constant(1)) for name in (["ldiff"] if early else ["ldiff", "rdiff"])
    ]
    made = both.select(
        *(named(name, f"c{at}") for at, name in enumerate(shown)),
        no_error(),
        functools.reduce(operator.mul, diffs).alias(DIFF),
    )
    return union([made, *errors_of_sides(node, sides, fails)])


def aggregated(node: r.Aggregate, frame: DataFrame, *, fails: bool, once: bool) -> DataFrame:
    """An aggregation; `fails` says whether its input, keys and arguments may have errors.

    `once` says whether every diff of the input is 1.
    """
    given = aggregates.arguments(node, frame)
    width = len(node.keys)
    keys = renamed(width, "k")
    folds: list[Column] = [f.count(f.lit(1)).alias("rows")]
    for at, call in enumerate(node.aggregates):
        folds += _folds(call, at, once=once)
    apart = fails and not keys
    source = rows_of(given) if apart else given
    found, error, diff = grouped(source, keys, folds, fails=fails and not apart)
    made = [_shown(call, at) for at, call in enumerate(node.aggregates)]
    wrong = [each.error for each in made if each.error is not None]
    if wrong:
        error = f.coalesce(error, *wrong).alias(ERROR)
    rows = found.select(
        *columns(width),
        *(each.value.alias(f"c{width + at}") for at, each in enumerate(made)),
        error,
        diff,
    )
    return union([rows, errors_of(given, node.schema)]) if apart else rows


def _folds(call: AggregateCall, at: int, *, once: bool) -> list[Column]:
    """What of an aggregate is computed over the rows of a group."""
    value = col(f"a{at}")
    if accumulator.is_native(call):
        made = aggregates.sums_of(call, value, once=once)
        return [each.alias(name) for each, name in zip(made, _sums(at), strict=True)]
    fold = f.count_distinct(value) if call.entry.name == "count" else _FOLDS[call.entry.name](value)
    if isinstance(call.type, FLOATS):
        fold = fold + f.lit(0.0).cast(spark_name(call.type))  # there is one zero
    return [fold.alias(f"v{at}")]


def _sums(at: int) -> list[str]:
    """The names of what Spark adds up for an aggregate: how many values, and their sum."""
    return [f"n{at}", f"s{at}"]


def _shown(call: AggregateCall, at: int) -> aggregates.Final:
    if accumulator.is_native(call):
        return aggregates.finish(call, [col(name) for name in _sums(at)])
    return aggregates.Final(col(f"v{at}"))


def top_k(node: r.TopK, frame: DataFrame, *, fails: bool) -> DataFrame:
    """The first rows; `fails` says whether the input may have errors."""
    width, count = len(node.schema), len(node.partition)
    scalars = [*node.partition, *(each.scalar for each in node.order)]
    rows = extended(rows_of(frame, fails), width, scalars, "k")
    order = [_ordered(col(f"k{count + at}"), each) for at, each in enumerate(node.order)]
    order += [col(f"c{at}").asc_nulls_last() for at in range(width)]
    # Two zeros are equal, but not the same: one of them has to come first.
    floats = [at for at, each in enumerate(node.schema) if isinstance(each.type, FLOATS)]
    order += [col(f"c{at}").cast("string") for at in floats]
    last = None if node.limit is None else node.offset + node.limit
    if not count and last is not None:
        # Every row takes a place at least: no more of them can be among the first.
        rows = rows.orderBy(*order).limit(last)
    within = Window.partitionBy(*columns(count, "k")).orderBy(*order)
    end = f.sum(DIFF).over(within.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    rows = rows.withColumn("_end", end)
    stop = col("_end") if last is None else f.least("_end", f.lit(last).cast("bigint"))
    start = f.greatest(col("_end") - col(DIFF), f.lit(node.offset).cast("bigint"))
    made = rows.select(*columns(width), no_error(), (stop - start).alias(DIFF))
    made = made.where(col(DIFF) > 0)
    return union([made, errors_of(frame, node.schema)]) if fails else made


def _ordered(value: Column, key: SortKey) -> Column:
    if key.descending:
        return value.desc_nulls_first() if key.nulls_first else value.desc_nulls_last()
    return value.asc_nulls_first() if key.nulls_first else value.asc_nulls_last()
