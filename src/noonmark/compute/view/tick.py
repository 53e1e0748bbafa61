"""What a tick of a view computes, by its size: nothing, changes in one task or many, or everything.

    idle       no input changed: the control plane alone moves on
    delta      changes up to `TASK_BYTES_MAX`: one task (`noonmark.compute.runner.job`)
    tasks      larger changes: the same, cut over many tasks (`noonmark.compute.runner.large`)
    renew      everything at one time, less what an earlier version stored (`view.view`)
    recompute  changes at one time that cost more than the whole (`noonmark.compute.view.cost`):
               the definition at that time, compared with what is stored; never when maintenance
               is strict

Law: whatever the way, what is made over ``[lower, upper)`` is the same multiset of updates.

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.compute.kernel.updates import errors_in, errors_table
from noonmark.compute.plan.definition import errors_name
from noonmark.compute.runner.job import TickResult, TickTask
from noonmark.compute.runner.large import LargeTick, Made, cut
from noonmark.compute.spark.inputs import is_view
from noonmark.persist import task
from noonmark.persist.client import Client
from noonmark.persist.part.run import DIFF, TIME, consolidate
from noonmark.persist.read.handle import plan_at
from noonmark.persist.read.plan import Plan, Query
from noonmark.persist.read.slices import bare_collection
from noonmark.persist.spark import Staged
from noonmark.persist.spark.read import changes_query

#: Changes up to this size are for one task; of larger ones no task has more.
TASK_BYTES_MAX = 16 << 20

Stored: TypeAlias = "pa.Table | Staged | None"


@dataclass(frozen=True)
class Inputs:
    """The changes of a view's inputs over a range of times."""

    plans: Mapping[str, Plan]

    @classmethod
    def of(
        cls,
        client: Client,
        names: tuple[str, ...],
        lower: int,
        upper: int,
        columns: Mapping[str, tuple[str, ...]] | None = None,
    ) -> Inputs:
        """Plans for the inputs that changed; of `columns`, only those that are named."""
        plans = {}
        wanted = columns or {}
        for name in names:
            batches = client.state.collection(name).batches
            if any(b.time_min < upper and b.time_max >= lower for b in batches):
                query = changes_query(lower, upper, despite_error=True)
                query = replace(query, columns=wanted.get(name))
                plans[name] = plan_at(client, name, query)
        return cls({name: plan for name, plan in plans.items() if plan.runs or plan.inline})

    @property
    def bytes(self) -> int:
        """How large they are."""
        return sum(plan.bytes for plan in self.plans.values())

    @property
    def time(self) -> int | None:
        """The one time of all changes; None when there are several."""
        items = [part for plan in self.plans.values() for part in plan.parts]
        times = {(each.time_min, each.time_max) for each in items}
        times |= {(b.time_min, b.time_max) for plan in self.plans.values() for b in plan.inline}
        (low, high), *more = times or {(0, 1)}
        return low if low == high and not more else None

    @property
    def rows(self) -> int:
        """How many updates there are."""
        stored = sum(part.rows for plan in self.plans.values() for part in plan.parts)
        return stored + sum(b.rows for plan in self.plans.values() for b in plan.inline)

    def stored(self, names: Collection[str]) -> Inputs:
        """The changes of some inputs that are in parts: a task reads them where they are."""
        return Inputs({n: plan for n, plan in self.plans.items() if n in names and plan.parts})

    def for_tasks(self) -> dict[str, Plan]:
        """The plans as tasks need them. They stay readable as long as those of here are kept."""
        bare = {name: bare_collection(plan.collection) for name, plan in self.plans.items()}
        return {name: replace(plan, collection=bare[name]) for name, plan in self.plans.items()}

    def read(self, client: Client, but: Collection[str] = ()) -> dict[str, pa.Table]:
        """Small changes, in the driver's memory; what cancels is not there."""
        made = {}
        for name, plan in self.plans.items():
            if name in but:
                continue
            tables = list(client.iterate(client.reader.contents(plan)))
            if tables:
                made[name] = pa.concat_tables(tables)
        return made


@dataclass(frozen=True)
class Output:
    """What the collections of a view are to be changed by: itself, its errors, arrangements.

    `touched` is how many stored rows were looked at for it; None if that was left to Spark.
    """

    rows: Stored = None
    errors: Stored = None
    arrangements: Mapping[str, Stored] = field(default_factory=dict)
    touched: int | None = None

    def of(self, view: str) -> dict[str, Stored]:
        """By the names of the collections."""
        return {view: self.rows, errors_name(view): self.errors, **self.arrangements}


NO_OUTPUT = Output(touched=0)


def contents_of(client: Client, names: tuple[str, ...], as_of: int) -> dict[str, pa.Table]:
    """Small inputs at a time, as changes from nothing."""
    made = {}
    for name in names:
        plan = plan_at(client, name, Query(as_of, despite_error=True))
        tables = list(client.iterate(client.reader.contents(plan)))
        if tables:
            table = pa.concat_tables(tables)
            times = pa.array(np.full(table.num_rows, as_of, np.int64))
            made[name] = table.append_column(TIME, times)
    return made


def work_of(
    client: Client,
    program: bytes,
    tables: Mapping[str, pa.Table],
    names: tuple[str, ...],
    times: tuple[int, int],
    *,
    behind: frozenset[str],
    due: Mapping[str, pa.Table] | None = None,
    hydrates: bool = False,
    reads: Mapping[str, Plan] | None = None,
) -> TickTask:
    """What a task is to do over [lower, upper).

    Args:
        client: the writer.
        program: packed.
        tables: what changed.
        names: the collections that it may look into.
        times: lower and upper.
        behind: the arrangements that are to be brought forward, too.
        due: what waited for a turn in this tick.
        hydrates: whether there is nothing before.
        reads: what changed that the task reads itself.
    """
    lower, upper = times
    views = {name for name in names if is_view(client, name)}
    errors = {
        name: errors_in(tables[errors_name(name)]) for name in views if errors_name(name) in tables
    }
    beside = {errors_name(name) for name in views}
    state = client.state
    return TickTask(
        program,
        {name: table for name, table in tables.items() if name not in beside},
        errors,
        {name: state.collection(name) for name in names if name not in beside},
        task.TaskLocation(client.blob.url, client.config, client.parts.epoch),
        lower if hydrates else lower - 1,
        upper,
        behind,
        due or {},
        hydrates,
        reads or {},
    )


def large_tick(
    client: Client,
    program: bytes,
    plans: Mapping[str, Plan],
    names: tuple[str, ...],
    times: tuple[int, int],
    *,
    view: str,
    behind: frozenset[str],
    tasks: int,
) -> LargeTick:
    """What so many tasks are to do over [lower, upper) for a view; the rest as for `work_of`.

    `plans` are of the changes of the inputs, and of what is due, by arrangement.
    """
    lower, upper = times
    state = client.state
    return LargeTick(
        view,
        program,
        {name: state.collection(name) for name in names},
        frozenset(name for name in names if is_view(client, name)),
        task.TaskLocation(client.blob.url, client.config, client.parts.epoch),
        lower - 1,
        upper,
        behind,
        cut(plans, tasks),
    )


def output_of(made: TickResult) -> Output:
    """What a task made, as it is committed."""
    arrangements = {name: _as_stored(what) for name, what in made.arrangements.items()}
    return Output(_as_stored(made.rows), errors_table(made.errors), arrangements, made.touched)


def less_stored(
    client: Client, view: str, output: Output, behind: frozenset[str], time: int
) -> Output | None:
    """What was made as everything at a time, less what was stored just before it.

    None where that is too much for the driver.
    """
    made = output.of(view)
    change: dict[str, Stored] = {}
    for name in (view, errors_name(view), *behind):
        table = made.get(name)
        if isinstance(table, Staged):
            return None
        names = [*client.state.collection(name).schema.names, TIME, DIFF]
        before = contents_of(client, (name,), time - 1).get(name)
        if before is not None:
            gone = _set(_set(before, TIME, time), DIFF, pc.negate(before.column(DIFF)))
            tables = [gone.select(names), *([] if table is None else [table.select(names)])]
            change[name] = consolidate(pa.concat_tables(tables, promote_options="permissive"))
        else:
            change[name] = table
    rows, errors = change.pop(view), change.pop(errors_name(view))
    return Output(rows, errors, change, output.touched)


def _set(table: pa.Table, name: str, value: object) -> pa.Table:
    at = table.schema.get_field_index(name)
    if not isinstance(value, pa.ChunkedArray):
        value = pa.array(np.full(table.num_rows, value, np.int64))
    return table.set_column(at, table.schema.field(at), value)


def _as_stored(what: pa.Table | task.Written | None) -> Stored:
    return Staged(what.runs, what.rest) if isinstance(what, task.Written) else what


def output_of_large(view: str, made: Made) -> Output:
    """What many tasks made, as it is committed."""
    stored: dict[str, Stored] = {n: _as_stored(each) for n, each in made.stored.items()}
    rows, errors = stored.pop(view, None), stored.pop(errors_name(view), None)
    return Output(rows, errors, stored, made.touched)
