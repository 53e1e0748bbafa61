"""Operators that work key by key: recomputed, for the keys at hand, by the reference.

A *key* of an operator is a function of the rows of its inputs such that rows with different keys
have nothing to do with each other:

    op(R) = the sum of op(R where key = k) over all k

So an operator may be asked of some keys alone, and for the keys that changed

    d(op)(R) = differentiate(op(integrate(R where key = k))), summed over the changed k

which is what `KeyedTask` computes: old contents and changes of one key in, every time at which
something changed, the answers before and after. Columns whose stored values may differ though they
are equal in SQL (intervals, floats, documents, plain numerics) are in keys by their canonical form
(`noonmark.sql.functions.key`), which is the same for equal values.

Where it runs: driver, except `KeyedTask`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, StructField, StructType

from noonmark.compute.kernel.row_by_row import error_text
from noonmark.compute.plan.memo import once
from noonmark.compute.spark.column import col, null
from noonmark.compute.spark.frame import (
    ERROR,
    arrow_frame_schema,
    errors_of,
    frame_schema,
    rows_of,
    union,
)
from noonmark.compute.spark.linear import extended
from noonmark.errors import EvaluationError
from noonmark.persist.part.run import DIFF, TIME
from noonmark.rows.arrow import arrow_type, from_array, to_array
from noonmark.rows.exact import is_exact
from noonmark.rows.identity import hashable
from noonmark.rows.schema import Schema
from noonmark.rows.spark import spark_type
from noonmark.rows.types import SqlType
from noonmark.sql.functions.key import KEY_FORM
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.encoding import encode
from noonmark.sql.ir.node import Node, rebuild
from noonmark.sql.ir.scalar import Call, Scalar, column
from noonmark.sql.meaning import evaluation as served

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SIDE = "_side"
#: The time of what was there before all changes.
BEFORE = -1

Counts = dict[tuple[Any, ...], int]
Answer = tuple[Counts, str | None]


@dataclass(frozen=True)
class Part:
    """One input of a keyed operator, and the key over its rows."""

    relation: r.Relation
    key: tuple[Scalar, ...]


@once
def parts_of(node: r.Relation) -> tuple[Part, ...]:
    """The inputs of an operator with their keys."""
    match node:
        case r.Aggregate():
            sides = [(node.input, node.keys)]
        case r.TopK() | r.Window():
            sides = [(node.input, node.partition)]
        case r.Distinct():
            sides = [(node.input, _whole_row(node.input))]
        case r.Intersect() | r.Except():
            sides = [(node.left, _whole_row(node.left)), (node.right, _whole_row(node.right))]
        case r.Join():
            sides = [
                (node.left, tuple(key.left for key in node.keys)),
                (node.right, tuple(key.right for key in node.keys)),
            ]
        case r.Recursive():
            sides = [(each, ()) for each in reads_of(node)]
        case _:
            raise AssertionError(f"{type(node).__name__} has no key")
    exact = [_exact([key[at].type for _, key in sides]) for at in range(len(sides[0][1]))]
    return tuple(Part(relation, tuple(map(_formed, key, exact))) for relation, key in sides)


def _formed(key: Scalar, exact: bool) -> Scalar:
    """The part of a key in a form that is the same for values that are equal in SQL."""
    return key if exact else Call(KEY_FORM, (key,))


def reads_of(node: r.Relation) -> list[r.Relation]:
    """What a plan reads, each once: collections, with the filters and projections on them."""
    found: set[r.Relation] = set()

    def visit(each: r.Relation) -> None:
        if r.is_read(each):
            found.add(each)
        else:
            for below in r.relations_below(each):
                visit(below)

    visit(node)
    return sorted(found, key=encode)


def is_known(node: r.Relation) -> bool:
    """Whether the operator works by keys."""
    kinds = r.Aggregate, r.TopK, r.Window, r.Distinct, r.Intersect, r.Except, r.Join
    return isinstance(node, kinds) or (isinstance(node, r.Recursive) and bool(reads_of(node)))


def _whole_row(relation: r.Relation) -> tuple[Scalar, ...]:
    return tuple(column(at, each) for at, each in enumerate(relation.schema))


def _exact(kinds: Sequence[SqlType]) -> bool:
    stored = {spark_type(kind).simpleString() for kind in kinds}
    return len(stored) == 1 and is_exact(kinds[0])


def as_updates(table: pa.Table, count: int) -> pa.Table:
    """So many plain rows in the layout: each once, without an error."""
    errors, ones = pa.nulls(count, pa.string()), pa.array([1] * count, pa.int64())
    # Column by column: a table without columns does not know how many rows it has.
    return pa.table([*table.columns, errors, ones], names=[*table.column_names, ERROR, DIFF])


def keyed_frames(
    parts: Sequence[Part], frames: Sequence[DataFrame], *, timed: bool
) -> list[DataFrame]:
    """The frames with the values of the key, k0 and on."""
    return [
        extended(frame, len(part.relation.schema), part.key, "k", timed=timed)
        for part, frame in zip(parts, frames, strict=True)
    ]


def recomputed(
    node: r.Relation,
    parts: Sequence[Part],
    frames: Sequence[DataFrame],
    *,
    timed: bool,
    fails: bool = True,
    tasks: int | None = None,
) -> DataFrame:
    """The operator of the frames: its contents, or with times its changes.

    Args:
        node: the operator.
        parts: its inputs.
        frames: what is known of each; with times, old contents are at `BEFORE`.
        timed: whether the frames have times.
        fails: whether the frames, or the keys, may have errors.
        tasks: how many tasks to spread the keys over; None lets Spark decide.
    """
    with_keys = keyed_frames(parts, frames, timed=timed)
    widths = [len(part.relation.schema) for part in parts]
    tagged = [
        _tagged(rows_of(frame, fails), side, parts, timed) for side, frame in enumerate(with_keys)
    ]
    keys = [col(f"k{at}") for at in range(len(parts[0].key))]
    if not keys:
        tagged.append(_marker(tagged[0]))
    rows = union(tagged)
    if not keys or tasks == 1:
        rows = rows.coalesce(1)
    else:
        rows = rows.repartition(tasks, *keys) if tasks else rows.repartition(*keys)
    operator = over_scans(node)
    work = KeyedTask(operator, tuple(parts_types(parts)), len(keys), tuple(widths), timed)
    made = rows.mapInArrow(work, frame_schema(node.schema, timed=timed))
    errors = [errors_of(frame, node.schema, timed=timed) for frame in with_keys] if fails else []
    if timed:
        errors = [frame.where(col(TIME) != BEFORE) for frame in errors]
    return union([made, *errors])


def _tagged(frame: DataFrame, side: int, parts: Sequence[Part], timed: bool) -> DataFrame:
    """Rows of all inputs side by side: each has the columns of its own, and NULL for the others."""
    values: list[Column] = []
    for number, part in enumerate(parts):
        for at, each in enumerate(part.relation.schema):
            own = col(f"c{at}") if number == side else null(each.type)
            values.append(own.alias(f"s{number}_{at}"))
    times = [TIME] if timed else []
    keys = [f"k{at}" for at in range(len(parts[0].key))]
    return frame.select(f.lit(side).alias(SIDE), *keys, *values, *times, DIFF)


def _marker(frame: DataFrame) -> DataFrame:
    """A row of no input, so that a task runs also when there are no rows: one group always is."""
    fields = [StructField(x.name, x.dataType) for x in frame.schema.fields]
    schema = StructType([StructField(SIDE, IntegerType()), *fields[1:]])
    empty = [-1, *([None] * (len(fields) - 2)), 0]
    return frame.sparkSession.createDataFrame([tuple(empty)], schema)


def over_scans(node: r.Relation) -> r.Relation:
    """The operator with its inputs replaced by collections named by their numbers."""
    match node:
        case r.Join() | r.Intersect() | r.Except():
            left, right = r.Scan("0", node.left.schema), r.Scan("1", node.right.schema)
            return replace(node, left=left, right=right)
        case r.Recursive():
            reads = enumerate(reads_of(node))
            return _with_scans(node, {each: r.Scan(str(at), each.schema) for at, each in reads})
    return replace(node, input=r.Scan("0", node.input.schema))  # type: ignore[attr-defined,call-arg]


def _with_scans(node: r.Relation, places: dict[r.Relation, r.Scan]) -> r.Relation:
    def act(child: Node) -> Node:
        if isinstance(child, r.Relation) and child in places:
            return places[child]
        return rebuild(child, act)

    return rebuild(node, act)


def parts_types(parts: Sequence[Part]) -> Iterator[SqlType]:
    """The types of the columns that a task gets: the key, then each input."""
    yield from (scalar.type for scalar in parts[0].key)
    for part in parts:
        yield from (each.type for each in part.relation.schema)


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
            return served.contents(self.operator, given), None
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
        return pa.RecordBatch.from_arrays(
            arrays, schema=arrow_frame_schema(schema, timed=self.timed)
        )


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
