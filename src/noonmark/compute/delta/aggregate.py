"""Linear aggregates: count, sum and avg over exact numbers.

Law: the accumulators of a group (`noonmark.compute.aggregates`) at time t are those before `lower`
plus the sum of the changes' accumulators at times up to t. A group is there while its number of
rows is not 0; without keys there is one group always.

So per group and time at which it changes, the old row goes and the new one comes: these are the
changes of the arrangement of accumulators, and the aggregates are a projection of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as f

from noonmark.compute import aggregates
from noonmark.compute.arrangement import own_needs
from noonmark.compute.delta.scope import Scope
from noonmark.compute.frame import (
    NOTHING,
    Delta,
    arrow_frame_schema,
    columns,
    errors_of,
    frame_schema,
    rows_of,
    union,
)
from noonmark.compute.lookup import Place
from noonmark.persist.run import DIFF, TIME
from noonmark.rows.arrow import arrow_type, from_array, to_array
from noonmark.rows.schema import Schema
from noonmark.sql.functions.fit import WIDE
from noonmark.sql.ir import relation as r


def aggregate(node: r.Aggregate, scope: Scope, source: Delta) -> Delta:
    """The changes of a linear aggregation."""
    if source.frame is None:
        return NOTHING
    (need,) = own_needs(node)
    schema, width = aggregates.accumulator_schema(node), len(node.keys)
    given = aggregates.arguments(node, source.frame)
    keys = [f.col(f"k{at}").alias(f"c{at}") for at in range(width)]
    sums = rows_of(given).groupBy(*keys, TIME).agg(*aggregates.sums(node))
    sums = sums.select(*columns(len(schema)), TIME)
    if not source.small:
        sums = sums.repartition(*columns(width)) if width else sums.coalesce(1)
    work = Accumulate(scope.place(need), schema, width)
    rows = sums.mapInArrow(work, frame_schema(schema, timed=True))
    changed = union([rows, errors_of(given, schema)])
    settled = scope.arrange(need, Delta(changed, source.bytes))
    if settled.frame is None:
        return NOTHING
    return Delta(aggregates.finished(node, settled.frame), settled.bytes)


Row = tuple[Any, ...]


@dataclass(frozen=True)
class Accumulate:
    """Runs on executors: accumulators of changes in, changes of accumulators out."""

    place: Place
    schema: Schema
    width: int

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
        arrays = [
            to_array([row[at] for row, _, _ in made], each.type)
            for at, each in enumerate(self.schema)
        ]
        arrays += [
            pa.nulls(len(made), pa.string()),
            pa.array([time for _, time, _ in made], pa.int64()),
            pa.array([diff for _, _, diff in made], pa.int64()),
        ]
        return pa.RecordBatch.from_arrays(
            arrays, schema=arrow_frame_schema(self.schema, timed=True)
        )


def _plus(a: Any, b: Any) -> Any:
    return WIDE.add(a, b) if isinstance(a, Decimal) else a + b
