"""Operators with a key over contents, by Spark's own joins, aggregates and windows.

Law: where `is_native` holds, ``computed(node, frames)`` is the operator of what the frames hold, as
`noonmark.compute.keyed` would recompute it key by key: for outer, semi and anti joins, for min,
max, bool_and, bool_or and count(DISTINCT), and for top-k.

Contents have no negative diffs: a row with a partner has one whose diff is positive. Types are
those whose order and equality are Spark's (`EXACT`); whatever else there is, is left to `keyed`.

Where it runs: driver.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from noonmark.compute import aggregates, native
from noonmark.compute.exact import EXACT
from noonmark.compute.expression import compile_scalar
from noonmark.compute.expression import is_native as is_native_scalar
from noonmark.compute.frame import ERROR, columns, errors_of, grouped, rows_of, union
from noonmark.compute.linear import extended
from noonmark.compute.match import equal, renamed, with_left_keys, with_right_keys
from noonmark.persist.run import DIFF
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


def is_native(node: r.Relation) -> bool:
    """Whether Spark itself computes the operator as it is meant."""
    match node:
        case r.Join():
            ends = [(key.left.type, key.right.type) for key in node.keys]
            exact = all(isinstance(kind, EXACT) for pair in ends for kind in pair)
            keys = exact and all(native.comparable(*pair) for pair in ends)
            on = is_native_scalar(node.on) and not may_fail(node.on)
            return node.kind in _JOINS and bool(node.keys) and keys and on
        case r.Aggregate():
            keys = all(isinstance(key.type, EXACT) for key in node.keys)
            return keys and all(_has_fold(call) for call in node.aggregates)
        case r.TopK():
            asked = [*node.partition, *(each.scalar for each in node.order)]
            exact = all(isinstance(each.type, EXACT) for each in (*asked, *node.schema))
            return exact and not any(map(may_fail, asked))
    return False


def _has_fold(call: AggregateCall) -> bool:
    if aggregates.is_linear_call(call):
        return True
    known = call.entry.name in _FOLDS or (call.entry.name == "count" and call.distinct)
    exact = all(isinstance(each.type, EXACT) for each in call.arguments)
    return known and exact and len(call.arguments) == 1 and not call.order


def is_once(node: r.Relation) -> bool:
    """Whether every diff in the contents of the relation is 1: a row that is there twice is two."""
    match node:
        case r.Scan() | r.Constant() | r.Aggregate() | r.Distinct():
            return True
        case r.Join() if node.kind is not r.JoinKind.INNER and not is_native(node):
            return False
        case r.Filter() | r.Project() | r.Union() | r.Join():
            return all(map(is_once, r.relations_below(node)))
        case r.TopK():
            return is_native(node) and is_once(node.input)
    return False


def computed(node: r.Relation, frames: Sequence[DataFrame], *, fails: bool) -> DataFrame:
    """The operator of these contents; `fails` says whether they, or its keys, may have errors."""
    match node:
        case r.Join():
            return _join(node, *frames, fails=fails)
        case r.Aggregate():
            return _aggregate(node, *frames, fails=fails)
        case r.TopK():
            return _top_k(node, *frames, fails=fails)
    raise AssertionError(f"{type(node).__name__} is not native")


def _no_error() -> Column:
    return f.lit(None).cast("string").alias(ERROR)


def _join(node: r.Join, left: DataFrame, right: DataFrame, *, fails: bool) -> DataFrame:
    sides = with_left_keys(node, left), with_right_keys(node, right)
    widths, count = (len(node.left.schema), len(node.right.schema)), len(node.keys)
    a = renamed(rows_of(sides[0], fails), widths[0], count, "l", timed=False)
    b = renamed(rows_of(sides[1], fails), widths[1], count, "r", timed=False)
    row = [*columns(widths[0], "l"), *columns(widths[1], "r")]
    conditions = [
        equal(f.col(f"lk{at}"), f.col(f"rk{at}"), key.null_equal)
        for at, key in enumerate(node.keys)
    ]
    if node.on != TRUE:
        conditions.append(compile_scalar(node.on, row).value)
    both = a.join(b, functools.reduce(operator.and_, conditions), _JOINS[node.kind])
    early = node.kind in (r.JoinKind.SEMI, r.JoinKind.ANTI)
    shown = row[: widths[0]] if early else row
    once = f.lit(1).cast("bigint")
    diffs = [f.coalesce(f.col(name), once) for name in (["ldiff"] if early else ["ldiff", "rdiff"])]
    made = both.select(
        *(value.alias(f"c{at}") for at, value in enumerate(shown)),
        _no_error(),
        functools.reduce(operator.mul, diffs).alias(DIFF),
    )
    errors = [errors_of(side, node.schema) for side in sides] if fails else []
    return union([made, *errors])


def _aggregate(node: r.Aggregate, frame: DataFrame, *, fails: bool) -> DataFrame:
    given = aggregates.arguments(node, frame)
    width = len(node.keys)
    keys = [f.col(f"k{at}").alias(f"c{at}") for at in range(width)]
    folds: list[Column] = [f.count(f.lit(1)).alias("rows")]
    once = is_once(node.input)
    for at, call in enumerate(node.aggregates):
        folds += _folds(call, at, once=once)
    apart = fails and not keys
    source = rows_of(given) if apart else given
    found, often = grouped(source, keys, folds, fails=fails and not apart)
    made = [_shown(call, at) for at, call in enumerate(node.aggregates)]
    wrong = [each.error for each in made if each.error is not None]
    rows = found.select(
        *columns(width),
        *(each.value.alias(f"c{width + at}") for at, each in enumerate(made)),
        f.coalesce(ERROR, *wrong).alias(ERROR),
        often.alias(DIFF),
    )
    return union([rows, errors_of(given, node.schema)]) if apart else rows


def _folds(call: AggregateCall, at: int, *, once: bool) -> list[Column]:
    """What of an aggregate is computed over the rows of a group."""
    value = f.col(f"a{at}")
    if aggregates.is_linear_call(call):
        count, total = aggregates.sums_of(call, value, once=once)
        return [count.alias(f"n{at}"), total.alias(f"s{at}")]
    fold = f.count_distinct(value) if call.entry.name == "count" else _FOLDS[call.entry.name](value)
    return [fold.alias(f"v{at}")]


def _shown(call: AggregateCall, at: int) -> aggregates.Final:
    if aggregates.is_linear_call(call):
        return aggregates.finish(call, f.col(f"n{at}"), f.col(f"s{at}"))
    return aggregates.Final(f.col(f"v{at}"))


def _top_k(node: r.TopK, frame: DataFrame, *, fails: bool) -> DataFrame:
    width, count = len(node.schema), len(node.partition)
    scalars = [*node.partition, *(each.scalar for each in node.order)]
    rows = extended(rows_of(frame, fails), width, scalars, "k")
    order = [_ordered(f.col(f"k{count + at}"), each) for at, each in enumerate(node.order)]
    order += [f.col(f"c{at}").asc_nulls_last() for at in range(width)]
    last = None if node.limit is None else node.offset + node.limit
    if not count and last is not None:
        # Every row takes a place at least: no more of them can be among the first.
        rows = rows.orderBy(*order).limit(last)
    within = Window.partitionBy(*columns(count, "k")).orderBy(*order)
    end = f.sum(DIFF).over(within.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    rows = rows.withColumn("_end", end)
    stop = f.col("_end") if last is None else f.least("_end", f.lit(last).cast("bigint"))
    start = f.greatest(f.col("_end") - f.col(DIFF), f.lit(node.offset).cast("bigint"))
    made = rows.select(*columns(width), _no_error(), (stop - start).alias(DIFF))
    made = made.where(f.col(DIFF) > 0)
    return union([made, errors_of(frame, node.schema)]) if fails else made


def _ordered(value: Column, key: SortKey) -> Column:
    if key.descending:
        return value.desc_nulls_first() if key.nulls_first else value.desc_nulls_last()
    return value.asc_nulls_first() if key.nulls_first else value.asc_nulls_last()
