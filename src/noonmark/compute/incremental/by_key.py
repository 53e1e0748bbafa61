"""Operators that have no kernel, asked of their meaning key by key.

For the keys that changed (`noonmark.compute.plan.keys`)

    d(op)(R) = differentiate(op(integrate(R where key = k))), summed over the changed k

which is what `KeyedTask` computes: old contents and changes of one key in, every time at which
something changed, the answers before and after.

Law: `contents` is the operator of the rows of whole keys, without the keys that have no answer;
`changes` is what its answers become, errors among them.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from noonmark.compute.incremental.flat_map import FlatMapTask
from noonmark.compute.kernel.layout import ERROR, layout_schema
from noonmark.compute.kernel.scalar import projected
from noonmark.compute.kernel.updates import (
    BEFORE,
    Changes,
    Errors,
    Rows,
    concat,
    empty_rows,
    one_array,
)
from noonmark.compute.plan.keys import KeyedInput, keyed_inputs, keyed_types, over_scans
from noonmark.compute.scalar.row_by_row import error_text
from noonmark.errors import EvaluationError
from noonmark.persist.part.run import DIFF, TIME
from noonmark.rows.arrow import arrow_type, from_array, to_array
from noonmark.rows.identity import hashable
from noonmark.rows.schema import Schema
from noonmark.rows.types import SqlType
from noonmark.sql.ir import relation as r
from noonmark.sql.meaning import evaluation

SIDE = "_side"

Counts = dict[tuple[Any, ...], int]
Answer = tuple[Counts, str | None]


def contents(node: r.Relation, sides: Sequence[Rows]) -> Rows:
    """The operator of what its inputs hold."""
    return _run(node, sides, timed=False).rows


def changes(node: r.Relation, sides: Sequence[Rows]) -> Changes:
    """The changes of the operator; what was there before is at `BEFORE`."""
    return _run(node, sides, timed=True)


def _run(node: r.Relation, sides: Sequence[Rows], *, timed: bool) -> Changes:
    parts = keyed_inputs(node)
    widths = tuple(len(part.relation.schema) for part in parts)
    types = tuple(keyed_types(parts))
    width = len(parts[0].key)
    work = KeyedTask(over_scans(node), types, width, widths, timed)
    batches = [_tagged(parts, number, rows, timed=timed) for number, rows in enumerate(sides)]
    if not width:
        batches.append(_marker(types, timed=timed))
    made = list(work(batches))
    if not made:
        return Changes(empty_rows(node.schema))
    return from_layout(pa.Table.from_batches(made))


def _tagged(parts: Sequence[KeyedInput], side: int, rows: Rows, *, timed: bool) -> pa.RecordBatch:
    """The rows of one input, as the task takes them: the key, then the columns of all inputs."""
    values, rows = projected(parts[side].key, rows, Errors())
    columns: list[pa.Array] = [pa.array(np.full(len(rows), side, np.int32)), *values]
    for number, part in enumerate(parts):
        for at, each in enumerate(part.relation.schema):
            own = rows.columns[at] if number == side else pa.nulls(len(rows), arrow_type(each.type))
            columns.append(own)
    names = [SIDE, *(f"x{at}" for at in range(len(columns) - 1))]
    times = [pa.array(rows.time)] if timed else []
    return pa.RecordBatch.from_arrays(
        [*columns, *times, pa.array(rows.diff)], names=[*names, *([TIME] if timed else []), DIFF]
    )


def _marker(types: Sequence[object], *, timed: bool) -> pa.RecordBatch:
    """A row of no input: an operator without a key has an answer also over no rows."""
    columns = [pa.array([-1], pa.int32())]
    columns += [pa.nulls(1, arrow_type(kind)) for kind in types]
    names = [SIDE, *(f"x{at}" for at in range(len(types)))]
    times = [pa.array([BEFORE], pa.int64())] if timed else []
    return pa.RecordBatch.from_arrays(
        [*columns, *times, pa.array([0], pa.int64())],
        names=[*names, *([TIME] if timed else []), DIFF],
    )


def from_layout(table: pa.Table) -> Changes:
    """Rows and errors of a table in the layout of `noonmark.compute.kernel.layout`."""
    table = table.combine_chunks()
    timed = TIME in table.column_names
    diff = one_array(table.column(DIFF)).to_numpy()
    time = one_array(table.column(TIME)).to_numpy() if timed else np.full(len(diff), -1, np.int64)
    texts = one_array(table.column(ERROR))
    given = [one_array(column) for column in table.columns[: table.column_names.index(ERROR)]]
    rows = Rows(tuple(given), time, diff)
    if texts.null_count == len(texts):
        return Changes(rows)
    errors = Errors()
    errors.add(texts.to_pylist(), time, diff)
    fine = np.flatnonzero(texts.is_null().to_numpy(zero_copy_only=False))
    return Changes(rows.take(fine), tuple(errors.found))


def flat_mapped(node: r.FlatMap, rows: Rows, errors: Errors) -> Rows:
    """A table function applied to every row."""
    operator = over_scans(node)
    assert isinstance(operator, r.FlatMap)
    names = [f"c{at}" for at in range(len(rows.columns))]
    texts = pa.nulls(len(rows), pa.string())
    batch = pa.RecordBatch.from_arrays(
        [*rows.columns, texts, pa.array(rows.time), pa.array(rows.diff)],
        names=[*names, ERROR, TIME, DIFF],
    )
    made = [from_layout(pa.Table.from_batches([b])) for b in FlatMapTask(operator, True)([batch])]
    for each in made:
        errors.found += each.errors
    return concat([each.rows for each in made], node.schema)


@dataclass(frozen=True)
class KeyedTask:
    """Runs on executors: all keys of one partition."""

    operator: r.Relation
    types: tuple[SqlType, ...]
    key_width: int
    widths: tuple[int, ...]
    timed: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The updates of the answers, key by key."""
        groups = self._groups(batches)
        made: list[tuple[tuple[Any, ...] | None, str | None, int, int]] = []
        for updates in groups.values():
            made += self._changes(updates)
        if made:
            yield self._batch(made)

    def _groups(
        self, batches: Iterable[pa.RecordBatch]
    ) -> dict[tuple[Any, ...], list[tuple[int, tuple[Any, ...], int, int]]]:
        """The updates of each key: input, row, time, diff."""
        groups: dict[tuple[Any, ...], list[tuple[int, tuple[Any, ...], int, int]]] = {}
        starts = [self.key_width + sum(self.widths[:side]) for side in range(len(self.widths))]
        for batch in batches:
            sides = batch.column(0).to_pylist()
            values = [
                from_array(batch.column(1 + at).cast(arrow_type(kind)), kind)
                for at, kind in enumerate(self.types)
            ]
            times = batch.column(TIME).to_pylist() if self.timed else [0] * batch.num_rows
            diffs = batch.column(DIFF).to_pylist()
            rows = zip(*values, strict=True) if values else iter([()] * len(sides))
            for side, row, time, diff in zip(sides, rows, times, diffs, strict=True):
                group = groups.setdefault(tuple(row[: self.key_width]), [])
                if side >= 0:
                    own = row[starts[side] : starts[side] + self.widths[side]]
                    group.append((side, tuple(map(hashable, own)), time, diff))
        return groups

    def _changes(
        self, updates: list[tuple[int, tuple[Any, ...], int, int]]
    ) -> Iterator[tuple[tuple[Any, ...] | None, str | None, int, int]]:
        """What the answer for one key becomes, at every time at which its inputs change."""
        contents: list[Counts] = [{} for _ in self.widths]
        by_time: dict[int, list[tuple[int, tuple[Any, ...], int]]] = {}
        for side, row, time, diff in updates:
            by_time.setdefault(time, []).append((side, row, diff))
        for side, row, diff in by_time.pop(BEFORE, []):
            _add(contents[side], row, diff)
        if not self.timed:
            by_time.setdefault(0, [])
        before = self._ask(contents) if self.timed else ({}, None)
        for time in sorted(by_time):
            for side, row, diff in by_time[time]:
                _add(contents[side], row, diff)
            after = self._ask(contents)
            yield from _difference(before, after, time)
            before = after

    def _ask(self, contents: list[Counts]) -> Answer:
        given = {str(side): counts for side, counts in enumerate(contents)}
        if self.key_width and not any(contents):
            return {}, None
        try:
            return evaluation.contents(self.operator, given), None
        except EvaluationError as error:
            return {}, error_text(error)

    def _batch(
        self, made: list[tuple[tuple[Any, ...] | None, str | None, int, int]]
    ) -> pa.RecordBatch:
        schema: Schema = self.operator.schema
        empty = (None,) * len(schema)
        rows = [empty if row is None else row for row, _, _, _ in made]
        arrays = [to_array([row[at] for row in rows], each.type) for at, each in enumerate(schema)]
        arrays.append(pa.array([error for _, error, _, _ in made], pa.string()))
        if self.timed:
            arrays.append(pa.array([time for _, _, time, _ in made], pa.int64()))
        arrays.append(pa.array([diff for _, _, _, diff in made], pa.int64()))
        return pa.RecordBatch.from_arrays(arrays, schema=layout_schema(schema, timed=self.timed))


def _add(counts: Counts, row: tuple[Any, ...], diff: int) -> None:
    total = counts.get(row, 0) + diff
    if total:
        counts[row] = total
    else:
        counts.pop(row, None)


def _difference(
    before: Answer, after: Answer, time: int
) -> Iterator[tuple[tuple[Any, ...] | None, str | None, int, int]]:
    for row in {**before[0], **after[0]}:
        if diff := after[0].get(row, 0) - before[0].get(row, 0):
            yield row, None, time, diff
    if before[1] != after[1]:
        for error, diff in ((before[1], -1), (after[1], 1)):
            if error is not None:
                yield None, error, time, diff
