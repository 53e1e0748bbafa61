"""Contents of views that are too large for a task: Spark's own operators; executors store.

    contents  everything at a time: how a view is hydrated (`noonmark.compute.spark.contents`)
    backfill      of that, what the view lacks: an earlier version made it
    anew      everything at a time, less what was stored before: changes that are all at that time

Where it runs: the driver plans; rows stay with the executors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from noonmark.compute.incremental.output import ViewOutput
from noonmark.compute.jvm import session
from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.plan.arrangement import Arrangement, ArrangementSpec
from noonmark.compute.plan.definition import Definition, errors_name
from noonmark.compute.spark.column import col, constant, named, quoted
from noonmark.compute.spark.contents import BatchQuery
from noonmark.compute.spark.frame import no_error, rows_of, union
from noonmark.compute.spark.inputs import frame_at
from noonmark.compute.spark.stage import Contents, stage_together
from noonmark.compute.view.tick import Output, Stored
from noonmark.persist.client import Client
from noonmark.persist.part.part import Part
from noonmark.persist.part.run import DIFF, TIME
from noonmark.persist.read.handle import plan_at
from noonmark.persist.read.plan import Query
from noonmark.persist.spark import Staged, stage_frame
from noonmark.persist.spark.read import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Large:
    """One view on Spark.

    Attributes:
        arrangements: its arrangements.
        behind: the names of those that are to be brought forward, too.
        inputs_fail: whether an input is a view, which may have no answer.
    """

    session: SparkSession
    client: Client
    definition: Definition
    arrangements: Mapping[ArrangementSpec, Arrangement]
    behind: frozenset[str]
    inputs_fail: bool

    def contents(self, time: int, *, replaces: bool = False) -> Output:
        """Everything at a time, less what the collection held before, if the view `replaces` it."""
        checks: list[Part] = []
        with self._contents_at(time, checks, together=not replaces) as given:
            if replaces:
                given[0] = replace(given[0], frame=union([given[0].frame, self._taken_away(time)]))
            return self._output({**stage_together(self.client, given, checks)})

    def backfill(self, time: int) -> Output:
        """Those that are behind, at a time, without the view."""
        checks: list[Part] = []
        with self._contents_at(time, checks, shows=False) as given:
            return Output(arrangements={**stage_together(self.client, given, checks)})

    def anew(self, before: int, time: int) -> Output:
        """Everything at a time, less what was stored at the time `before`."""
        made: dict[str, Stored] = {}
        with self._contents_at(time) as given:
            for each in given:
                schema = self.client.state.collection(each.name).schema
                timed = each.frame.withColumn(TIME, constant(each.time))
                rows = rows_of(timed, each.errors is not None)
                frames = {each.name: _named(rows, schema.names)}
                if each.errors is not None:
                    frames[each.errors] = _errors(timed)
                for name, frame in frames.items():
                    less = _less(frame, self._stored(name, before), time)
                    made[name] = self._staged(less, name)
        return self._output(made)

    @property
    def _spark(self) -> SparkSession:
        return session.for_batches(self.session)

    @contextmanager
    def _contents_at(
        self,
        time: int,
        checks: list[Part] | None = None,
        *,
        together: bool = False,
        shows: bool = True,
    ) -> Iterator[list[Contents]]:
        """What the collections of the view hold at a time by its definition, for a block.

        Args:
            time: when.
            checks: where the parts go that are not compared with their checksums.
            together: whether what is shown of accumulators may be made as they are stored.
            shows: whether the view itself is among them.
        """
        read = partial(frame_at, self._spark, self.client, time, checks=checks, despite_error=True)
        plan, name = self.definition.plan, self.definition.name
        arrangements = [each for each in self.arrangements.values() if each.name in self.behind]
        shown = ViewOutput.of_plan(plan) if together else None
        fed = [each for each in arrangements if shown and each.spec == shown.spec]
        asked_once = {shown.spec.relation} if shown and fed else set()
        shared = {k.spec.relation for k in arrangements if not k.spec.turns} - asked_once
        fails = self.inputs_fail
        batch = BatchQuery(self._spark, read, inputs_fail=fails, now=time, shared=shared)
        made = []
        if shows and not fed:
            failed = errors_name(name) if batch.fails(plan) else None
            made.append(Contents(batch.frame(plan), time, name, failed))
        for arrangement in arrangements:
            if arrangement in fed:
                frame, may_fail = batch.kept(arrangement)
                failed = errors_name(name) if may_fail else None
                made.append(Contents(frame, time, arrangement.name, failed, shown, name))
            else:
                made.append(Contents(batch.kept_rows(arrangement), time, arrangement.name))
        try:
            yield made
        finally:
            batch.release()

    def _output(self, staged: dict[str, Stored]) -> Output:
        name = self.definition.name
        errors = staged.pop(errors_name(name), None)
        return Output(staged.pop(name), errors, staged)

    def _stored(self, name: str, time: int) -> DataFrame:
        plan = plan_at(self.client, name, Query(time, despite_error=True))
        return frame_of(self._spark, self.client, plan)

    def _taken_away(self, time: int) -> DataFrame:
        """What the collection held before a time, in the layout, as what takes it away."""
        name = self.definition.name
        names = self.client.state.collection(name).schema.names
        values = [quoted(each, f"c{at}") for at, each in enumerate(names)]
        return self._stored(name, time - 1).select(*values, no_error(), constant(-1, DIFF))

    def _staged(self, frame: DataFrame, name: str) -> Staged:
        return stage_frame(frame, self.client, self.client.create_or_load(name)[0])


def _less(frame: DataFrame, gone: DataFrame, time: int) -> DataFrame:
    """What is there now less the plain rows that were, as updates at one time."""
    names = [quoted(each) for each in frame.columns[:-1]]
    both = frame.unionByName(gone.withColumn(TIME, constant(time)).withColumn(DIFF, constant(-1)))
    return both.groupBy(*names).agg(f.sum(DIFF).alias(DIFF)).where(col(DIFF) != 0)


def _named(frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """Rows in the layout as they are stored."""
    values = [named(f"c{at}", name) for at, name in enumerate(names)]
    return frame.select(*values, TIME, DIFF)


def _errors(frame: DataFrame) -> DataFrame:
    """The errors of a frame, as they are stored."""
    text = col(ERROR)
    return frame.where(text.isNotNull()).select(
        f.substring(text, 1, 5).alias("sqlstate"),
        f.substring(text, 7, 1 << 20).alias("message"),
        TIME,
        DIFF,
    )
