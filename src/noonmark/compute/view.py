"""A maintained view: hydrated once, then brought forward tick by tick.

Law (exact): at every time t with since <= t < upper, the view's collection is its definition
applied to its inputs at t, and `<view>_errors` is what has no value in it at t.

Life, each step durable before the next depends on it:

    create    the view's collections begin at one time, and its inputs are held there
    hydrate   one Spark batch per collection at that time, all committed at once
    tick      the changes of the inputs over [own upper, the least of their uppers) through the
              delta rules; output, errors and arrangements appended, and holds moved, in one commit

All progress is the upper of the view's collections: a crash at any point leaves a view that is
hydrated again, or goes on with the same tick and gives the same rows.

Where it runs: driver. One caller ticks a view at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f

from noonmark.compute import session
from noonmark.compute.arrangement import Keeper
from noonmark.compute.batch import Batch
from noonmark.compute.definition import (
    ARRANGEMENT,
    ERRORS,
    ERRORS_SCHEMA,
    VIEW,
    Definition,
    errors_name,
)
from noonmark.compute.delta.rules import Rules
from noonmark.compute.delta.scope import Scope
from noonmark.compute.frame import ERROR, LOCAL_BYTES_MAX, Delta, rows_of, split_errors
from noonmark.compute.reading import frame_at, inputs_with_errors
from noonmark.compute.staging import stage_all
from noonmark.errors import ConfigError, UsageError
from noonmark.persist import command as c
from noonmark.persist.client import Client
from noonmark.persist.run import DIFF, TIME
from noonmark.persist.spark import Staged, stage_frame
from noonmark.persist.state import Frontier, schema_to_wire
from noonmark.persist.write import MultiWriteHandle, WriteHandle
from noonmark.storage import NO_LEASE_MS
from noonmark.storage.description import CollectionDescription, description_of
from noonmark.tvc import EMPTY, Antichain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: How much history a view keeps, unless it is told otherwise.
RETAIN_MS = 600_000


@dataclass(frozen=True)
class TickRecord:
    """What one tick of a view did: for people, for metrics and for tests.

    Attributes:
        strategy: "hydrate", "delta", or "idle" when no input had changed.
    """

    view: str
    lower: int
    upper: int | None
    rows_in: int
    rows_out: int
    errors: int
    jobs: int
    ms: float
    strategy: str


class View:
    """See the module."""

    def __init__(
        self,
        client: Client,
        spark: Callable[[], SparkSession],
        definition: Definition,
        *,
        as_of: int | None = None,
        retain_ms: int = RETAIN_MS,
        create: bool = True,
    ) -> None:
        """Take up a view, or bring it to life.

        Args:
            client: the writer of the location.
            spark: asked for the session when there is something to compute.
            definition: what it is.
            as_of: its first time; None for the latest that can be.
            retain_ms: how much history it keeps.
            create: False when the caller commits `creation` itself, with more beside it.
        """
        if client.blob.url.startswith("memory:"):
            raise ConfigError(
                "views need a location that executors can open",
                hint="Use a folder or an object store.",
            )
        self.client = client
        self.definition = definition
        self.name = definition.name
        self.retain_ms = retain_ms
        self._spark = spark
        self._ticking: SparkSession | None = None
        self.inputs = inputs_with_errors(client, definition.inputs)
        keys = {name: client.state.collection(name).key for name in definition.inputs}
        self.keepers = definition.keepers(keys)
        if create and self.name in client.state.names:
            self._check_same()
        elif create:
            client.submit(self.creation(as_of)).result()

    # -- collections ------------------------------------------------------------------------

    @property
    def upper(self) -> Frontier:
        """How far the view is known."""
        return self.client.state.collection(self.name).upper

    @property
    def since(self) -> Frontier:
        """From when on it can be read."""
        return self.client.state.collection(self.name).since

    @property
    def hydrated_at(self) -> int:
        """The first time of the view."""
        details = description_of(self.client.state.collection(self.name)).details
        start: int = details["as_of"]
        return start

    @property
    def is_hydrated(self) -> bool:
        """Whether the view can be read at all."""
        return self.upper.only() != self.hydrated_at

    @property
    def spark(self) -> SparkSession:
        """The session that it runs on."""
        return self._spark()

    @property
    def inputs_fail(self) -> bool:
        """Whether an input is a view, which may have no answer."""
        return len(self.inputs) > len(self.definition.inputs)

    def arrangements(self) -> list[Keeper]:
        """The arrangements of this view."""
        own = {keeper.name: keeper for keeper in self.keepers.values() if keeper.own}
        return list(own.values())

    def creation(self, as_of: int | None = None) -> c.Transaction:
        """What brings the view's collections to life together and holds its inputs."""
        as_of = self._first_time() if as_of is None else as_of
        details = {"sql": self.definition.sql, "as_of": as_of, "inputs": list(self.inputs)}
        return (
            self._new(self.name, CollectionDescription(
                self.definition.plan.schema, (), VIEW, details), as_of),
            self._new(errors_name(self.name), CollectionDescription(
                ERRORS_SCHEMA, (), ERRORS, {"view": self.name}), as_of),
            *(
                self._new(each.name, CollectionDescription(
                    each.schema, each.key, ARRANGEMENT, {"view": self.name}), as_of)
                for each in self.arrangements()
            ),
            *(self._hold(name, as_of) for name in self.inputs),
        )  # fmt: skip

    def _check_same(self) -> None:
        details = description_of(self.client.state.collection(self.name)).details
        if details.get("sql") != self.definition.sql:
            raise UsageError(
                f'view "{self.name}" exists with another definition',
                detail=f"It is: {details.get('sql')}",
                hint="Choose another name.",
            )

    def _first_time(self) -> int:
        """The latest time at which all inputs are complete; or else the first at which they can be.

        A view may so be made over views that are not hydrated yet: it waits for them.
        """
        collections = [self.client.state.collection(name) for name in self.inputs]
        uppers = [each.upper.only() for each in collections]
        complete = min((upper for upper in uppers if upper is not None), default=0) - 1
        return max([complete, 0, *(each.since.only() or 0 for each in collections)])

    def _new(self, name: str, description: CollectionDescription, as_of: int) -> c.Create:
        return c.Create(
            name,
            description.key,
            schema_to_wire(description.schema),
            Antichain.of(as_of),
            description.annotation(),
        )

    def _hold_id(self, name: str) -> str:
        return f"view/{self.name}/{name}"

    def _hold(self, name: str, as_of: int) -> c.Acquire:
        state = self.client.state
        ref = state.collection(name).id
        return c.Acquire(
            self._hold_id(name), ref, Antichain.of(as_of), NO_LEASE_MS, state.seqno,
            self.client.owner,
        )  # fmt: skip

    def _write_handle(self, name: str) -> WriteHandle:
        return self.client.create_or_load(name)[0]

    # -- life -------------------------------------------------------------------------------

    def drop(self) -> None:
        """End the view: its collections and its holds go, in one commit."""
        self.client.submit(self.removal()).result()

    def removal(self) -> c.Transaction:
        """What ends the view."""
        state = self.client.state
        held = [self._hold_id(name) for name in self.inputs if self._hold_id(name) in state.holds]
        drops = [c.Drop(state.collection(name).id) for name in self._own_names()]
        return (*drops, *(c.Release(hold) for hold in held))

    def tick(self) -> TickRecord | None:
        """Bring the view up to its inputs; None when they have not moved."""
        upper = self._inputs_upper()
        if not self.is_hydrated:
            waits = upper is not None and upper <= self.hydrated_at
            return None if waits else self._measured("hydrate", self._hydrate)
        lower = self.upper.only()
        if lower is None or (upper is not None and upper <= lower):
            return None
        return self._measured("delta", lambda: self._advance(lower, upper))

    def _inputs_upper(self) -> int | None:
        """The least upper of the inputs; None when all are complete for ever."""
        uppers = [self.client.state.collection(name).upper.only() for name in self.inputs]
        return min((upper for upper in uppers if upper is not None), default=None)

    def _measured(self, strategy: str, work: Callable[[], _Done]) -> TickRecord:
        clock, spark = self.client.clock, self._spark()
        began, lower = clock.monotonic(), self.upper.only()
        assert lower is not None, "a closed view does not tick"
        group = f"view-{self.name}-{clock.fresh_id()}"
        spark.sparkContext.setJobGroup(group, f"{strategy} {self.name}")
        done = work()
        jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
        return TickRecord(
            self.name, lower, self.upper.only(), done.rows_in, done.rows_out, done.errors, jobs,
            (clock.monotonic() - began) * 1000, strategy if done.changed else "idle",
        )  # fmt: skip

    def _hydrate(self) -> _Done:
        as_of = self.hydrated_at
        small = self._input_bytes() <= LOCAL_BYTES_MAX
        spark = self._tick_session() if small else session.for_batches(self._spark())
        read = partial(frame_at, spark, self.client, as_of)
        batch = Batch(spark, read, inputs_fail=self.inputs_fail)
        at = f.lit(as_of).cast("bigint")
        plan = self.definition.plan
        top, fails = batch.frame(plan).withColumn(TIME, at), batch.fails(plan)
        frames = {self.name: self._named(rows_of(top, fails), plan.schema.names)}
        if fails:
            frames[errors_name(self.name)] = _errors(top)
        for keeper in self.arrangements():
            frame = keeper.contents(batch).withColumn(TIME, at)
            frames[keeper.name] = self._named(frame, keeper.schema.names)
        staged = stage_all(self.client, frames, small=small)
        txn = self.client.atomic()
        for name in self._own_names():
            self._append(txn, name, staged.get(name), as_of, Antichain.of(as_of + 1))
        txn.commit().result()
        errors = _size(staged.get(errors_name(self.name)))
        return _Done(0, staged[self.name].rows, errors, True)

    def _own_names(self) -> list[str]:
        return [self.name, errors_name(self.name), *(each.name for each in self.arrangements())]

    def _input_bytes(self) -> int:
        state = self.client.state
        return sum(b.bytes for name in self.inputs for b in state.collection(name).batches)

    def _tick_session(self) -> SparkSession:
        if self._ticking is None:
            self._ticking = session.for_ticks(self._spark())
        return self._ticking

    def _named(self, frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
        values = [f.col(f"c{at}").alias(name) for at, name in enumerate(names)]
        return frame.select(*values, TIME, DIFF)

    def _advance(self, lower: int, upper: int | None) -> _Done:
        last = upper if upper is not None else self._end()
        scope = Scope(self._tick_session(), self.client, self.keepers, lower, last)
        top = Rules(scope).delta(self.definition.plan)
        if not top.small:
            made = self._staged(top)
        else:
            made = self._collected(scope.settle(top, self.definition.plan.schema))
        txn = self.client.atomic()
        new_upper = EMPTY if upper is None else Antichain.of(upper)
        for name, what in made.items():
            self._append(txn, name, what, lower, new_upper)
        for keeper in self.arrangements():
            self._append(txn, keeper.name, self._arranged(scope, keeper), lower, new_upper)
        self._let_go(txn, last)
        txn.commit().result()
        rows, errors = _size(made[self.name]), _size(made[errors_name(self.name)])
        return _Done(scope.rows_in, rows, errors, scope.rows_in > 0)

    def _end(self) -> int:
        """One past the last update of inputs that are complete for ever."""
        batches = [b for n in self.inputs for b in self.client.state.collection(n).batches]
        lower = self.upper.only() or 0
        return max([lower, *(batch.time_max + 1 for batch in batches)])

    def _collected(self, top: Delta) -> dict[str, pa.Table | Staged | None]:
        """Output and errors of small changes, in the driver's memory."""
        if top.table is None:
            return {self.name: None, errors_name(self.name): None}
        rows, failed = split_errors(top.table)
        names = self.definition.plan.schema.names
        return {
            self.name: rows.drop_columns([ERROR]).rename_columns([*names, TIME, DIFF]),
            errors_name(self.name): _errors_table(failed),
        }

    def _staged(self, top: Delta) -> dict[str, pa.Table | Staged | None]:
        """Output and errors of large changes, stored by executors."""
        frame = top.frame.persist()
        names = self.definition.plan.schema.names
        frames = {
            self.name: self._named(rows_of(frame), names),
            errors_name(self.name): _errors(frame),
        }
        made = stage_all(self.client, frames, small=False)
        frame.unpersist()
        return dict(made)

    def _arranged(self, scope: Scope, keeper: Keeper) -> pa.Table | Staged | None:
        """What an arrangement is changed by, as it is stored."""
        delta = scope.writes.get(keeper)
        if delta is None:
            return None
        if delta.table is not None and not keeper.added:
            rows, _ = split_errors(delta.table)
            names = [*keeper.schema.names, TIME, DIFF]
            return rows.drop_columns([ERROR]).rename_columns(names)
        stored = self._named(keeper.stored(delta.frame), keeper.schema.names)
        return stage_frame(stored, self.client, self._write_handle(keeper.name))

    def _append(
        self,
        txn: MultiWriteHandle,
        name: str,
        what: pa.Table | Staged | None,
        lower: int,
        upper: Frontier,
    ) -> None:
        handle = self._write_handle(name)
        if isinstance(what, Staged):
            what.append_to(txn, handle, lower, upper)
        else:
            txn.append(handle, what if what is not None and what.num_rows else None, lower, upper)

    def _let_go(self, txn: MultiWriteHandle, upper: int) -> None:
        """Move what is held of the inputs, never past what the view itself can be read at."""
        horizon = Antichain.of(max(self.hydrated_at, upper - 1 - self.retain_ms))
        now = Antichain.of(upper - 1)
        for name in (self.name, errors_name(self.name)):
            txn.allow_compaction(self._write_handle(name), horizon)
        for keeper in self.arrangements():
            txn.allow_compaction(self._write_handle(keeper.name), now)
        for name in self.inputs:
            txn.add(c.Downgrade(self._hold_id(name), horizon, NO_LEASE_MS, self.client.state.seqno))


@dataclass(frozen=True)
class _Done:
    rows_in: int
    rows_out: int
    errors: int
    changed: bool


def _size(what: pa.Table | Staged | None) -> int:
    if what is None:
        return 0
    return what.rows if isinstance(what, Staged) else what.num_rows


def _errors(frame: DataFrame) -> DataFrame:
    """The errors of a frame, as they are stored."""
    text = f.col(ERROR)
    return frame.where(text.isNotNull()).select(
        f.substring(text, 1, 5).alias("sqlstate"),
        f.substring(text, 7, 1 << 20).alias("message"),
        TIME,
        DIFF,
    )


def _errors_table(table: pa.Table) -> pa.Table:
    texts = table.column(ERROR).to_pylist()
    return pa.table(
        {
            "sqlstate": pa.array([text[:5] for text in texts], pa.string()),
            "message": pa.array([text[6:] for text in texts], pa.string()),
            TIME: table.column(TIME),
            DIFF: table.column(DIFF),
        }
    )
