"""Linear aggregates: sums that an insertion adds to and a retraction subtracts from.

The *accumulators* of a group are its number of rows and, per aggregate, how many values it has and
what they sum to. They are linear in the rows of the group; the aggregates are functions of them:

    Aggregate(R) = finished(accumulated(R))

Law: the accumulators are a collection: one row per group that is there (without keys: always one),
by which the aggregates can be maintained without the rows.

Sums are exact numerics of 38 digits. Floats are not here: their sums depend on what was there.

Where it runs: driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f

from noonmark.compute.column import col
from noonmark.compute.exact import EXACT
from noonmark.compute.foreign import vectorized
from noonmark.compute.frame import (
    ERROR,
    columns,
    errors_of,
    grouped,
    names,
    renamed,
    rest,
    rows_of,
    union,
)
from noonmark.compute.linear import computed
from noonmark.compute.walk.average import averaged
from noonmark.persist.run import DIFF
from noonmark.rows import types as t
from noonmark.rows.arrow import from_array, to_array
from noonmark.rows.schema import Column as SchemaColumn
from noonmark.rows.schema import Schema
from noonmark.rows.spark import spark_name, spark_type
from noonmark.sql.functions import numeric
from noonmark.sql.functions.fit import fit, numeric_for
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall
from noonmark.sql.ir.scalar import TRUE, Case, Literal, Scalar, When

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

_WHOLE = (t.SmallInt, t.Integer, t.BigInt)


def is_linear(node: r.Aggregate) -> bool:
    """Whether accumulators are enough for all aggregates of the node."""
    keys = all(isinstance(key.type, EXACT) for key in node.keys)
    return keys and all(is_linear_call(call) for call in node.aggregates)


def is_linear_call(call: AggregateCall) -> bool:
    """Whether accumulators are enough for an aggregate."""
    name, kinds = call.entry.name, [argument.type for argument in call.arguments]
    if call.distinct or call.order:
        return False
    if name == "count":
        return True
    summed = name in ("sum", "avg") and isinstance(kinds[0], (*_WHOLE, t.Numeric))
    plain = isinstance(kinds[0], t.Numeric) and kinds[0].scale is None if kinds else False
    # The digits of an average of plain numerics depend on those of its values.
    return summed and not (name == "avg" and plain)


def sum_type(call: AggregateCall) -> t.Numeric:
    """What the values of an aggregate are summed as; a count sums nothing."""
    if call.entry.name == "count":
        return t.Numeric(1, 0)
    scale = numeric_for(call.arguments[0].type).stored_scale
    return t.Numeric(t.NUMERIC_PRECISION_MAX, scale)


def accumulator_schema(node: r.Aggregate) -> Schema:
    """The keys, the number of rows, and two columns per aggregate."""
    made = [SchemaColumn(f"key_{at}", key.type) for at, key in enumerate(node.keys)]
    made.append(SchemaColumn("rows", t.BigInt(), nullable=False))
    for at, call in enumerate(node.aggregates):
        made.append(SchemaColumn(f"count_{at}", t.BigInt(), nullable=False))
        made.append(SchemaColumn(f"sum_{at}", sum_type(call), nullable=False))
    return Schema(tuple(made))


def argument(call: AggregateCall) -> Scalar:
    """What an aggregate takes of a row: NULL where its filter does not pass."""
    value = call.arguments[0] if call.arguments else TRUE
    if call.filter is None:
        return value
    return Case((When(call.filter, value),), Literal(value.type, None))


def arguments(node: r.Aggregate, frame: DataFrame, *, timed: bool = False) -> DataFrame:
    """Of the input the keys, k0 and on, and the arguments of the aggregates, a0 and on."""
    scalars = [*node.keys, *(argument(call) for call in node.aggregates)]
    wanted = [*names(len(node.keys), "k"), *names(len(node.aggregates), "a")]
    values, error = computed(scalars, columns(len(node.input.schema)), wanted)
    return frame.select(*values, error, *rest(timed=timed))


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


def sums_of(call: AggregateCall, value: Column, *, once: bool) -> tuple[Column, Column]:
    """The accumulators of one aggregate over the rows of a group: how many values, their sum."""
    diff, kind = col(DIFF), spark_name(sum_type(call))
    count = f.count(value if argument(call).nullable else f.lit(1))
    if not once:
        count = f.sum(f.when(value.isNotNull(), diff).otherwise(f.lit(0)))
    zero = f.lit(0).cast(kind)
    if call.entry.name == "count":
        return count, f.max(zero)
    if once:
        # At its own digits: Spark adds short decimals several times as fast as long ones, and short
        # integers as 64 bits, which billions of them do not fill.
        own, given = value, call.arguments[0].type
        if not isinstance(given, t.SmallInt | t.Integer):
            own = value.cast(spark_name(numeric_for(given)))
        return count, f.coalesce(f.sum(own).cast(kind), zero)
    weighed = (value.cast(kind) * diff.cast("decimal(19,0)")).cast(kind)
    return count, f.sum(f.when(value.isNotNull(), weighed).otherwise(zero)).cast(kind)


def accumulated(
    node: r.Aggregate, frame: DataFrame, *, fails: bool, once: bool = False
) -> DataFrame:
    """The accumulators of contents: one row per group, and the errors of the input."""
    given = arguments(node, frame)
    keys = renamed(len(node.keys), "k")
    apart = fails and not keys
    source = rows_of(given) if apart else given
    made, error, diff = grouped(source, keys, sums(node, once=once), fails=fails and not apart)
    if keys and not once:
        made = made.where(error.isNotNull() | (col(f"c{len(keys)}") != 0))
    schema = accumulator_schema(node)
    rows = made.select(*columns(len(schema)), error, diff)
    return union([rows, errors_of(given, schema)]) if apart else rows


@dataclass(frozen=True)
class Final:
    """An aggregate, and where it may have no value, why."""

    value: Column
    error: Column | None = None


def finished(node: r.Aggregate, frame: DataFrame) -> DataFrame:
    """The aggregates of the accumulators of contents, row by row: linear."""
    count = len(node.keys)
    values = columns(count)
    errors = [col(ERROR)]
    for at, call in enumerate(node.aggregates):
        made = finish(call, col(f"c{count + 1 + 2 * at}"), col(f"c{count + 2 + 2 * at}"))
        values.append(made.value)
        if made.error is not None:
            errors.append(made.error)
    return frame.select(
        *(value.alias(f"c{at}") for at, value in enumerate(values)),
        f.coalesce(*errors).alias(ERROR),
        DIFF,
    )


def finish(call: AggregateCall, count: Column, total: Column) -> Final:
    """The aggregate of its accumulators."""
    match call.entry.name:
        case "count":
            return Final(count)
        case "sum":
            value = f.when(count != 0, total.try_cast(spark_name(call.type)))
            reason = (
                "numeric field overflow"
                if isinstance(call.type, t.Numeric)
                else (f"{call.type} out of range")
            )
            lost = value.isNull() & (count != 0)
            return Final(value, f.when(lost, f.lit(f"22003 {reason}")))
    return Final(_average(call)(total, count))


def final(call: AggregateCall, count: int, total: Decimal) -> Any:
    """The aggregate of its accumulators, in plain Python; `OutOfRange` when it does not fit."""
    match call.entry.name:
        case "count":
            return count
        case "sum":
            whole = isinstance(call.type, t.BigInt)
            return fit(int(total) if whole else total, call.type) if count else None
    return fit(numeric.divide(total, Decimal(count)), call.type) if count else None


def _average(call: AggregateCall) -> Callable[..., Column]:
    """Total / count with PostgreSQL's digits."""
    kind, result = sum_type(call), call.type

    def average(totals: pa.Array, counts: pa.Array) -> pa.Array:
        """Runs on executors."""
        made = averaged(totals, counts, result)
        if made is not None:
            return made
        pairs = zip(counts.to_pylist(), from_array(totals, kind), strict=True)
        return to_array([final(call, count, total) for count, total in pairs], result)

    return vectorized(average, spark_type(result))
