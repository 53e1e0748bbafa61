"""Reading: a collection at one time, and its changes from then on.

`Reader.contents` gives the rows of a plan: updates at times up to `as_of` (and after `after`),
reduced.

    contents (after is None)   rows with their multiplicities as of one time; no `_time`
    changes                    updates with their times; no two of the same row and time

It chooses the cheapest way that is exact. Nothing retracted: the parts are streamed as they are.
Little to read: everything is fetched at once and summed by hashing. Much to read: the sorted runs
are merged in bounded memory. The answer is the same multiset; only its order and its grouping
into tables differ.
"""

from __future__ import annotations

import asyncio
import functools
import weakref
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from noonmark.errors import CapabilityInvalid, MissingObject
from noonmark.persist.config import Config
from noonmark.persist.log.journal import Journal
from noonmark.persist.log.state import Batch, Collection
from noonmark.persist.part import run
from noonmark.persist.part.order import as_one_column
from noonmark.persist.part.part import Part
from noonmark.persist.part.store import PartStore
from noonmark.persist.read.plan import Plan, Query, plan_read
from noonmark.persist.runtime import Runtime
from noonmark.rows import arrow


class Reader:
    """Executes plans made at the newest state. Runs on the loop."""

    def __init__(
        self, runtime: Runtime, journal: Journal, parts: PartStore, config: Config
    ) -> None:
        self.journal = journal
        self.plans = PlanReader(runtime, parts, config)
        #: Plans being read in this process: garbage collection leaves their parts alone.
        self.active: weakref.WeakSet[Plan] = weakref.WeakSet()

    def plan(self, collection: int, query: Query) -> Plan:
        """Plan a read at the newest state."""
        state = self.journal.state
        plan = plan_read(state.seqno, state.collection(collection), query)
        self.active.add(plan)
        return plan

    def oldest_plan(self, collection: int | None = None) -> int | None:
        """The entry at which the oldest read under way planned (of one collection, or of all)."""
        return min(
            (p.seqno for p in self.active if collection is None or p.collection.id == collection),
            default=None,
        )

    async def contents(self, plan: Plan) -> AsyncIterator[pa.Table]:
        """The tables of a plan, with its columns; never an empty one."""
        begun = False
        while True:
            try:
                async for table in self.plans.tables(plan):
                    begun = True
                    yield table
                return
            except MissingObject as error:
                # A part can be gone only if the state went on without it (this reader held
                # nothing): then the same contents are in other parts by now.
                await self.journal.refresh()
                if self.journal.state.seqno == plan.seqno:
                    raise
                # Dropped or closed meanwhile, whatever was held: then this says so. Columns that
                # were added meanwhile are not what the caller planned to read.
                asked = plan.query.columns
                columns = plan.collection.schema.names if asked is None else asked
                again = self.plan(plan.collection.id, replace(plan.query, columns=tuple(columns)))
                if begun:  # beginning again would give what was given already a second time
                    raise _overtaken(plan) from error
                plan = again


def _overtaken(plan: Plan) -> CapabilityInvalid:
    return CapabilityInvalid(
        f'"{plan.collection.name}" was rewritten while it was read as of {plan.query.as_of}',
        detail="This read held nothing, took longer than garbage is kept, and had begun already.",
        hint="Read it again; for long reads take a hold first.",
        collection=plan.collection.name,
        as_of=plan.query.as_of,
    )


class PlanReader:
    """Executes one plan as it is. Runs on the loop; hands CPU-bound work to `Runtime.offload`."""

    def __init__(self, runtime: Runtime, parts: PartStore, config: Config) -> None:
        self.runtime = runtime
        self.parts = parts
        self.config = config

    async def tables(self, plan: Plan) -> AsyncIterator[pa.Table]:
        """The tables of a plan; `MissingObject` when a part of it is gone."""
        whole = [inline_table(plan.collection, batch) for batch in plan.inline]
        inline = [table for table in (narrow(table, plan) for table in whole) if table.num_rows]
        if plan.probes is not None:
            found = await asyncio.gather(*(self._look_up(plan, part) for part in plan.parts))
            table = await self.runtime.offload(_reduce, [*found, *inline], plan)
            if table.num_rows:
                yield table
        elif only_adds(plan, inline):
            async for table in self._stream(plan, inline):
                yield table
        elif plan.bytes <= self.config.prefetch_bytes_max or self.runtime.in_place:
            read = await asyncio.gather(*(self._read(plan, part) for part in plan.parts))
            table = await self.runtime.offload(_reduce, [*read, *inline], plan)
            if table.num_rows:
                yield table
        else:
            async for table in self._merge(plan, whole):
                yield table

    async def _stream(self, plan: Plan, inline: list[pa.Table]) -> AsyncIterator[pa.Table]:
        """Part after part, the next one being fetched while this one is used."""
        parts = plan.parts
        following = self._start_read(plan, parts[0]) if parts else None
        for at in range(len(parts)):
            assert following is not None
            table = await following
            following = self._start_read(plan, parts[at + 1]) if at + 1 < len(parts) else None
            if table.num_rows:
                yield shape(table, plan)
        for table in inline:
            yield shape(table, plan)

    async def _merge(self, plan: Plan, inline: list[pa.Table]) -> AsyncIterator[pa.Table]:
        """Merge the sorted runs in a worker thread, a step at a time."""
        key = plan.collection.key
        runs: list[Iterator[pa.Table]] = [self._run(plan, parts) for parts in plan.runs]
        small = [narrow(table, plan, project=False) for table in inline]
        if small:
            runs.append(iter([run.sort(pa.concat_tables(small), key)]))
        since = plan.query.as_of if plan.query.after is None else None
        merged = run.merge(runs, key, since, self.config.merge_rows_max)
        while (table := await self.runtime.offload(next, merged, None)) is not None:
            if table.num_rows:
                yield shape(table, plan)

    def _run(self, plan: Plan, parts: tuple[Part, ...]) -> Iterator[pa.Table]:
        """The tables of one sorted run, for a worker thread: fetching waits for the loop."""
        for part in parts:
            data = self.runtime.submit(self.parts.fetch(part)).result()
            table = self.parts.decode(part, data, None)
            table = narrow(upgrade(table, plan.collection), plan, project=False)
            for start in range(0, table.num_rows, self.config.merge_rows_max):
                yield table.slice(start, self.config.merge_rows_max)

    def _start_read(self, plan: Plan, part: Part) -> asyncio.Task[pa.Table]:
        return self.runtime.loop.create_task(self._read(plan, part))

    async def _read(self, plan: Plan, part: Part) -> pa.Table:
        data = await self.parts.fetch(part)
        columns = _stored_columns(plan, part)

        def decode() -> pa.Table:
            table = self.parts.decode(part, data, columns)
            return narrow(upgrade(table, plan.collection, plan.query.columns), plan)

        return await self.runtime.offload(decode)

    async def _look_up(self, plan: Plan, part: Part) -> pa.Table:
        assert plan.probes is not None
        names = _stored_columns(plan, part)
        table = await self.parts.look_up(part, plan.probes.names[0], plan.probes.first, names)
        return narrow(upgrade(table, plan.collection, plan.query.columns), plan)


def inline_table(collection: Collection, batch: Batch) -> pa.Table:
    """The updates of an inline batch, under the newest schema."""
    assert batch.inline is not None
    schema = stored_schema(collection, batch.inline.schema_id)
    record_batch = pa.ipc.read_record_batch(pa.py_buffer(batch.inline.data), schema)
    return upgrade(pa.Table.from_batches([record_batch]), collection)


def stored_schema(collection: Collection, schema_id: int) -> pa.Schema:
    """The Arrow schema of stored updates: the data columns, then `_time` and `_diff`.

    Every column may hold NULLs, by its schema, as in `part.read_parquet`: so tables from parts and
    from the log go together. That a column is NOT NULL was checked when its rows were written.
    """
    fields = [f.with_nullable(True) for f in arrow.arrow_schema(collection.schema_at(schema_id))]
    return pa.schema([*fields, pa.field(run.TIME, pa.int64()), pa.field(run.DIFF, pa.int64())])


def upgrade(
    table: pa.Table, collection: Collection, columns: tuple[str, ...] | None = None
) -> pa.Table:
    """Add the columns that the table's schema did not have yet, as NULLs, in their places."""
    wanted = [name for name in collection.schema.names if columns is None or name in columns]
    present = set(table.column_names)
    if all(name in present for name in wanted):
        return table
    full = arrow.arrow_schema(collection.schema)
    for name in wanted:
        if name not in present:
            column = pa.nulls(table.num_rows, full.field(name).type)
            table = table.append_column(full.field(name), column)
    return table.select([n for n in collection.schema.names if n in table.column_names]
                        + [run.TIME, run.DIFF])  # fmt: skip


def narrow(table: pa.Table, plan: Plan, *, project: bool = True) -> pa.Table:
    """Only the rows that the query asks for, and with `project` only its columns."""
    query = plan.query
    masks = []
    if table.num_rows:
        times = table.column(run.TIME)
        first, last = (bound.as_py() for bound in pc.min_max(times).values())
        if last > query.as_of:
            masks.append(pc.less_equal(times, query.as_of))
        if query.after is not None and first <= query.after:
            masks.append(pc.greater(times, query.after))
    if query.within is not None and (mask := query.within.mask(table)) is not None:
        masks.append(mask)
    for name, bounds in query.where.items():
        kind = plan.collection.schema[name].type
        for bound, compare in zip(bounds, (pc.greater_equal, pc.less_equal), strict=True):
            if bound is not None:
                masks.append(compare(table.column(name), arrow.to_array([bound], kind)[0]))
    if masks:
        table = table.filter(functools.reduce(pc.and_kleene, masks))
    if plan.probes is not None:
        table = _matching(table, plan)
    if project and query.columns is not None:
        table = table.select([*query.columns, run.TIME, run.DIFF])
    return table


def _matching(table: pa.Table, plan: Plan) -> pa.Table:
    """The rows whose key begins with one of the probes.

    Values are the same by their bits (`order.as_one_column`): Python has no date for infinity.
    """
    assert plan.probes is not None
    names, arrays = plan.probes.names, plan.probes.arrays
    first = as_one_column(table.column(names[0]))
    table = table.filter(pc.is_in(first, as_one_column(plan.probes.first)))
    if len(names) == 1:
        return table
    wanted = set(zip(*(as_one_column(array).to_pylist() for array in arrays), strict=True))
    columns = [as_one_column(table.column(name)) for name in names]
    found = zip(*(column.to_pylist() for column in columns), strict=True)
    return table.filter(pa.array([key in wanted for key in found], pa.bool_()))


def shape(table: pa.Table, plan: Plan) -> pa.Table:
    """The columns that the caller asked for, with `_time` only where it means something."""
    names = plan.query.columns or plan.collection.schema.names
    times = [] if plan.query.after is None else [run.TIME]
    return table.select([*names, *times, run.DIFF])


def _reduce(tables: list[pa.Table], plan: Plan) -> pa.Table:
    """Everything at once: concatenate and sum."""
    tables = [table for table in tables if table.num_rows]
    if not tables:
        return stored_schema(plan.collection, len(plan.collection.schemas) - 1).empty_table()
    names = tables[0].column_names
    table = pa.concat_tables([table.select(names) for table in tables])
    if plan.query.after is None:
        return shape(run.accumulate(table), plan)
    return shape(run.consolidate(table), plan)


def only_adds(plan: Plan, inline: list[pa.Table]) -> bool:
    """Whether nothing that the plan reads is a retraction, so nothing can cancel."""
    if plan.query.after is not None:
        return False
    if any(part.diff_min <= 0 for part in plan.parts):
        return False
    return all(pc.min(table.column(run.DIFF)).as_py() > 0 for table in inline)


def _stored_columns(plan: Plan, part: Part) -> list[str] | None:
    """The columns to decode: what is asked for and what filters, as far as the part has them."""
    if plan.query.columns is None:
        return None
    wanted = {*plan.query.columns, *plan.query.where}
    if plan.query.within is not None:
        wanted.add(plan.query.within.column)
    if plan.probes is not None:
        wanted |= set(plan.probes.names)
    names = [column.name for column in plan.collection.schemas[part.schema_id]]
    return [*(name for name in names if name in wanted), run.TIME, run.DIFF]
