"""Linear aggregates on Spark: the accumulators of contents, and what they show.

    Aggregate(R) = finished(accumulated(R))

Law: the accumulators (`noonmark.compute.kernel.accumulator`) are a collection: one row per group
that is there (without keys: always one), by which the aggregates can be maintained without the
rows.

Where Spark's own sums are exact it adds up itself; the others are added up in Python workers
(`noonmark.compute.spark.summing`).

Where it runs: driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from noonmark.compute.kernel.accumulator import (
    Summand,
    accumulator_schema,
    argument,
    is_native,
    places,
    summands,
    type_of,
)
from noonmark.compute.kernel.finish import shown
from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.spark.column import col
from noonmark.compute.spark.foreign import answered
from noonmark.compute.spark.frame import (
    columns,
    errors_of,
    grouped,
    names,
    no_error,
    one,
    renamed,
    rows_of,
    union,
)
from noonmark.compute.spark.linear import computed
from noonmark.compute.spark.summing import summed
from noonmark.persist.part.run import DIFF
from noonmark.rows import types as t
from noonmark.rows.spark import spark_name
from noonmark.sql.functions.number.fit import numeric_for
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame


def arguments(node: r.Aggregate, frame: DataFrame) -> DataFrame:
    """Of the input the keys, k0 and on, and the arguments of the aggregates, a0 and on."""
    scalars = [*node.keys, *(argument(call) for call in node.aggregates)]
    wanted = [*names(len(node.keys), "k"), *names(len(node.aggregates), "a")]
    values, error = computed(scalars, columns(len(node.input.schema)), wanted)
    return frame.select(*values, error, DIFF)


def sums(node: r.Aggregate, *, once: bool = False) -> list[Column]:
    """The accumulators over a group of a frame of `arguments`, in the order of the schema.

    Args:
        node: the aggregation.
        once: whether every diff is 1: then nothing has to be weighed.
    """
    first = len(node.keys)
    kinds = [spark_name(each.type) for each in accumulator_schema(node)][first:]
    made = [f.count(f.lit(1)) if once else f.sum(DIFF)]
    given = [argument(call) for call in node.aggregates]
    for call, each in zip(node.aggregates, given, strict=True):
        # Of equal arguments the first: Spark computes an aggregate of one column once.
        made += sums_of(call, col(f"a{given.index(each)}"), once=once)
    empty = [f.coalesce(m, f.lit(0)).cast(k) for m, k in zip(made, kinds, strict=True)]
    return [each.alias(f"c{first + at}") for at, each in enumerate(empty)]


def sums_of(call: AggregateCall, value: Column, *, once: bool) -> list[Column]:
    """The accumulators of one aggregate over the rows of a group: how many values, their sum."""
    (summand,) = summands(call)
    diff, kind = col(DIFF), spark_name(type_of(call, summand))
    count = f.count(value if argument(call).nullable else f.lit(1))
    if not once:
        count = f.sum(f.when(value.isNotNull(), diff).otherwise(f.lit(0)))
    zero = f.lit(0).cast(kind)
    if summand is Summand.NOTHING:
        return [count, f.max(zero)]
    if summand is Summand.TRUE:
        return [count, f.sum(f.when(value, f.lit(1) if once else diff).otherwise(f.lit(0)))]
    if once:
        # At its own digits: Spark adds short decimals several times as fast as long ones, and short
        # integers as 64 bits, which billions of them do not fill.
        own, given = value, call.arguments[0].type
        if not isinstance(given, t.SmallInt | t.Integer):
            own = value.cast(spark_name(numeric_for(given)))
        return [count, f.coalesce(f.sum(own).cast(kind), zero)]
    weighed = (value.cast(kind) * diff.cast("decimal(19,0)")).cast(kind)
    return [count, f.sum(f.when(value.isNotNull(), weighed).otherwise(zero)).cast(kind)]


def accumulated(
    node: r.Aggregate, frame: DataFrame, *, fails: bool, once: bool = False
) -> DataFrame:
    """The accumulators of contents: one row per group, and the errors of the input."""
    given, schema = arguments(node, frame), accumulator_schema(node)
    keys = renamed(len(node.keys), "k")
    apart = fails and not (keys and _is_native(node))
    source = rows_of(given) if apart else given
    if _is_native(node):
        made, error, diff = grouped(source, keys, sums(node, once=once), fails=fails and not apart)
    else:
        made, error, diff = summed(node, source), no_error(), one()
    if keys and not once:
        made = made.where(error.isNotNull() | (col(f"c{len(keys)}") != 0))
    rows = made.select(*columns(len(schema)), error, diff)
    return union([rows, errors_of(given, schema)]) if apart else rows


def _is_native(node: r.Aggregate) -> bool:
    return all(map(is_native, node.aggregates))


@dataclass(frozen=True)
class Final:
    """An aggregate, and where it may have no value, why."""

    value: Column
    error: Column | None = None


def finished(node: r.Aggregate, frame: DataFrame) -> DataFrame:
    """The aggregates of the accumulators of contents, row by row: linear."""
    kept = columns(len(accumulator_schema(node)))
    values = kept[: len(node.keys)]
    errors = [col(ERROR)]
    for call, place in zip(node.aggregates, places(node), strict=True):
        made = finish(call, kept[place])
        values.append(made.value)
        if made.error is not None:
            errors.append(made.error)
    return frame.select(
        *(value.alias(f"c{at}") for at, value in enumerate(values)),
        f.coalesce(*errors).alias(ERROR),
        DIFF,
    )


def finish(call: AggregateCall, accumulators: Sequence[Column]) -> Final:
    """The aggregate of its accumulators."""
    count, *totals = accumulators
    if call.entry.name == "count":
        return Final(count)
    if summands(call) == (Summand.TRUE,):
        (true,) = totals
        passed = true > 0 if call.entry.name == "bool_or" else true == count
        return Final(f.when(count != 0, passed))
    if call.entry.name == "sum" and is_native(call):
        value = f.when(count != 0, totals[0].try_cast(spark_name(call.type)))
        whole = not isinstance(call.type, t.Numeric)
        reason = f"{call.type} out of range" if whole else "numeric field overflow"
        lost = value.isNull() & (count != 0)
        return Final(value, f.when(lost, f.lit(f"22003 {reason}")))
    kinds = [t.BigInt(), *(type_of(call, each) for each in summands(call))]
    made = answered(lambda arrays, _: shown(call, arrays), kinds, call.type)(*accumulators)
    return Final(made["value"], made["error"])
