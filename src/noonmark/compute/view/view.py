"""A maintained view: hydrated once, then brought forward tick by tick.

Law (exact): at every time t with since <= t < upper, the view's collection is its definition
applied to its inputs at t, and `<view>_errors` is what has no value in it at t. Where one of the
inputs has a definite error instead of rows, the view has that error.

Life, each step durable before the next depends on it:

    create    the view's collections begin at one time, and its inputs are held there
    hydrate   one Spark batch per collection at that time, all committed at once
    backfill  only for a view that another version made: the arrangements that it lacked
    renew     only for one by whose text another version understood something else: everything at
              the next time, less what was stored, in one commit
    tick      the changes of the inputs over [own upper, the least of their uppers) through the
              delta rules; output, errors and arrangements appended, and holds moved, in one commit

All progress is the upper of the view's collections: a crash at any point leaves a view that is
hydrated again, or goes on with the same tick and gives the same rows.

Where it runs: driver. One caller ticks a view at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

from noonmark.compute.plan.arrangement import Arrangement, ArrangementSpec
from noonmark.compute.plan.columns_used import used
from noonmark.compute.plan.definition import Definition
from noonmark.compute.runner.job import Program, TickResult, TickTask, run
from noonmark.compute.runner.large import LargeTick, run_large
from noonmark.compute.spark.inputs import inputs_with_errors
from noonmark.compute.trace.pending import PendingUpdates
from noonmark.compute.view.adoption import adopt
from noonmark.compute.view.cost import Costs, Walk
from noonmark.compute.view.large import Large
from noonmark.compute.view.owned import Owned, removal
from noonmark.compute.view.tick import (
    NO_OUTPUT,
    TASK_BYTES_MAX,
    Inputs,
    Output,
    Stored,
    contents_of,
    large_tick,
    less_stored,
    output_of,
    output_of_large,
    work_of,
)
from noonmark.errors import ConfigError, NoonmarkError, UsageError
from noonmark.persist.client import Client
from noonmark.persist.log import command as c
from noonmark.persist.log.definite import combined
from noonmark.persist.log.state import Frontier
from noonmark.persist.spark import Staged
from noonmark.sql.ir.temporal import FOREVER
from noonmark.storage import WriteCapability
from noonmark.storage.transaction import RETAIN_MS, Transaction
from noonmark.tvc import EMPTY, Antichain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: An idle view lets go of its inputs when so much of what it keeps is older than it has to be.
LET_GO_PARTS = 8


@dataclass(frozen=True)
class TickRecord:
    """What one tick of a view did: for people, for metrics and for tests.

    Attributes:
        strategy: "hydrate", "backfill", "renew", or one of those of `noonmark.compute.view.tick`.
        touched: how many stored rows were looked at; None if that was left to Spark.
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
    touched: int | None = None


class View:
    """See the module."""

    def __init__(
        self,
        client: Client,
        spark: Callable[[], SparkSession],
        definition: Definition,
        *,
        retain_ms: int = RETAIN_MS,
        strict: bool = False,
    ) -> None:
        """A view as it is stored, or one whose `creation` is still to be committed.

        Args:
            client: the writer of the location.
            spark: asked for the session when there is something to compute.
            definition: what it is.
            retain_ms: how much history it keeps.
            strict: whether a tick is never to compute the whole anew, however large the change.
        """
        if client.blob.url.startswith("memory:"):
            raise ConfigError(
                "views need a location that executors can open",
                hint="Use a folder or an object store.",
            )
        self.client = client
        if definition.name in client.state.names:
            definition = definition.stored_as(client.state.collection(definition.name).schema)
        self.definition = definition
        self.name = definition.name
        self.retain_ms = retain_ms
        self.strict = strict
        self._spark = spark
        self._adopted = False
        self.task_bytes_max = TASK_BYTES_MAX
        self.costs = Costs()
        #: Its last walk in a process that was warm; None before there was one.
        self.walked: Walk | None = None
        self.inputs = inputs_with_errors(client, definition.inputs)
        self.owned = Owned(client, definition, self.inputs, definition.arrangement_specs(self.keys))

    def start(self, as_of: int | None = None) -> Self:
        """Bring it to life, at a time or at the latest that can be, unless it is there already.

        Raises:
            UsageError: it is there, with another definition.
        """
        if self.name in self.client.state.names:
            self._check_same()
        else:
            self.client.submit(self.creation(as_of)).result()
        return self

    @cached_property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """The keys of the collections that it reads."""
        state = self.client.state
        return {name: state.collection(name).key for name in self.definition.inputs}

    @property
    def by_spec(self) -> dict[ArrangementSpec, Arrangement]:
        """What answers each spec of its delta rules."""
        return self.owned.by_spec

    @cached_property
    def turns(self) -> PendingUpdates:
        """What waits for its turn."""
        return PendingUpdates(self.client, [k.name for k in self.by_spec.values() if k.spec.turns])

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
        return self.owned.first_time

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

    @property
    def follows_time(self) -> bool:
        """Whether rows come and go though no input changed."""
        return any(arrangement.spec.turns for arrangement in self.by_spec.values())

    def is_due(self, now: int) -> bool:
        """Whether a row has its turn after what is known of the view, and not after `now`."""
        upper = self.upper.only()
        if upper is None or upper > now:
            return False
        return bool(self.turns.due(upper, now + 1).read(self.client))

    def arrangements(self) -> list[Arrangement]:
        """The arrangements of this view."""
        return list(self.by_spec.values())

    def creation(
        self, as_of: int | None = None, write: WriteCapability | None = None
    ) -> c.Transaction:
        """What brings the view's collections to life together and holds its inputs.

        Args:
            as_of: its first time; None for the latest that can be.
            write: the right to write the collection that it is to be; None to make one.
        """
        return self.owned.creation(self.owned.begin_at() if as_of is None else as_of, write)

    def adopt(self) -> None:
        """Give a view that another version made what it lacks (`adoption`)."""
        if not self._adopted:
            adopt(self.owned)
            self._adopted = True

    @property
    def lacks(self) -> bool:
        """Whether it has arrangements that are still to be filled, and so waits for no input."""
        upper = self.upper.only()
        return upper is not None and self.is_hydrated and bool(self.owned.late(upper))

    def _check_same(self) -> None:
        found = self.owned.details.get("sql")
        if found != self.definition.sql:
            raise UsageError(
                f'view "{self.name}" exists with another definition',
                detail=f"It is: {found}",
                hint="Choose another name.",
            )

    def drop(self) -> None:
        """End the view: its collections and its holds go, in one commit."""
        self.client.submit(removal([self.owned])).result()

    def tick(self) -> TickRecord | None:
        """Bring the view up to its inputs; None when they have not moved."""
        began = self.begin()
        if began is None:
            return None
        if began.work is None:
            return self.finish(began, None)
        (made,) = run(self._session(f"delta {self.name}", began.group), [(self.name, began.work)])
        return self.finish(began, made, jobs=1)

    def begin(self) -> Begun | None:
        """What the next tick is about; None when the inputs have not moved."""
        self.adopt()
        upper, lower = self._inputs_upper(), self.upper.only()
        clock = self.client.clock
        group, now = f"view-{self.name}-{clock.fresh_id()}", clock.monotonic()
        if not self.is_hydrated:
            waits = upper is not None and upper <= self.hydrated_at
            return None if waits else self._begin_contents("hydrate", self.hydrated_at, group, now)
        if lower is not None and self.lacks:
            return self._begin_contents("backfill", lower - 1, group, now)
        if lower is None or (upper is not None and upper <= lower):
            return None
        if self.owned.is_foreign:
            return self._begin_contents("renew", lower, group, now)
        upper = self.owned.steps(lower, upper)
        behind = self.owned.behind(upper)
        last = self._end() if upper is None else upper
        inputs = Inputs.of(self.client, self.inputs, lower, last, self._used)
        # Of what is complete for ever all turns are known, however late they are.
        until = FOREVER if upper is None and self.follows_time else last
        waiting = self.turns.due(lower, until)
        if inputs.bytes + waiting.bytes > self.task_bytes_max:
            strategy = self._strategy(inputs)
            size = inputs.bytes + waiting.bytes
            return Begun(lower, upper, strategy, group, now, inputs.rows, behind, None, size)
        stored = inputs.stored(self.definition.inputs)
        tables, due = inputs.read(self.client, stored.plans), waiting.read(self.client)
        if not tables and not due and not stored.plans:
            return Begun(lower, upper, "idle", group, now, 0, behind)
        work = work_of(
            self.client, self._program, tables, (*self.inputs, *self.owned.names), (lower, until),
            behind=behind, due=due, reads=stored.for_tasks(),
        )  # fmt: skip
        rows = sum(table.num_rows for table in tables.values()) + stored.rows
        return Begun(lower, upper, "delta", group, now, rows, behind, work, reads=stored)

    def _begin_contents(self, strategy: str, as_of: int, group: str, now: float) -> Begun:
        """Small inputs are changes from nothing, for a task; large ones are left to Spark."""
        behind = self.owned.behind(as_of + 1)
        work = None
        replaces = strategy == "hydrate" and self._replaces
        small = self._input_bytes() <= self.task_bytes_max // 2
        if strategy == "renew":
            small = small and self._stored_bytes() <= self.task_bytes_max // 2
        if small and not replaces:
            tables = contents_of(self.client, self.inputs, as_of)
            names = (*self.inputs, *self.owned.names)
            times = as_of, as_of + 1
            work = work_of(
                self.client, self._program, tables, names, times, behind=behind, hydrates=True
            )
        return Begun(as_of, as_of + 1, strategy, group, now, 0, behind, work)

    def finish(
        self, begun: Begun, made: TickResult | NoonmarkError | None, jobs: int = 0
    ) -> TickRecord:
        """Commit what a tick made, or make it: all of it in one commit."""
        output = self.output(begun, made)
        txn = Transaction(self.client)
        self.add_to(txn, begun, output)
        txn.commit().result()
        return self.record(begun, output, jobs)

    def output(self, begun: Begun, made: TickResult | NoonmarkError | None) -> Output:
        """What the collections are to be changed by: made by a task, or by Spark now."""
        if isinstance(made, NoonmarkError):
            raise made
        if made is not None:
            if not made.is_first and begun.work is not None:
                self.walked = Walk(made.ms, begun.work.rows)
            output = output_of(made)
            if begun.strategy == "backfill":
                return replace(output, rows=None, errors=None)
            if begun.strategy != "renew":
                return output
            change = less_stored(self.client, self.name, output, begun.behind, begun.lower)
            if change is not None:
                return change
        if begun.strategy == "idle":
            return NO_OUTPUT
        clock = self.client.clock
        began, by_change = clock.monotonic(), begun.strategy == "tasks"
        read = begun.bytes_in if by_change else self._input_bytes()
        output = self._large(begun)
        took = (clock.monotonic() - began) * 1000
        self.costs = self.costs.after(begun.strategy, read, took)
        return output

    def add_to(self, txn: Transaction, begun: Begun, output: Output = NO_OUTPUT) -> None:
        """What ends a tick, as a part of a commit."""
        upper = EMPTY if begun.upper is None else Antichain.of(begun.upper)
        stored = output.of(self.name)
        # Before the seal: an error begins or ends at a time that is not complete yet.
        for each in () if begun.strategy == "backfill" else self._errors_taken_over(begun):
            txn.add(each)
        names = sorted(begun.behind) if begun.strategy == "backfill" else self.owned.names
        for name in names:
            self.owned.append(txn, name, stored.get(name), begun.lower, upper)
        if begun.strategy == "renew":
            txn.add(self.owned.renewed(begun.lower))
        last = self._end() if begun.upper is None else begun.upper
        # What is complete for ever may end long after now.
        horizon = max(self.hydrated_at, min(last - 1, self.client.now_ms()) - self.retain_ms)
        held = self.since.only() or 0
        # An idle view lets go now and then: what it holds is old anyway.
        due = begun.strategy != "idle" or horizon - held > self.retain_ms // LET_GO_PARTS
        if begun.strategy not in ("hydrate", "backfill", "renew") and due:
            self.owned.let_go(txn, last, Antichain.of(horizon))

    def _errors_taken_over(self, begun: Begun) -> list[c.SetError]:
        """Where an input has an error instead of rows, so has the view: at the same times."""
        state = self.client.state
        own = state.collection(self.name)
        inputs = [(name, state.collection(name).errors) for name in self.definition.inputs]
        if not own.errors and not any(errors for _, errors in inputs):
            return []
        made = combined(inputs, own.errors, begun.lower, begun.upper)
        return [c.SetError(own.id, each.time, each.error) for each in made]

    def record(self, begun: Begun, output: Output = NO_OUTPUT, jobs: int = 0) -> TickRecord:
        """What a tick did, once it is committed."""
        if begun.work is None and begun.strategy != "idle":
            tracker = self._spark().sparkContext.statusTracker()
            jobs = len(tracker.getJobIdsForGroup(begun.group))
        ms = (self.client.clock.monotonic() - begun.at) * 1000
        sizes = _size(output.rows), _size(output.errors)
        return TickRecord(
            self.name, begun.lower, self.upper.only(), begun.rows_in, *sizes, jobs, ms,
            begun.strategy, output.touched,
        )  # fmt: skip

    def _session(self, what: str, group: str) -> SparkSession:
        spark = self._spark()
        spark.sparkContext.setJobGroup(group, what, interruptOnCancel=True)
        return spark

    def _inputs_upper(self) -> int | None:
        """The least upper of the inputs; None when all are complete for ever."""
        uppers = [self.client.state.collection(name).upper.only() for name in self.inputs]
        return min((upper for upper in uppers if upper is not None), default=None)

    @cached_property
    def _used(self) -> dict[str, tuple[str, ...]]:
        return used(self.definition.plan)

    @cached_property
    def _program(self) -> bytes:
        return Program(self.definition.plan, tuple(self.arrangements()), self.keys).packed

    def _on_spark(self, begun: Begun) -> Large:
        spark = self._session(f"{begun.strategy} {self.name}", begun.group)
        known = self.definition, self.by_spec, begun.behind
        return Large(spark, self.client, *known, inputs_fail=self.inputs_fail)

    def _strategy(self, inputs: Inputs) -> str:
        """Of a large change: what is cheaper, as far as it may be chosen."""
        may = not self.strict and not self.follows_time and inputs.time is not None
        anew = may and self.costs.anew_is_cheaper(inputs.bytes, self._input_bytes())
        return "recompute" if anew else "tasks"

    def _large(self, begun: Begun) -> Output:
        """Everything at one time or the whole anew, by Spark; or the changes, by many tasks."""
        if begun.strategy == "tasks":
            return self._by_tasks(begun)
        large = self._on_spark(begun)
        if begun.strategy == "hydrate":
            return large.contents(begun.lower, replaces=self._replaces)
        if begun.strategy == "backfill":
            return large.backfill(begun.lower)
        if begun.strategy == "renew":
            return large.anew(begun.lower - 1, begun.lower)
        last = self._end() if begun.upper is None else begun.upper
        time = Inputs.of(self.client, self.inputs, begun.lower, last).time
        assert time is not None, "what is recomputed has one time"
        return large.anew(begun.lower - 1, time)

    def large_tick(self, begun: Begun, cores: int) -> LargeTick:
        """What many tasks are to do: one a core at least, and as many as the change needs."""
        last = self._end() if begun.upper is None else begun.upper
        until = FOREVER if begun.upper is None and self.follows_time else last
        inputs = Inputs.of(self.client, self.inputs, begun.lower, last, self._used)
        plans = {**inputs.plans, **self.turns.due(begun.lower, until).plans}
        size = sum(plan.bytes for plan in plans.values())
        return large_tick(
            self.client,
            self._program,
            plans,
            (*self.inputs, *self.owned.names),
            (begun.lower, until),
            view=self.name,
            behind=begun.behind,
            tasks=max(cores, -(-size // TASK_BYTES_MAX)),
        )

    def _by_tasks(self, begun: Begun) -> Output:
        spark = self._session(f"{begun.strategy} {self.name}", begun.group)
        tick = self.large_tick(begun, spark.sparkContext.defaultParallelism)
        return output_of_large(self.name, run_large(spark, tick))

    @property
    def _replaces(self) -> bool:
        """Whether its collection has contents that were not its own, before it is hydrated."""
        return self.owned.is_written and bool(self.client.state.collection(self.name).batches)

    def _input_bytes(self) -> int:
        state = self.client.state
        return sum(b.bytes for name in self.inputs for b in state.collection(name).batches)

    def _stored_bytes(self) -> int:
        state = self.client.state
        return sum(b.bytes for name in self.owned.names for b in state.collection(name).batches)

    def _end(self) -> int:
        """One past the last update of inputs that are complete for ever."""
        batches = [b for n in self.inputs for b in self.client.state.collection(n).batches]
        lower = self.upper.only() or 0
        return max([lower, *(batch.time_max + 1 for batch in batches)])


@dataclass(frozen=True)
class Begun:
    """A tick that has begun: over ``[lower, upper)``, and what a task is to do for it, if any.

    Attributes:
        behind: the arrangements that it is to bring forward.
        bytes_in: how large a change is that is too large for one task.
        reads: what the task reads itself: kept, so that nothing of it is deleted meanwhile.
    """

    lower: int
    upper: int | None
    strategy: str
    group: str
    at: float
    rows_in: int = 0
    behind: frozenset[str] = frozenset()
    work: TickTask | None = None
    bytes_in: int = 0
    reads: Inputs | None = None


def _size(what: Stored) -> int:
    if what is None:
        return 0
    return what.rows if isinstance(what, Staged) else what.num_rows
