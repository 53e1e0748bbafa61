"""Table functions: any number of rows for each row.

Law (linear): [FlatMap(R, f)](r + s) = [R](r) * how often f(r) gives s. A row on which f fails is an
error as often as the row is there.

Where it runs: executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from noonmark.compute.kernel.layout import ERROR, layout_schema
from noonmark.compute.scalar.row_by_row import error_text
from noonmark.errors import EvaluationError
from noonmark.persist.part.run import DIFF, TIME
from noonmark.rows.arrow import arrow_type, from_array, to_array
from noonmark.rows.identity import hashable
from noonmark.sql.ir import relation as r
from noonmark.sql.meaning.relation import evaluate

Row = tuple[Any, ...]


@dataclass(frozen=True)
class FlatMapTask:
    """Runs on executors: updates in, updates out."""

    node: r.FlatMap
    timed: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batch by batch."""
        for batch in batches:
            if batch.num_rows:
                yield self._map(batch)

    def _map(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        given = [
            from_array(batch.column(f"c{at}").cast(arrow_type(each.type)), each.type)
            for at, each in enumerate(self.node.input.schema)
        ]
        errors, diffs = batch.column(ERROR).to_pylist(), batch.column(DIFF).to_pylist()
        times = batch.column(TIME).to_pylist() if self.timed else [0] * batch.num_rows
        rows = zip(*given, strict=True) if given else iter([()] * batch.num_rows)
        made: list[tuple[Row, str | None, int, int]] = []
        for row, error, time, diff in zip(rows, errors, times, diffs, strict=True):
            made += [(*each, time, diff * n) for *each, n in self._of_row(row, error)]
        return self._batch(made)

    def _of_row(self, row: Row, error: str | None) -> Iterator[tuple[Row, str | None, int]]:
        """What one row gives, and how often."""
        nothing = (None,) * len(self.node.schema)
        if error is not None:
            yield nothing, error, 1
            return
        try:
            found = evaluate(self.node, {"0": {tuple(map(hashable, row)): 1}})
        except EvaluationError as failure:
            yield nothing, error_text(failure), 1
            return
        for each, count in found.items():
            yield each, None, count

    def _batch(self, made: list[tuple[Row, str | None, int, int]]) -> pa.RecordBatch:
        arrays = [
            to_array([row[at] for row, _, _, _ in made], each.type)
            for at, each in enumerate(self.node.schema)
        ]
        arrays.append(pa.array([error for _, error, _, _ in made], pa.string()))
        if self.timed:
            arrays.append(pa.array([time for _, _, time, _ in made], pa.int64()))
        arrays.append(pa.array([diff for _, _, _, diff in made], pa.int64()))
        schema = layout_schema(self.node.schema, timed=self.timed)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
