"""What a tick of a view computes, by its size: nothing, a walk, Spark's own joins, or everything.

    idle       no input changed: the control plane alone moves on
    delta      changes up to `WALK_BYTES_MAX`: one Spark job of one task (`noonmark.compute.walk`)
    spark      larger changes: the delta rules by Spark's own operators (`noonmark.compute.delta`)
    recompute  changes at one time of more than `RECOMPUTE_SHARE` of the inputs: the definition at
               that time, compared with what is stored; never when maintenance is strict

Law: whatever the way, what is made over ``[lower, upper)`` is the same multiset of updates.

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f

from noonmark.compute import session
from noonmark.compute.arrangement import Keeper, Need
from noonmark.compute.batch import Batch
from noonmark.compute.definition import Definition, errors_name
from noonmark.compute.delta.rules import Rules
from noonmark.compute.delta.scope import Scope
from noonmark.compute.frame import ERROR, rows_of, union
from noonmark.compute.reading import frame_at, is_view
from noonmark.compute.stage import Contents, stage_together
from noonmark.compute.walk.job import Made, Work
from noonmark.compute.walk.rows import Error
from noonmark.persist import task
from noonmark.persist.client import Client
from noonmark.persist.plan import Plan, Query
from noonmark.persist.run import DIFF, TIME
from noonmark.persist.spark import Staged, stage_frame
from noonmark.persist.spark_read import changes_query, frame_of, plan_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Beyond this part of the inputs a change costs more than the whole.
RECOMPUTE_SHARE = 0.25

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
                query = replace(changes_query(lower, upper), columns=wanted.get(name))
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

    def read(self, client: Client) -> dict[str, pa.Table]:
        """Small changes, in the driver's memory; what cancels is not there."""
        made = {}
        for name, plan in self.plans.items():
            tables = list(client.iterate(client.reader.contents(plan)))
            if tables:
                made[name] = pa.concat_tables(tables)
        return made


@dataclass(frozen=True)
class Output:
    """What the collections of a view are to be changed by: itself, its errors, arrangements."""

    rows: Stored = None
    errors: Stored = None
    arrangements: Mapping[str, Stored] = field(default_factory=dict)

    def of(self, view: str) -> dict[str, Stored]:
        """By the names of the collections."""
        return {view: self.rows, errors_name(view): self.errors, **self.arrangements}


NO_OUTPUT = Output()


# -- small changes ------------------------------------------------------------------------------


def contents_of(client: Client, names: tuple[str, ...], as_of: int) -> dict[str, pa.Table]:
    """Small inputs at a time, as changes from nothing."""
    made = {}
    for name in names:
        plan = plan_at(client, name, Query(as_of))
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
    due: Mapping[str, pa.Table] | None = None,
    hydrates: bool = False,
) -> Work:
    """What a task is to do over [lower, upper); `names` are those that it may look into."""
    lower, upper = times
    views = {name for name in names if is_view(client, name)}
    errors = {
        name: errors_in(tables[errors_name(name)]) for name in views if errors_name(name) in tables
    }
    beside = {errors_name(name) for name in views}
    state = client.state
    return Work(
        program,
        {name: table for name, table in tables.items() if name not in beside},
        errors,
        {name: state.collection(name) for name in names if name not in beside},
        task.Place(client.blob.url, client.config, client.parts.epoch),
        lower if hydrates else lower - 1,
        upper,
        due or {},
        hydrates,
    )


def errors_in(table: pa.Table) -> tuple[Error, ...]:
    """The updates of a view's errors, as walks have them."""
    columns = [table.column(n).to_pylist() for n in ("sqlstate", "message", TIME, DIFF)]
    return tuple((f"{a} {b}", time, diff) for a, b, time, diff in zip(*columns, strict=True))


def output_of(made: Made) -> Output:
    """What a task made, as it is committed."""
    arrangements = {name: _as_stored(what) for name, what in made.arrangements.items()}
    return Output(_as_stored(made.rows), _errors_table(made.errors), arrangements)


def _as_stored(what: pa.Table | task.Written | None) -> Stored:
    return Staged(what.runs, what.rest) if isinstance(what, task.Written) else what


def _errors_table(errors: tuple[Error, ...]) -> pa.Table | None:
    if not errors:
        return None
    return pa.table(
        {
            "sqlstate": pa.array([text[:5] for text, _, _ in errors], pa.string()),
            "message": pa.array([text[6:] for text, _, _ in errors], pa.string()),
            TIME: pa.array([time for _, time, _ in errors], pa.int64()),
            DIFF: pa.array([diff for _, _, diff in errors], pa.int64()),
        }
    )


# -- large changes ------------------------------------------------------------------------------


def on_spark(
    spark: SparkSession,
    client: Client,
    definition: Definition,
    keepers: Mapping[Need, Keeper],
    times: tuple[int, int],
    *,
    inputs_fail: bool,
) -> Output:
    """The changes of a view and its arrangements, stored by executors."""
    plan, view = definition.plan, definition.name
    batches = session.for_batches(spark)
    scope = Scope(batches, client, keepers, times, inputs_fail=inputs_fail)
    rules = Rules(scope)
    top = rules.settled(plan)
    arrangements: dict[str, Stored] = {}
    for need, keeper in keepers.items():
        delta = rules.settled(need.relation)
        kept = scope.sums.get(need) if need.sums else delta
        kept = scope.turns.get(need) if need.turns else kept
        if kept is not None and not kept.empty:
            frame = named(rows_of(kept.frame), keeper.schema.names)
            arrangements[keeper.name] = _staged(client, frame, keeper.name)
    if top.empty:
        return Output(arrangements=arrangements)
    rows = _staged(client, named(rows_of(top.frame), plan.schema.names), view)
    errors = _staged(client, errors_frame(top.frame), errors_name(view))
    return Output(rows, errors, arrangements)


@contextmanager
def contents_at(
    spark: SparkSession,
    client: Client,
    definition: Definition,
    keepers: Mapping[Need, Keeper],
    time: int,
    *,
    inputs_fail: bool,
) -> Iterator[list[Contents]]:
    """What the collections of a view hold at a time by its definition, for a block."""
    read = partial(frame_at, spark, client, time)
    shared = {need.relation for need in keepers if not need.turns}
    batch = Batch(spark, read, inputs_fail=inputs_fail, now=time, shared=shared)
    at = f.lit(time).cast("bigint")
    plan, name = definition.plan, definition.name
    top = batch.frame(plan).withColumn(TIME, at)
    made = [Contents(top, name, errors_name(name) if batch.fails(plan) else None)]
    for keeper in keepers.values():
        made.append(Contents(keeper.contents(batch).withColumn(TIME, at), keeper.name))
    try:
        yield made
    finally:
        batch.release()


def hydrated(
    spark: SparkSession,
    client: Client,
    definition: Definition,
    keepers: Mapping[Need, Keeper],
    time: int,
    *,
    inputs_fail: bool,
    replaces: bool = False,
) -> Output:
    """Everything at a time, as one Spark batch; less what its collection held, if it `replaces`."""
    batches = session.for_batches(spark)
    with contents_at(batches, client, definition, keepers, time, inputs_fail=inputs_fail) as given:
        if replaces:
            top = given[0]
            gone = _gone(batches, client, definition.name, time)
            given[0] = replace(top, frame=union([top.frame.select(*gone.columns), gone]))
        staged: dict[str, Stored] = {**stage_together(client, given)}
    errors = staged.pop(errors_name(definition.name), None)
    return Output(staged.pop(definition.name), errors, staged)


def _gone(spark: SparkSession, client: Client, name: str, time: int) -> DataFrame:
    """What a collection held before a time, as updates in the layout that take it away."""
    stored = frame_of(spark, client, plan_at(client, name, Query(time - 1)))
    values = [
        f.col(f"`{each.replace('`', '``')}`").alias(f"c{at}")
        for at, each in enumerate(client.state.collection(name).schema.names)
    ]
    none, at = f.lit(None).cast("string").alias(ERROR), f.lit(time).cast("bigint").alias(TIME)
    return stored.select(*values, none, at, f.lit(-1).cast("bigint").alias(DIFF))


def recomputed(
    spark: SparkSession,
    client: Client,
    definition: Definition,
    keepers: Mapping[Need, Keeper],
    times: tuple[int, int],
    *,
    inputs_fail: bool,
) -> Output:
    """The definition at a time, less what was stored before: changes that are all at that time.

    Args:
        spark: the session.
        client: the writer.
        definition: of the view.
        keepers: its arrangements.
        times: the last time that is stored, and that of the changes.
        inputs_fail: whether an input is a view.
    """
    batches = session.for_batches(spark)
    before, now = times
    made: dict[str, Stored] = {}
    with contents_at(batches, client, definition, keepers, now, inputs_fail=inputs_fail) as given:
        for each in given:
            schema = client.state.collection(each.name).schema
            frames = {each.name: named(rows_of(each.frame, each.errors is not None), schema.names)}
            if each.errors is not None:
                frames[each.errors] = errors_frame(each.frame)
            for name, frame in frames.items():
                gone = frame_of(batches, client, plan_at(client, name, Query(before)))
                made[name] = _staged(client, _less(frame, gone, now), name)
    errors = made.pop(errors_name(definition.name), None)
    return Output(made.pop(definition.name), errors, made)


def _less(frame: DataFrame, gone: DataFrame, time: int) -> DataFrame:
    """What is there now less the plain rows that were, as updates at one time."""
    at, once = (f.lit(number).cast("bigint") for number in (time, -1))
    names = [f.col(f"`{each.replace('`', '``')}`") for each in frame.columns[:-1]]
    both = frame.unionByName(gone.withColumn(TIME, at).withColumn(DIFF, once))
    return both.groupBy(*names).agg(f.sum(DIFF).alias(DIFF)).where(f.col(DIFF) != 0)


def _staged(client: Client, frame: DataFrame, name: str) -> Staged:
    return stage_frame(frame, client, client.create_or_load(name)[0])


def named(frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """Rows in the layout as they are stored."""
    values = [f.col(f"c{at}").alias(name) for at, name in enumerate(names)]
    return frame.select(*values, TIME, DIFF)


def errors_frame(frame: DataFrame) -> DataFrame:
    """The errors of a frame, as they are stored."""
    text = f.col(ERROR)
    return frame.where(text.isNotNull()).select(
        f.substring(text, 1, 5).alias("sqlstate"),
        f.substring(text, 7, 1 << 20).alias("message"),
        TIME,
        DIFF,
    )
