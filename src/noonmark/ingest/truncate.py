"""Truncations: what a collection held is retracted at the time that its output was emptied.

Nothing upstream names the rows that go, so they are read from where they are: what was durable
before the tick, and what the tick itself brought before the truncation (its *generation*, which
`ingest.task` stores apart). Both are negated and given the time of the truncation, in the commit
of the tick.

Law (truncation): let T be the time of a truncation. The contents at T are the sum of the updates
that lie behind it and have times up to T; the contents before T are what they are without it.
The errors of records with keys are of the same kind: at T those that lie before it are retracted.
An error without a key stays, as it does under DELETE.

Rows are negated where they are read, slice by slice, in bounded memory; what travelled inline is
negated on the driver.

Where it runs: driver; `RetractTask` on executors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.ingest.task import RESULT, Row, Stored, packed, stored_rows, unpacked
from noonmark.persist import task
from noonmark.persist.log.state import Batch, Collection
from noonmark.persist.part.part import Part
from noonmark.persist.part.run import DIFF, TIME
from noonmark.persist.read.plan import Plan, Query, plan_read
from noonmark.persist.read.slices import slices
from noonmark.source.contract import NO_OUTPUT

_PARTS = msgspec.msgpack.Decoder(Part)


@dataclass(frozen=True)
class Truncation:
    """The end of one generation of a feed, whose collection has this name."""

    feed: int
    generation: int
    time: int
    name: str

    @property
    def places(self) -> tuple[Stored, Stored]:
        """What it empties: the rows of a feed, and the errors of its records."""
        of = (self.feed, self.generation)
        return Stored(self.feed, *of), Stored(NO_OUTPUT, *of)


@dataclass(frozen=True)
class Slice:
    """What one task negates: a plan, or a range of its keys."""

    plan: Plan
    whose: Stored
    time: int
    name: str


@dataclass(frozen=True)
class RetractTask:
    """Runs on executors: takes the numbers of slices, and yields rows of `RESULT`."""

    place: task.TaskLocation
    slices: tuple[Slice, ...]

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of `RESULT`: what it has stored."""
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                each = self.slices[number]
                tables = (_negated(each, t) for t in task.read(self.place, each.plan))
                bare = each.plan.collection
                rows = stored_rows(each.whose, task.write(self.place, bare, tables, one_run=False))
                if rows:
                    yield pa.RecordBatch.from_pylist(rows, RESULT)


def truncations(rows: Iterable[Row], names: Sequence[str]) -> list[Truncation]:
    """The truncations that the tasks of a tick have seen, in order."""
    found = [
        Truncation(row["feed"], row["generation"], row["truncated_at"], names[row["feed"]])
        for row in rows
        if row.get("truncated_at") is not None
    ]
    return sorted(found, key=lambda each: (each.feed, each.generation))


def retract(
    truncation: Truncation,
    rows: Sequence[Row],
    collection_of: Callable[[int], Collection],
    slice_rows_min: int,
) -> tuple[list[Row], list[Slice]]:
    """What is retracted at once, and what tasks have to read for it.

    Args:
        truncation: the end of a generation.
        rows: what the tasks of the tick have stored.
        collection_of: the collection of a feed or of errors, as it is before the tick.
        slice_rows_min: how many rows are worth a task.
    """
    small: list[Row] = []
    found: list[Slice] = []
    for whose in truncation.places:
        mine = [row for row in rows if _is_of(row, whose)]
        whole = collection_of(whose.feed)
        runs = [tuple(map(_PARTS.decode, row["parts"])) for row in mine if row.get("parts")]
        held = whole.batches if truncation.generation == 0 else ()
        known = msgspec.structs.replace(whole, batches=(*held, *map(_batch, runs)))
        plan = plan_read(0, known, Query(truncation.time, despite_error=True))
        each = Slice(plan, whose, truncation.time, truncation.name)
        if plan.runs or plan.inline:
            found += [replace(each, plan=piece) for piece in slices(plan, slice_rows_min)]
        for row in mine:
            if row.get("rest"):
                gone = _negated(each, unpacked(row["rest"]))
                if gone.num_rows:
                    small.append({**row, "rest": packed(gone)})
    return small, found


def _is_of(row: Row, whose: Stored) -> bool:
    return all(row.get(name) == value for name, value in whose._asdict().items())


def _batch(parts: tuple[Part, ...]) -> Batch:
    """A run that no commit has named yet, as a read takes it."""
    return Batch(
        id=0,
        rows=sum(part.rows for part in parts),
        bytes=sum(part.bytes for part in parts),
        time_min=min(part.time_min for part in parts),
        time_max=max(part.time_max for part in parts),
        diff_sum=sum(part.diff_sum for part in parts),
        parts=parts,
    )


def _negated(each: Slice, table: pa.Table) -> pa.Table:
    """Updates that take away what a table of contents, or of updates, adds."""
    if each.whose.feed == NO_OUTPUT:
        mine = pc.equal(table.column("output"), each.name)
        table = table.filter(pc.and_(pc.fill_null(mine, False), pc.is_valid(table.column("key"))))
    fields = [each for each in table.schema if each.name not in (TIME, DIFF)]
    diffs = pc.negate(table.column(DIFF))
    times = pa.array(np.full(table.num_rows, each.time), pa.int64())
    columns = [*(table.column(each.name) for each in fields), times, diffs]
    schema = pa.schema([*fields, (TIME, pa.int64()), (DIFF, pa.int64())])
    return pa.Table.from_arrays(columns, schema=schema)
