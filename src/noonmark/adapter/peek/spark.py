"""A peek as a Spark job: for inputs too large to be evaluated in process.

Law: the multiset that `sql.meaning.relation` defines for the plan at that time; a row on which a
scalar has no value, or a view among the inputs without an answer, makes the whole answer an error.

`SparkJob.pieces` gives it piece by piece: Spark computes one partition after the other as they are
taken, and executors pack the rows into pieces of Arrow's own format. So the driver holds two
partitions in the JVM, which Spark cuts to fit, and one piece in Python: however many there are.

Where it runs: driver, in a thread that may block; `_pack` on executors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from noonmark.adapter.peek.chunks import CHUNK_ROWS
from noonmark.adapter.peek.errors import error_of
from noonmark.adapter.peek.rows import Row, decoded
from noonmark.compute.jvm import session
from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.plan.definition import inlined
from noonmark.compute.spark.contents import BatchQuery
from noonmark.compute.spark.inputs import frame_at
from noonmark.persist.client import Client
from noonmark.persist.part.run import DIFF
from noonmark.rows.arrow import conform
from noonmark.rows.exact import is_exact
from noonmark.rows.schema import Column, Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.scalar import ColumnRef

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

_PACKED = "piece"


@dataclass(frozen=True)
class SparkJob:
    """One question to Spark.

    Attributes:
        spark: the session.
        client: the location.
        relation: a plan over collections.
        time: when.
        id: what Spark knows its jobs by.
    """

    spark: SparkSession
    client: Client
    relation: r.Relation
    time: int
    id: str

    def multiset(self) -> dict[Row, int]:
        """The rows, all at once."""
        plan, frame = self._frame()
        total: Counter[Row] = Counter()
        for row, diff in _counted(frame.toArrow(), plan.schema):
            total[row] += diff
        return {row: count for row, count in total.items() if count}

    def pieces(self, order: Sequence[SortKey] = ()) -> Iterator[list[Row]]:
        """The rows in pieces, in an order that `can_order`."""
        plan, frame = self._frame()
        if order:
            frame = frame.orderBy(*map(_sorted, order))
        packed = frame.mapInArrow(_pack, f"{_PACKED} binary")
        return _unpacked(packed.toLocalIterator(prefetchPartitions=True), plan.schema)

    def give_up(self) -> None:
        """End it: nobody waits for it any more."""
        self.spark.sparkContext.cancelJobGroup(self.id)

    def _frame(self) -> tuple[r.Relation, DataFrame]:
        self.spark.sparkContext.setJobGroup(self.id, "a query", interruptOnCancel=True)
        plan = inlined(self.relation, {})
        batches = session.for_batches(self.spark)
        read = partial(frame_at, batches, self.client, self.time)
        return plan, BatchQuery(batches, read, inputs_fail=True).frame(plan)


def can_order(order: Sequence[SortKey]) -> bool:
    """Whether Spark's order is the one that is asked for."""
    return all(isinstance(key.scalar, ColumnRef) and is_exact(key.scalar.type) for key in order)


def _sorted(key: SortKey) -> SparkColumn:
    from pyspark.sql import functions as f

    assert isinstance(key.scalar, ColumnRef), "the caller asked `can_order`"
    value = f.col(f"c{key.scalar.index}")
    if key.descending:
        return value.desc_nulls_first() if key.nulls_first else value.desc_nulls_last()
    return value.asc_nulls_first() if key.nulls_first else value.asc_nulls_last()


def _pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows as pieces of bytes, each a table. Runs on executors."""
    for batch in batches:
        for start in range(0, batch.num_rows, CHUNK_ROWS):
            sink = pa.BufferOutputStream()
            piece = batch.slice(start, CHUNK_ROWS)
            with pa.ipc.new_stream(sink, piece.schema) as writer:
                writer.write_batch(piece)
            data = pa.array([sink.getvalue().to_pybytes()], pa.binary())
            yield pa.RecordBatch.from_arrays([data], [_PACKED])


def _unpacked(packed: Iterator[Any], schema: Schema) -> Iterator[list[Row]]:
    for each in packed:
        table = pa.ipc.open_stream(each[0]).read_all()
        yield [row for row, count in _counted(table, schema) for _ in range(count)]


def _counted(table: pa.Table, schema: Schema) -> Iterator[tuple[Row, int]]:
    """The rows of the layout with their multiplicities; raises the first error among them."""
    for text in table.column(ERROR).drop_null().to_pylist()[:1]:
        sqlstate, _, message = text.partition(" ")
        raise error_of(sqlstate, message)
    names = list(schema.names)
    free = Schema(tuple(Column(each.name, each.type) for each in schema))
    data = conform(table.select(range(len(names))).rename_columns(names), free)
    return zip(decoded(data, free), table.column(DIFF).to_pylist(), strict=True)
