"""Operators that have no kernel, asked of the reference key by key.

Law: `contents` is the operator of the rows of whole keys, without the keys that have no answer;
`changes` is what its answers become, errors among them (`noonmark.compute.spark.keyed.KeyedTask`).

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from noonmark.compute.kernel.scalar import projected
from noonmark.compute.kernel.updates import Changes, Errors, Rows, concat, empty_rows, one_array
from noonmark.compute.spark import keyed
from noonmark.compute.spark.flatmap import FlatMapTask
from noonmark.compute.spark.frame import ERROR
from noonmark.persist.part.run import DIFF, TIME
from noonmark.rows.arrow import arrow_type
from noonmark.sql.ir import relation as r


def contents(node: r.Relation, sides: Sequence[Rows]) -> Rows:
    """The operator of what its inputs hold."""
    return _run(node, sides, timed=False).rows


def changes(node: r.Relation, sides: Sequence[Rows]) -> Changes:
    """The changes of the operator; what was there before is at `BEFORE`."""
    return _run(node, sides, timed=True)


def _run(node: r.Relation, sides: Sequence[Rows], *, timed: bool) -> Changes:
    parts = keyed.parts_of(node)
    widths = tuple(len(part.relation.schema) for part in parts)
    types = tuple(keyed.parts_types(parts))
    width = len(parts[0].key)
    work = keyed.KeyedTask(keyed.over_scans(node), types, width, widths, timed)
    batches = [_tagged(parts, number, rows, timed=timed) for number, rows in enumerate(sides)]
    if not width:
        batches.append(_marker(types, timed=timed))
    made = list(work(batches))
    if not made:
        return Changes(empty_rows(node.schema))
    return from_layout(pa.Table.from_batches(made))


def _tagged(parts: Sequence[keyed.Part], side: int, rows: Rows, *, timed: bool) -> pa.RecordBatch:
    """The rows of one input, as the task takes them: the key, then the columns of all inputs."""
    keys, rows = projected(parts[side].key, rows, Errors())
    columns: list[pa.Array] = [pa.array(np.full(len(rows), side, np.int32)), *keys]
    for number, part in enumerate(parts):
        for at, each in enumerate(part.relation.schema):
            own = rows.columns[at] if number == side else pa.nulls(len(rows), arrow_type(each.type))
            columns.append(own)
    names = [keyed.SIDE, *(f"x{at}" for at in range(len(columns) - 1))]
    times = [pa.array(rows.time)] if timed else []
    return pa.RecordBatch.from_arrays(
        [*columns, *times, pa.array(rows.diff)], names=[*names, *([TIME] if timed else []), DIFF]
    )


def _marker(types: Sequence[object], *, timed: bool) -> pa.RecordBatch:
    """A row of no input: an operator without a key has an answer also over no rows."""
    columns = [pa.array([-1], pa.int32())]
    columns += [pa.nulls(1, arrow_type(kind)) for kind in types]
    names = [keyed.SIDE, *(f"x{at}" for at in range(len(types)))]
    times = [pa.array([keyed.BEFORE], pa.int64())] if timed else []
    return pa.RecordBatch.from_arrays(
        [*columns, *times, pa.array([0], pa.int64())],
        names=[*names, *([TIME] if timed else []), DIFF],
    )


def from_layout(table: pa.Table) -> Changes:
    """Rows and errors of a table in the layout of `noonmark.compute.spark.frame`."""
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
    operator = keyed.over_scans(node)
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
