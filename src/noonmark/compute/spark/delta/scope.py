"""What the delta rules of one tick over large changes work with.

Law: everything that a scope gives out is as of one time (what is old) or over one range of times
(what changed), however long the tick takes. What is old is computed from the inputs, or read from
an arrangement, by Spark: for a large change that is cheaper than to look its keys up.

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from noonmark.compute.incremental.by_key import BEFORE
from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.plan.arrangement import Arrangement, ArrangementSpec
from noonmark.compute.plan.definition import ERRORS_SCHEMA, errors_name
from noonmark.compute.spark.column import col, constant, named, quoted
from noonmark.compute.spark.contents import BatchQuery
from noonmark.compute.spark.frame import (
    NOTHING,
    Delta,
    columns,
    errors_of,
    no_error,
    one,
    rows_of,
    union,
)
from noonmark.compute.spark.inputs import frame_at, is_view
from noonmark.compute.spark.lookup import LookupTarget
from noonmark.compute.trace.pending import TURN, due_query
from noonmark.persist.client import Client
from noonmark.persist.part.run import DIFF, TIME
from noonmark.persist.read.handle import plan_at
from noonmark.persist.read.plan import Query
from noonmark.persist.spark.read import changes_query, frame_of
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Scope:
    """One tick over ``[lower, upper)``."""

    def __init__(
        self,
        spark: SparkSession,
        client: Client,
        keepers: Mapping[ArrangementSpec, Arrangement],
        times: tuple[int, int],
        *,
        inputs_fail: bool,
    ) -> None:
        self.spark = spark
        self.client = client
        self.keepers = keepers
        self.lower, self.upper = times
        #: What the accumulators are to be changed by; those without changes are not here.
        self.sums: dict[ArrangementSpec, Delta] = {}
        #: What the arrangements of temporal filters are to be changed by.
        self.turns: dict[ArrangementSpec, Delta] = {}
        read = partial(frame_at, spark, client, self.lower - 1, despite_error=True)
        self._batch = BatchQuery(spark, read, inputs_fail=inputs_fail, now=self.lower - 1)
        self._kept: list[DataFrame] = []

    # -- inputs -----------------------------------------------------------------------------

    def changes(self, name: str, schema: Schema) -> Delta:
        """The changes of an input, with those of its errors when it is a view."""
        rows = self._read(name, schema)
        if not is_view(self.client, name):
            return rows
        errors = self._read(errors_name(name), ERRORS_SCHEMA)
        if errors.empty:
            return rows
        text = f.concat_ws(" ", "c0", "c1")
        failed = errors_of(errors.frame.withColumn(ERROR, text), schema, timed=True)
        both = [failed] if rows.empty else [rows.frame, failed]
        return Delta(lambda: union(both), fails=True)

    def _read(self, name: str, schema: Schema) -> Delta:
        plan = plan_at(self.client, name, changes_query(self.lower, self.upper, despite_error=True))
        if not plan.runs and not plan.inline:
            return NOTHING
        frame = frame_of(self.spark, self.client, plan)
        self._kept.append(frame)
        return Delta(lambda: _in_layout(frame, schema))

    def due(self, keeper: Arrangement) -> DataFrame | None:
        """What is due of what waits for its turn, in the layout; None when there is nothing."""
        plan = plan_at(self.client, keeper.name, due_query(self.lower, self.upper))
        if not plan.runs and not plan.inline:
            return None
        frame = frame_of(self.spark, self.client, plan)
        self._kept.append(frame)
        values = [named(name, f"c{at}") for at, name in enumerate(keeper.schema.names[:-1])]
        return frame.select(*values, no_error(), named(TURN, TIME), one())

    # -- what was there -----------------------------------------------------------------------

    def old(self, relation: r.Relation) -> DataFrame:
        """The rows of a relation before the tick, in the layout, at `BEFORE`."""
        keeper = self.keepers.get(ArrangementSpec(relation))
        if keeper is not None:
            return self._everything(keeper)
        frame = rows_of(self._batch.frame(relation), self._batch.fails(relation))
        return _before(frame, len(relation.schema))

    def old_rows(self, relation: r.Relation, keyed: DataFrame, keys: DataFrame) -> DataFrame:
        """Of old rows with their keys, k0 and on, those whose keys are among `keys`."""
        names = keys.columns
        if not names:
            return keyed
        renamed = keys.distinct().select(*(named(name, f"a{name}") for name in names))
        same = [col(name).eqNullSafe(col(f"a{name}")) for name in names]
        found = keyed.join(renamed, same, "left_semi")
        return found.select(*(f"c{at}" for at in range(len(relation.schema))), ERROR, TIME, DIFF)

    def place(self, need: ArrangementSpec) -> LookupTarget:
        """Where tasks look up accumulators."""
        return LookupTarget.of(self.client, self.keepers[need], self.lower - 1)

    def _everything(self, keeper: Arrangement) -> DataFrame:
        plan = plan_at(self.client, keeper.name, Query(self.lower - 1, despite_error=True))
        frame = frame_of(self.spark, self.client, plan)
        self._kept.append(frame)
        values = [named(name, f"c{at}") for at, name in enumerate(keeper.schema.names)]
        rows = frame.select(*values, no_error(), one())
        return _before(rows, len(keeper.schema))


def _before(frame: DataFrame, width: int) -> DataFrame:
    return frame.select(*columns(width), ERROR, constant(BEFORE, TIME), DIFF)


def _in_layout(frame: DataFrame, schema: Schema) -> DataFrame:
    values = [quoted(name, f"c{at}") for at, name in enumerate(schema.names)]
    return frame.select(*values, no_error(), TIME, DIFF)
