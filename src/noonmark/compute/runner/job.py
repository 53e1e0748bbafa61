"""The one task of a small tick, and how the driver has it run.

    driver                          executor
    Work: plan, changes, places --> Walk over the plan, look-ups in the cache --> Made
    one commit of what was made <--

Law: the tables of `TickResult` are what the collections of the view are to be changed by over the
range of the tick, consolidated. A task may run twice: it commits nothing.

Works of several views are one Spark job, a task each; a work that fails gives its error and does
not stop the others. The job is an RDD of bytes: nothing has to be planned by Spark.

Where it runs: `run` on the driver, `_task` on executors.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from noonmark.clock import SYSTEM
from noonmark.compute.incremental.beginning import kept_of_nothing, of_nothing
from noonmark.compute.incremental.old import Old
from noonmark.compute.incremental.rules import Evaluation
from noonmark.compute.kernel.updates import Changes, Error, Rows, concat, empty_rows, from_table
from noonmark.compute.plan.arrangement import Arrangement
from noonmark.compute.trace.by_key import CollectionAt, TraceReader
from noonmark.compute.trace.pending import TURN
from noonmark.errors import NoonmarkError
from noonmark.persist import task
from noonmark.persist.log.state import Collection
from noonmark.persist.part.run import DIFF, TIME
from noonmark.persist.read.plan import Plan
from noonmark.persist.read.slices import bare_collection
from noonmark.persist.spark import typed_errors
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

#: What a task makes up to this size goes to the driver; more is stored by the task.
RESULT_BYTES_MAX = 8 << 20
#: What Linux says of a thread: for how long it ran, and for how long it waited to run.
_SCHEDULED = Path("/proc/thread-self/schedstat")
#: How many plans stay unpacked in a process.
_PROGRAMS_MAX = 256


@dataclass(frozen=True)
class Program:
    """What of a work is the same at every tick."""

    plan: r.Relation
    arrangements: tuple[Arrangement, ...]
    keys: Mapping[str, tuple[str, ...]]

    @property
    def packed(self) -> bytes:
        """As it travels."""
        return pickle.dumps(self)


@dataclass(frozen=True)
class TickTask:
    """One tick of one view, for a task.

    Attributes:
        program: packed; equal programs are unpacked once in a process.
        changes: the updates of the inputs, by name; those without changes are not here.
        errors: the updates of the errors of inputs that are views.
        collections: the inputs and arrangements as they are known now.
        place: where parts are, and under which epoch they are written.
        as_of: the time before the tick; or the time at which the view is hydrated.
        upper: the end of the tick.
        behind: the names of the arrangements that are to be brought forward, too.
        due: what waited for a turn in the tick, by arrangement.
        hydrates: whether there is nothing before: the changes are the contents of the inputs.
        reads: the inputs whose changes the task reads itself: those that are stored in parts.
    """

    program: bytes
    changes: Mapping[str, pa.Table]
    errors: Mapping[str, tuple[Error, ...]]
    collections: Mapping[str, Collection]
    place: task.TaskLocation
    as_of: int
    upper: int
    behind: frozenset[str]
    due: Mapping[str, pa.Table] = field(default_factory=dict)
    hydrates: bool = False
    reads: Mapping[str, Plan] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many updates it is about; of what it reads itself at most."""
        stored = sum(part.rows for plan in self.reads.values() for part in plan.parts)
        return stored + sum(len(table) for table in self.changes.values())

    def at_hand(self) -> TickTask:
        """The same, with all changes in memory."""
        if not self.reads:
            return self
        read = {name: list(task.read(self.place, plan)) for name, plan in self.reads.items()}
        tables = {name: pa.concat_tables(found) for name, found in read.items() if found}
        return replace(self, changes={**self.changes, **tables}, reads={})


@dataclass(frozen=True)
class TickResult:
    """What a task made: the changes of the view, of its errors, and of its arrangements.

    `ms` is how long that took there, without the time in which others had the processors, and
    `touched` how many stored rows it looked at. `is_first`: the process had not brought this view
    forward before, so `ms` says more of it than of the view.
    """

    rows: pa.Table | task.Written | None
    errors: tuple[Error, ...] = ()
    arrangements: Mapping[str, pa.Table | task.Written] = field(default_factory=dict)
    ms: float = 0.0
    touched: int = 0
    is_first: bool = False


def run(
    spark: SparkSession, works: Sequence[tuple[str, TickTask]]
) -> list[TickResult | NoonmarkError]:
    """One Spark job: a task for each work. Works are named by the view that they are of."""
    context = spark.sparkContext
    packed = [pickle.dumps(each) for each in works]
    with typed_errors():
        made = context.parallelize(packed, len(packed)).mapPartitions(_task).collect()
    return [pickle.loads(each) for each in made]


_TRACE_READERS: dict[str, TraceReader] = {}
_PROGRAMS: dict[bytes, Program] = {}
#: The programs of the views that this process has brought forward, not only hydrated.
_WARM: dict[bytes, None] = {}


def _task(packed: Iterable[bytes]) -> Iterator[bytes]:
    """Runs on executors."""
    traces = trace_reader()
    for each in packed:
        yield pickle.dumps(timed(traces, *pickle.loads(each)))


def trace_reader() -> TraceReader:
    """Runs on executors, when a task begins: what this process has open."""
    from pyspark import SparkFiles  # the driver's other callers need no Spark

    task.settle()
    root = str(Path(SparkFiles.getRootDirectory()) / "noonmark-parts")
    return _TRACE_READERS.setdefault(root, TraceReader(Path(root)))


def timed(traces: TraceReader, name: str, work: TickTask) -> TickResult | NoonmarkError:
    """Runs on executors: what a work made, with how long that took; or the error of it."""
    began = _unhindered()
    try:
        made = perform(traces, name, work)
    except NoonmarkError as error:
        return error
    took = _unhindered() - began
    is_first = work.program not in _WARM
    if not work.hydrates:
        _put(_WARM, work.program, None)
    return replace(made, ms=took * 1000, is_first=is_first)


def _unhindered() -> float:
    """Seconds, without those in which this thread has waited for a processor that others had.

    Where the system does not tell that, all of them.
    """
    waited = 0
    with suppress(OSError, ValueError, IndexError):
        waited = int(_SCHEDULED.read_text().split()[1])
    return SYSTEM.monotonic() - waited / 1e9


def perform(traces: TraceReader, name: str, work: TickTask) -> TickResult:
    """Runs on executors: one tick of one view."""
    work, program = work.at_hand(), unpacked(work.program)
    before = traces.touched
    first: dict[str, Rows] = {}
    if work.hydrates:
        first = {k.name: kept_of_nothing(k, work.as_of) for k in program.arrangements}
    old = _old(traces, program, work, first)
    evaluation = Evaluation(_inputs(program, work), old, work.upper, _due(program, work))
    arrangements: dict[str, pa.Table | task.Written] = {}
    for arrangement in program.arrangements:
        if arrangement.name not in work.behind:
            continue
        begun = [first[arrangement.name]] if work.hydrates else []
        rows = concat(
            [*begun, of_arrangement(evaluation, arrangement)], arrangement.schema
        ).consolidated()
        if len(rows):
            table = rows.table(arrangement.schema.names)
            arrangements[arrangement.name] = _stored(work, arrangement.name, table)
    shown = _shown(evaluation, program.plan, work)
    table = shown.rows.table(program.plan.schema.names)
    made = _stored(work, name, table) if len(shown.rows) else None
    touched = traces.touched - before
    return TickResult(made, summed(shown.errors), arrangements, touched=touched)


def _shown(evaluation: Evaluation, plan: r.Relation, work: TickTask) -> Changes:
    """The changes of the view itself, consolidated."""
    top = evaluation.delta(plan)
    begun = of_nothing(plan, work.as_of) if work.hydrates else Changes(empty_rows(plan.schema))
    rows = concat([begun.rows, top.rows], plan.schema).consolidated()
    return Changes(rows, begun.errors + top.errors)


def _old(traces: TraceReader, program: Program, work: TickTask, first: Mapping[str, Rows]) -> Old:
    """What was there: for a view that is hydrated, what is there when the inputs are empty."""
    places = {}
    for name, known in work.collections.items():
        collection = bare_collection(known) if work.hydrates else known
        places[name] = CollectionAt(work.place, collection, work.as_of, first.get(name))
    sums = {k.spec.relation: places[k.name] for k in program.arrangements if k.spec.sums}
    others = (k for k in program.arrangements if not k.spec.sums and not k.spec.turns)
    wholes = {k.spec.relation: places[k.name] for k in others}
    return Old(traces, places, sums, wholes, program.keys, as_of=work.as_of)


def _due(program: Program, work: TickTask) -> dict[r.Relation, Rows]:
    """What is due, by temporal filter."""
    made: dict[r.Relation, Rows] = {}
    for arrangement in program.arrangements:
        table = work.due.get(arrangement.name)
        if table is not None:
            made[arrangement.spec.relation] = from_table(
                table.append_column(TIME, table.column(TURN))
            )
    return made


def unpacked(packed: bytes) -> Program:
    """The program; equal ones are unpacked once in a process."""
    if packed not in _PROGRAMS:
        _put(_PROGRAMS, packed, pickle.loads(packed))
    return _PROGRAMS[packed]


def _put(known: dict[bytes, T], packed: bytes, value: T) -> None:
    while len(known) >= _PROGRAMS_MAX and packed not in known:
        known.pop(next(iter(known)))
    known[packed] = value


def _inputs(program: Program, work: TickTask) -> dict[str, Changes]:
    made: dict[str, Changes] = {}
    schemas: dict[str, Schema] = r.scans(program.plan)
    for name in {*work.changes, *work.errors}:
        table = work.changes.get(name)
        rows = empty_rows(schemas[name])
        if table is not None:
            there = set(table.column_names)  # what the plan does not use may be missing
            present = [each in there for each in schemas[name].names]
            named = [each for each in schemas[name].names if each in there]
            rows = from_table(table.select([*named, TIME, DIFF]), present)
        made[name] = Changes(rows, tuple(work.errors.get(name, ())))
    return made


def of_arrangement(evaluation: Evaluation, arrangement: Arrangement) -> Rows:
    """What an arrangement is to be changed by."""
    relation = arrangement.spec.relation
    changes = evaluation.delta(relation)
    if arrangement.spec.turns:
        return evaluation.turns[relation]
    return evaluation.sums[relation] if arrangement.spec.sums else changes.rows.consolidated()


def _stored(work: TickTask, name: str, table: pa.Table) -> pa.Table | task.Written:
    if table.nbytes <= RESULT_BYTES_MAX:
        return table
    collection = bare_collection(work.collections[name])
    return task.write(work.place, collection, [table], one_run=True)


def summed(errors: Sequence[Error]) -> tuple[Error, ...]:
    """The errors, each once, without those that were taken away again."""
    counts: dict[tuple[str, int], int] = {}
    for text, time, diff in errors:
        counts[text, time] = counts.get((text, time), 0) + diff
    return tuple((text, time, n) for (text, time), n in counts.items() if n)
