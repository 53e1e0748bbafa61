"""Accumulators that Spark does not add up itself: by Python workers, in parts and then together.

Law: ``summed(node, rows)`` are the accumulators of the rows, one row per group (and time); without
keys and times there is one, whatever there is.

Where it runs: driver; `Adding` and `Together` on executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from noonmark.compute.kernel.accumulator import accumulator_schema, argument
from noonmark.compute.kernel.sums import added, nothing, together
from noonmark.compute.kernel.updates import one_array
from noonmark.compute.spark.frame import columns, names
from noonmark.persist.part.run import DIFF
from noonmark.rows.arrow import stored
from noonmark.rows.spark import spark_type
from noonmark.rows.types import BigInt, SqlType
from noonmark.sql.ir import relation as r

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: So many rows are added up at once: groups are numbered anew each time.
ROWS_AT_ONCE = 1 << 20


def summed(node: r.Aggregate, rows: DataFrame) -> DataFrame:
    """The accumulators of a frame of arguments: c0 and on.

    Args:
        node: the aggregation.
        rows: keys, k0 and on, arguments, a0 and on, and the rest of the layout; without errors.
    """
    width, schema = len(node.keys), accumulator_schema(node)
    given = rows.select(*names(width, "k"), *names(len(node.aggregates), "a"), DIFF)
    fields = [StructField(f"c{at}", spark_type(each.type)) for at, each in enumerate(schema)]
    layout = StructType(fields)
    parts = given.mapInArrow(Adding(node), layout)
    if not width:
        zero = pa.table(nothing(schema), names=names(len(schema)))
        parts = parts.unionAll(rows.sparkSession.createDataFrame(zero, schema=layout))
    parts = parts.repartition(*columns(width)) if width else parts.coalesce(1)
    return parts.mapInArrow(Together(node), layout)


@dataclass(frozen=True)
class Adding:
    """The accumulators of the rows of one partition, as many at a time as fit."""

    node: r.Aggregate

    @property
    def kinds(self) -> list[SqlType]:
        """Of the columns that are given."""
        arguments = [argument(call).type for call in self.node.aggregates]
        return [*(key.type for key in self.node.keys), *arguments, BigInt()]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Runs on executors."""
        gathered: list[pa.RecordBatch] = []
        for batch in batches:
            gathered.append(batch)
            if sum(each.num_rows for each in gathered) >= ROWS_AT_ONCE:
                yield self._added(gathered)
                gathered = []
        if gathered:
            yield self._added(gathered)

    def _added(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        *given, diff = _arrays(batches, self.kinds)
        width = len(self.node.keys)
        made = added(self.node, given[:width], given[width:], diff.to_numpy())
        return pa.RecordBatch.from_arrays(made, names=names(len(made)))


@dataclass(frozen=True)
class Together:
    """The accumulators of all parts of the groups of one partition."""

    node: r.Aggregate

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Runs on executors."""
        gathered = list(batches)
        if not gathered:
            return
        kinds = [each.type for each in accumulator_schema(self.node)]
        given = _arrays(gathered, kinds)
        width = len(self.node.keys)
        made = together(self.node, given[:width], given[width:])
        yield pa.RecordBatch.from_arrays(made, names=names(len(made)))


def _arrays(batches: list[pa.RecordBatch], kinds: list[SqlType]) -> list[pa.Array]:
    table = pa.Table.from_batches(batches)
    found = zip(table.columns, kinds, strict=True)
    return [stored(one_array(column), kind) for column, kind in found]
