"""Linear aggregates: those for which sums are enough.

Law: the accumulators of a group (`noonmark.compute.kernel.accumulator`) at time t are those before
`lower` plus the sum of the changes' accumulators at times up to t. A group is there while its
number of rows is not 0; without keys there is one group always.

So per group and time at which it changes, the old row goes and the new one comes: these are the
changes of the arrangement of accumulators, and the aggregates are a projection of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType

from noonmark.compute.kernel import accumulator
from noonmark.compute.kernel.large_number import decode, encode
from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.kernel.row_by_row import error_text
from noonmark.compute.plan.arrangement import ArrangementSpec
from noonmark.compute.spark import aggregates
from noonmark.compute.spark.column import col, named
from noonmark.compute.spark.delta.scope import Scope
from noonmark.compute.spark.frame import (
    NOTHING,
    Delta,
    frame_schema,
    names,
    no_error,
    rows_of,
    union,
)
from noonmark.compute.spark.lookup import LookupTarget
from noonmark.errors import EvaluationError
from noonmark.persist.part.run import DIFF, TIME
from noonmark.persist.spark import typed_errors
from noonmark.rows.arrow import arrow_type, from_array, to_array
from noonmark.rows.schema import Schema
from noonmark.rows.spark import spark_type
from noonmark.sql.functions.fit import WIDE
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import may_fail

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def aggregate(node: r.Aggregate, scope: Scope, source: Delta) -> Delta:
    """The changes of a linear aggregation: one Spark job for accumulators and aggregates."""
    if source.empty:
        return NOTHING
    need = ArrangementSpec(node, sums=True)
    with typed_errors():
        made = _changes(node, scope.place(need), source).localCheckpoint()
    schema, count = accumulator.accumulator_schema(node), len(node.keys)
    own = [*names(count), *names(len(node.aggregates), "o")]
    out = dict(zip(own, names(len(own)), strict=True))
    kept = made.where(col(f"c{count}").isNotNull()).select(
        *names(len(schema)), no_error(), TIME, DIFF
    )
    scope.sums[need] = Delta(lambda: kept, settled=True)
    shown = made.select(*(named(a, b) for a, b in out.items()), ERROR, TIME, DIFF)
    return source.then(shown, fails=True)


def _changes(node: r.Aggregate, place: LookupTarget, source: Delta) -> DataFrame:
    """Accumulators, c0 and on, the aggregates of each, o0 and on, and the errors of the input."""
    schema = accumulator.accumulator_schema(node)
    given = aggregates.arguments(node, source.frame, timed=True)
    fails = source.fails or any(map(may_fail, (*node.keys, *node.aggregates)))
    sums = aggregates.accumulated_changes(node, rows_of(given, fails))
    fields = frame_schema(schema, timed=True).fields
    added = [
        StructField(f"o{at}", spark_type(call.type)) for at, call in enumerate(node.aggregates)
    ]
    made = StructType([*fields[: len(schema)], *added, *fields[len(schema) :]])
    rows = sums.mapInArrow(Accumulate(place, node), made)
    if not fails:
        return rows
    empty = [f.lit(None).cast(x.dataType).alias(x.name) for x in made.fields[:-3]]
    failed = given.where(col(ERROR).isNotNull()).select(*empty, ERROR, TIME, DIFF)
    return union([rows, failed])


Row = tuple[Any, ...]


@dataclass(frozen=True)
class Accumulate:
    """Runs on executors: accumulators of changes in, changes of accumulators out."""

    place: LookupTarget
    node: r.Aggregate

    @property
    def schema(self) -> Schema:
        """Of the accumulators."""
        return accumulator.accumulator_schema(self.node)

    @property
    def width(self) -> int:
        """Of the key."""
        return len(self.node.keys)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All groups of one partition."""
        changes: dict[Row, list[tuple[int, Row]]] = {}
        for batch in batches:
            rows = zip(*self._values(batch), strict=True)
            for row, time in zip(rows, batch.column(TIME).to_pylist(), strict=True):
                group = changes.setdefault(row[: self.width], [])
                group.append((time, row[self.width :]))
        old = self._old(set(changes))
        made: list[tuple[Row, int, int]] = []
        for key, updates in changes.items():
            made += self._replaced(key, old.get(key), updates)
        if made:
            yield self._batch(made)

    def _values(self, batch: pa.RecordBatch) -> list[list[Any]]:
        return [
            from_array(batch.column(at).cast(arrow_type(each.type)), each.type)
            for at, each in enumerate(self.schema)
        ]

    def _old(self, keys: set[Row]) -> dict[Row, Row]:
        """The accumulators of the groups as they were."""
        found: dict[Row, Row] = {}
        for table in self.place.rows(keys if self.width else None):
            for batch in table.drop_columns([DIFF]).to_batches():
                for row in zip(*self._values(batch), strict=True):
                    found[row[: self.width]] = row[self.width :]
        return found

    def _replaced(
        self, key: Row, old: Row | None, updates: list[tuple[int, Row]]
    ) -> Iterator[tuple[Row, int, int]]:
        """The old row out and the new one in, at every time at which they differ."""
        for time, more in sorted(updates, key=lambda update: update[0]):
            new = more if old is None else tuple(map(_plus, old, more))
            gone = self.width > 0 and new[0] == 0
            if new != old:
                if old is not None:
                    yield (*key, *old), time, -1
                if not gone:
                    yield (*key, *new), time, 1
            old = None if gone else new

    def _batch(self, made: list[tuple[Row, int, int]]) -> pa.RecordBatch:
        schema = self.schema
        arrays = [
            to_array([row[at] for row, _, _ in made], each.type) for at, each in enumerate(schema)
        ]
        finals = [self._final(row) for row, _, _ in made]
        arrays += [
            to_array([values[at] for values, _ in finals], call.type)
            for at, call in enumerate(self.node.aggregates)
        ]
        arrays += [
            pa.array([error for _, error in finals], pa.string()),
            pa.array([time for _, time, _ in made], pa.int64()),
            pa.array([diff for _, _, diff in made], pa.int64()),
        ]
        layout = [*names(len(schema)), *names(len(self.node.aggregates), "o"), ERROR, TIME, DIFF]
        return pa.RecordBatch.from_arrays(arrays, names=layout)

    def _final(self, row: Row) -> tuple[Row, str | None]:
        """The aggregates of a row of accumulators, or why there are none."""
        calls = zip(self.node.aggregates, accumulator.places(self.node), strict=True)
        try:
            values = tuple(accumulator.final(call, *row[place]) for call, place in calls)
        except EvaluationError as error:
            return (None,) * len(self.node.aggregates), error_text(error)
        return values, None


def _plus(a: Any, b: Any) -> Any:
    if isinstance(a, bytes):
        return encode(decode(a) + decode(b))
    return WIDE.add(a, b) if isinstance(a, Decimal) else a + b
