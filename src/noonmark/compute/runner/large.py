"""Ticks that are too large for one task: the same evaluation, cut over tasks by key.

    level 0    each task reads its share of the changes and evaluates what is linear, and joins
    level n    the inputs of stateful operators come from all tasks by the hash of their key; each
               task evaluates those operators for its keys, and what stands on them
    the last   the rows of each collection come by their own hash; each task stores its part

Between levels is Spark's shuffle: all of it is one Spark job. A task looks keys up as the one task
of a small tick does (`noonmark.compute.incremental`); rows never pass through the driver, unless
they are too few to be stored as a part.

Law: what is stored over ``[lower, upper)`` is what one task would make of all changes, consolidated
(`noonmark.compute.plan.levels`, `noonmark.compute.incremental.share`). A task may run twice: it
commits nothing.

Skew: the changes of a group of accumulators are added up by the task that has them, and one row is
sent (`partial_sums`); linear operators and joins take rows as they are cut, whatever their keys.

Where it runs: `run_large` on the driver, the rest on executors.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from noonmark.compute.incremental.accumulate import merge, partial_sums
from noonmark.compute.incremental.old import Old
from noonmark.compute.incremental.share import Share
from noonmark.compute.kernel import index as ix
from noonmark.compute.kernel.accumulator import accumulator_schema, is_linear
from noonmark.compute.kernel.scalar import ask as values_of
from noonmark.compute.kernel.updates import (
    Changes,
    Error,
    Ints,
    Rows,
    concat,
    errors_in,
    errors_table,
    from_table,
)
from noonmark.compute.plan.definition import ERRORS_SCHEMA
from noonmark.compute.plan.keys import keyed_inputs
from noonmark.compute.plan.levels import Levels, is_stateful, met_everywhere
from noonmark.compute.plan.naming import errors_name
from noonmark.compute.runner.job import Program, of_arrangement, summed, trace_reader, unpacked
from noonmark.compute.trace.by_key import CollectionAt, TraceReader
from noonmark.compute.trace.pending import TURN
from noonmark.persist import task
from noonmark.persist.log.state import Collection
from noonmark.persist.part.run import TIME
from noonmark.persist.read.plan import Plan
from noonmark.persist.read.slices import bare_collection, slices
from noonmark.persist.spark import typed_errors
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import SparkSession

#: Changes of fewer rows are read by one task.
_ROWS_MIN = 1_024
#: What pieces are: an input of a stateful operator, a share that is carried on, changes that every
#: task needs, rows to be stored, and what was stored.
_INPUT, _SHARE, _EVERYWHERE, _STORE, _STORED = range(5)


@dataclass(frozen=True)
class Slice:
    """Some rows of a plan: one of so many equal parts."""

    plan: Plan
    part: int = 0
    of: int = 1

    def table(self, place: task.TaskLocation) -> pa.Table | None:
        """Runs on executors: its rows."""
        tables = list(task.read(place, self.plan))
        if not tables:
            return None
        table = pa.concat_tables(tables)
        low, high = (table.num_rows * at // self.of for at in (self.part, self.part + 1))
        return table.slice(low, high - low) if high > low else None


def cut(plans: Mapping[str, Plan], tasks: int) -> list[dict[str, list[Slice]]]:
    """For each task, what it reads of each plan: the rows of all tasks are those of the plans."""
    made: list[dict[str, list[Slice]]] = [defaultdict(list) for _ in range(tasks)]
    for name, plan in plans.items():
        rows = sum(part.rows for part in plan.parts) + sum(batch.rows for batch in plan.inline)
        pieces = slices(plan, max(_ROWS_MIN, rows // tasks))
        of = 1 if rows < _ROWS_MIN else -(-tasks // len(pieces))
        every = [Slice(piece, part, of) for piece in pieces for part in range(of)]
        for at, each in enumerate(every):
            made[at % tasks][name].append(each)
    return made


@dataclass(frozen=True)
class LargeTick:
    """One tick of one view, for many tasks.

    Attributes:
        view: its name.
        program: packed.
        collections: inputs, arrangements and outputs as they are known now.
        views: the inputs that are views: their errors are beside them.
        place: where parts are, and under which epoch they are written.
        as_of: the time before the tick.
        upper: the end of the tick.
        behind: the names of the arrangements that are to be brought forward, too.
        slices: of each task, what it reads: changes of inputs, and what is due of arrangements.
    """

    view: str
    program: bytes
    collections: Mapping[str, Collection]
    views: frozenset[str]
    place: task.TaskLocation
    as_of: int
    upper: int
    behind: frozenset[str]
    slices: Sequence[Mapping[str, Sequence[Slice]]]

    @property
    def tasks(self) -> int:
        """How many there are at each level."""
        return len(self.slices)

    @property
    def changed(self) -> set[str]:
        """The collections of which somebody reads changes."""
        return {name for each in self.slices for name in each}


@dataclass(frozen=True)
class Piece:
    """What tasks send: updates and errors, for an operator or a collection."""

    kind: int
    number: int = 0
    side: int = 0
    present: tuple[bool, ...] = ()
    data: bytes = b""
    errors: tuple[Error, ...] = ()
    stored: tuple[str, task.Written, int] | None = None

    @property
    def changes(self) -> Changes:
        """What it holds."""
        return Changes(
            from_table(pa.ipc.open_stream(self.data).read_all(), self.present), self.errors
        )


@dataclass(frozen=True)
class Made:
    """What a large tick stored, by collection; and how many stored rows it looked at."""

    stored: Mapping[str, task.Written]
    touched: int


def run_large(spark: SparkSession, tick: LargeTick) -> Made:
    """One Spark job: a stage for each level of the plan, and one that stores."""
    context = spark.sparkContext
    known = context.broadcast(pickle.dumps(tick))
    last = last_level(tick)
    try:
        rows = context.parallelize(range(tick.tasks), tick.tasks)
        made = rows.mapPartitionsWithIndex(LevelTask(known, 0))
        for level in range(1, last + 1):
            made = made.partitionBy(tick.tasks, int).mapPartitionsWithIndex(LevelTask(known, level))
        with typed_errors():
            return gathered(pickle.loads(data) for _, data in made.collect())
    finally:
        known.destroy()


def last_level(tick: LargeTick) -> int:
    """The level that stores what the others found."""
    return Levels(unpacked(tick.program).plan).last + 1


def gathered(pieces: Iterable[Piece]) -> Made:
    """What the last level gives, together."""
    found = [piece.stored for piece in pieces if piece.stored is not None]
    stored: dict[str, list[task.Written]] = defaultdict(list)
    for name, written, _ in found:
        stored[name].append(written)
    together = {name: _together(each) for name, each in stored.items()}
    return Made(together, sum(touched for _, _, touched in found))


def _together(written: Sequence[task.Written]) -> task.Written:
    rest = [each.rest for each in written if each.rest is not None]
    runs = tuple(run for each in written for run in each.runs)
    return task.Written(runs, pa.concat_tables(rest) if rest else None)


@dataclass(frozen=True)
class LevelTask:
    """Runs on executors: one level of a tick, for one of its tasks."""

    tick: Broadcast[bytes]
    level: int

    def __call__(self, index: int, given: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        """Pieces in, pieces out, each for a task of the next level."""
        traces = trace_reader()
        tick: LargeTick = pickle.loads(self.tick.value)
        pieces = [pickle.loads(each[1]) for each in given] if self.level else []
        for to, piece in Stage(traces, tick, self.level, index, pieces).run():
            yield to, pickle.dumps(piece)


class _Inputs(Mapping[str, Changes]):
    """The share of the changes that a task reads, once it is asked for them."""

    def __init__(self, tick: LargeTick, index: int, schemas: Mapping[str, Schema]) -> None:
        self._tick = tick
        self._slices = tick.slices[index]
        self._schemas = schemas
        beside = {name for name in tick.views if errors_name(name) in tick.changed}
        self._names = (tick.changed | beside) & schemas.keys()
        self._read: dict[str, Changes] = {}

    def __iter__(self) -> Iterator[str]:
        """The inputs that changed, in any task."""
        return iter(self._names)

    def __len__(self) -> int:
        """How many those are."""
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        """Whether an input changed; nothing is read for that."""
        return name in self._names

    def __getitem__(self, name: str) -> Changes:
        """The share of the changes of an input."""
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            errors: tuple[Error, ...] = ()
            if name in self._tick.views:
                errors = tuple(
                    e for each in self._tables(errors_name(name)) for e in errors_in(each)
                )
            rows = [rows_in(table, self._schemas[name]) for table in self._tables(name)]
            self._read[name] = Changes(concat(rows, self._schemas[name]), errors)
        return self._read[name]

    def _tables(self, name: str) -> Iterator[pa.Table]:
        for each in self._slices.get(name, ()):
            table = each.table(self._tick.place)
            if table is not None:
                yield table


def rows_in(table: pa.Table, schema: Schema) -> Rows:
    """The updates of a collection in its order of columns; some may be missing."""
    there = set(table.column_names)
    named = [each for each in schema.names if each in there]
    present = [each in there for each in schema.names]
    return from_table(table.select([*named, *table.column_names[-2:]]), present)


class Stage:
    """One level of one task: pieces in, pieces out, each with the number of who gets it."""

    def __init__(
        self, traces: TraceReader, tick: LargeTick, level: int, index: int, pieces: Sequence[Piece]
    ) -> None:
        self.tick, self.level, self.index = tick, level, index
        self.traces, self.before = traces, traces.touched
        self.program: Program = unpacked(tick.program)
        self.levels = Levels(self.program.plan)
        self.nodes = self.levels.nodes
        self.by_kind: dict[int, dict[tuple[int, int], list[Piece]]] = defaultdict(dict)
        for piece in pieces:
            found = self.by_kind[piece.kind].setdefault((piece.number, piece.side), [])
            found.append(piece)
        arrangements = [(k.name, k.schema) for k in self.program.arrangements]
        errors = errors_name(tick.view), ERRORS_SCHEMA
        self.targets = [(tick.view, self.program.plan.schema), errors, *arrangements]

    def run(self) -> Iterator[tuple[int, Piece]]:
        """What this task sends to those of the next level."""
        for pieces in self.by_kind[_STORED].values():
            yield from ((self.index, piece) for piece in pieces)
        for (number, _), pieces in self.by_kind[_STORE].items():
            rows = self._changes(pieces, self.targets[number][1]).rows
            yield from self._store(number, rows.consolidated())
        if self.level <= self.levels.last:
            yield from self._evaluated()
        touched = self.traces.touched - self.before
        yield self.index, Piece(_STORED, stored=(self.tick.view, task.Written(), touched))

    def _evaluated(self) -> Iterator[tuple[int, Piece]]:
        share = self._share()
        for node in self.levels.at(self.level):
            if is_stateful(node):
                self._stateful(share, node)
        for at, arrangement in enumerate(self.program.arrangements):
            relation = arrangement.spec.relation
            if (
                arrangement.name not in self.tick.behind
                or self.levels.level[relation] != self.level
            ):
                continue
            rows = of_arrangement(share, arrangement)
            if arrangement.spec.sums:  # all of a key is here
                yield from self._store(2 + at, rows)
            else:
                yield from self._sent(_STORE, 2 + at, Changes(rows))
        if self.levels.level[self.program.plan] == self.level:
            top = share.delta(self.program.plan)
            failed = errors_table(summed(top.errors))
            yield from self._sent(_STORE, 0, Changes(top.rows))
            if failed is not None:
                yield from self._sent(_STORE, 1, Changes(from_table(failed)))
        yield from self._passed_on(share)

    def _share(self) -> Share:
        tick, program = self.tick, self.program
        places, ranges = {}, {}
        for name, each in tick.collections.items():
            places[name] = CollectionAt(tick.place, each, tick.as_of)
            ranges[name] = CollectionAt(tick.place, each, tick.upper - 1, after=tick.as_of)
        sums = {k.spec.relation: places[k.name] for k in program.arrangements if k.spec.sums}
        others = (k for k in program.arrangements if not k.spec.sums and not k.spec.turns)
        wholes = {k.spec.relation: places[k.name] for k in others}
        old = Old(self.traces, places, sums, wholes, program.keys, as_of=tick.as_of)
        changed = Old(self.traces, ranges, {}, {}, program.keys, as_of=tick.as_of, changes=True)
        inputs = _Inputs(tick, self.index, r.scans(program.plan))
        everywhere = {}
        for (number, _), pieces in self.by_kind[_EVERYWHERE].items():
            node = self.nodes[number]
            everywhere[node] = self._changes(pieces, node.schema).rows
        due = self._due()
        share = Share(inputs, old, tick.upper, due, changed=changed, everywhere=everywhere)
        for node in self.levels.carried(self.level - 1):
            pieces = self.by_kind[_SHARE].get((self.levels.number[node], 0), [])
            share.put(node, self._changes(pieces, node.schema))
        return share

    def _due(self) -> dict[r.Relation, Rows]:
        """What is due of the temporal filters of this level: the share of it."""
        made = {}
        for arrangement in self.program.arrangements:
            relation = arrangement.spec.relation
            if arrangement.spec.turns and self.levels.level[relation] == self.level:
                given = self.tick.slices[self.index].get(arrangement.name, ())
                tables = [table for s in given if (table := s.table(self.tick.place)) is not None]
                rows = [from_table(t.append_column(TIME, t.column(TURN))) for t in tables]
                made[relation] = concat(rows, arrangement.schema)
        return made

    def _stateful(self, share: Share, node: r.Relation) -> None:
        number, given = self.levels.number[node], self.by_kind[_INPUT]
        if isinstance(node, r.Aggregate) and is_linear(node):
            sums = self._changes(given.get((number, 0), []), accumulator_schema(node))
            made, share.sums[node] = merge(node, sums, share.old)
        else:
            inputs = keyed_inputs(node)
            deltas = [
                self._changes(given.get((number, side), []), part.relation.schema)
                for side, part in enumerate(inputs)
            ]
            made = share.keyed(node, deltas)
        share.put(node, made)

    def _passed_on(self, share: Share) -> Iterator[tuple[int, Piece]]:
        """What the next levels need of this one."""
        for node in self.levels.at(self.level + 1):
            number = self.levels.number[node]
            for leaf in met_everywhere(node):
                changes = Changes(share.delta(leaf).rows)
                yield from self._everywhere(self.levels.number[leaf], changes)
            if not is_stateful(node):
                continue
            if isinstance(node, r.Aggregate) and is_linear(node):
                sums = partial_sums(node, share.delta(node.input))
                keys = list(sums.rows.columns[: len(node.keys)])
                yield from self._sent(_INPUT, number, sums, keys=keys)
                continue
            for side, part in enumerate(keyed_inputs(node)):
                changes = share.delta(part.relation)
                keys = values_of(part.key, changes.rows)[0] if len(changes.rows) else []
                yield from self._sent(_INPUT, number, changes, side, keys)
        for node in self.levels.carried(self.level):
            changes = share.delta(node)
            if not changes.empty:
                yield self.index, _piece(_SHARE, self.levels.number[node], 0, changes)

    def _everywhere(self, number: int, changes: Changes) -> Iterator[tuple[int, Piece]]:
        if len(changes.rows):
            piece = _piece(_EVERYWHERE, number, 0, changes)
            yield from ((to, piece) for to in range(self.tick.tasks))

    def _sent(
        self,
        kind: int,
        number: int,
        changes: Changes,
        side: int = 0,
        keys: Sequence[pa.Array] | None = None,
    ) -> Iterator[tuple[int, Piece]]:
        """Updates, each to the task of its key, or of its row; errors stay here."""
        rows = changes.rows
        if changes.errors:
            yield self.index, _piece(kind, number, side, Changes(rows.take(_NONE), changes.errors))
        if not len(rows):
            return
        by = _hashed(rows) if keys is None else keys
        to = (ix.hashes_of(by, len(rows)) % np.uint64(self.tick.tasks)).astype(np.int64)
        for bucket in np.unique(to).tolist():
            some = rows.take(np.flatnonzero(to == bucket))
            yield bucket, _piece(kind, number, side, Changes(some))

    def _changes(self, pieces: Sequence[Piece], schema: Schema) -> Changes:
        given = [piece.changes for piece in pieces]
        errors = tuple(error for each in given for error in each.errors)
        return Changes(concat([each.rows for each in given], schema), errors)

    def _store(self, number: int, rows: Rows) -> Iterator[tuple[int, Piece]]:
        if not len(rows):
            return
        name, schema = self.targets[number]
        collection = bare_collection(self.tick.collections[name])
        table = rows.table(schema.names)
        written = task.write(self.tick.place, collection, [table], one_run=True)
        yield self.index, Piece(_STORED, stored=(name, written, 0))


_NONE: Ints = np.zeros(0, np.int64)


def _hashed(rows: Rows) -> list[pa.Array]:
    """The columns by which a row is told apart, as far as they can be hashed."""
    there = [column for column in rows.columns if column is not None]
    return [each for each in there if not pa.types.is_nested(each.type)]


def _piece(kind: int, number: int, side: int, changes: Changes) -> Piece:
    rows = changes.rows
    given = [column for column in rows.columns if column is not None]
    names = [str(at) for at in range(len(given))]
    table = Rows(tuple(given), rows.time, rows.diff).table(names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    present = tuple(column is not None for column in rows.columns)
    return Piece(kind, number, side, present, sink.getvalue().to_pybytes(), changes.errors)
