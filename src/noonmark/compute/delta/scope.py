"""What the delta rules of one tick work with: the changes of the inputs, and old rows by key.

Law: everything that a scope gives out is as of one time (what is old) or over one range of times
(what changed), however long the tick takes.

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f

from noonmark.compute.arrangement import Keeper, Need, through
from noonmark.compute.definition import ERRORS_SCHEMA, errors_name
from noonmark.compute.frame import (
    ERROR,
    LOCAL_BYTES_MAX,
    NOTHING,
    Delta,
    arrow_frame_schema,
    errors_of,
    local_frame,
    positional,
    rows_of,
    union,
)
from noonmark.compute.lookup import Place, rows_by_key
from noonmark.compute.reading import is_view
from noonmark.persist import run
from noonmark.persist.client import Client
from noonmark.persist.run import DIFF, TIME
from noonmark.persist.spark import typed_errors
from noonmark.persist.spark_read import changes_query, frame_of, plan_at
from noonmark.rows.schema import Schema
from noonmark.sql.ir.scalar import may_fail

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Scope:
    """One tick over ``[lower, upper)``."""

    def __init__(
        self,
        spark: SparkSession,
        client: Client,
        keepers: Mapping[Need, Keeper],
        lower: int,
        upper: int,
    ) -> None:
        self.spark = spark
        self.client = client
        self.keepers = keepers
        self.lower = lower
        self.upper = upper
        #: What the arrangements are to be changed by; those without changes are not here.
        self.writes: dict[Keeper, Delta] = {}
        self.rows_in = 0
        self._inputs: dict[str, Delta] = {}
        self._kept: list[DataFrame] = []

    # -- inputs -----------------------------------------------------------------------------

    def changes(self, name: str, schema: Schema) -> Delta:
        """The changes of an input; small ones are read here, and travel with the plan."""
        if name not in self._inputs:
            rows = self._read(name, schema)
            if is_view(self.client, name):
                rows = self._with_errors(rows, self._read(errors_name(name), ERRORS_SCHEMA), schema)
            self._inputs[name] = rows
        return self._inputs[name]

    def _with_errors(self, rows: Delta, errors: Delta, schema: Schema) -> Delta:
        """The changes of a view and of its errors as one."""
        if errors.empty:
            return rows
        text = f.concat_ws(" ", "c0", "c1")
        failed = errors_of(errors.frame.withColumn(ERROR, text), schema)
        both = union([failed] if rows.empty else [rows.frame, failed]).coalesce(1)
        return Delta(lambda: both, rows.bytes + errors.bytes, fails=True)

    def _read(self, name: str, schema: Schema) -> Delta:
        plan = plan_at(self.client, name, changes_query(self.lower, self.upper))
        if not plan.runs and not plan.inline:
            return NOTHING
        if plan.bytes > LOCAL_BYTES_MAX:
            frame = frame_of(self.spark, self.client, plan)
            self._kept.append(frame)
            self.rows_in += sum(part.rows for part in plan.parts)
            return Delta(lambda: _in_layout(frame, schema), plan.bytes)
        tables = list(self.client.iterate(self.client.reader.contents(plan)))
        if not tables:
            return NOTHING
        table = positional(pa.concat_tables(tables), schema)
        self.rows_in += table.num_rows
        return self.local(table, schema)

    def local(self, table: pa.Table, schema: Schema) -> Delta:
        """A table of changes that is in the driver's memory."""
        if not table.num_rows:
            return NOTHING
        table = table.cast(arrow_frame_schema(schema, timed=True))
        fails = table.column(ERROR).null_count < table.num_rows
        return Delta(
            lambda: local_frame(self.spark, table, schema, timed=True), table.nbytes, fails, table
        )

    # -- old rows ---------------------------------------------------------------------------

    def old_rows(self, need: Need, keys: DataFrame, *, small: bool) -> DataFrame:
        """The rows of a need before `lower`, at least those whose keys are among `keys`."""
        keeper = self.keepers[need]
        frame = rows_by_key(self.spark, self.client, keeper, keys, self.lower - 1, small=small)
        self._kept.append(frame)
        base = keeper.need.relation
        between = through(need.relation, base, frame)
        return rows_of(between, may_fail(need.relation) and need.relation != base)

    def place(self, need: Need) -> Place:
        """Where tasks look up what a need asks for."""
        return Place.of(self.client, self.keepers[need], self.lower - 1)

    # -- results ----------------------------------------------------------------------------

    def settle(self, delta: Delta, schema: Schema) -> Delta:
        """Compute changes once, for all who use them: one Spark job.

        Small changes come to the driver; large ones stay with the executors.
        """
        if delta.empty or delta.table is not None:
            return delta
        with typed_errors():
            if not delta.small:
                return delta.then(delta.frame.localCheckpoint())
            table = delta.frame.toArrow()
        return self.local(run.consolidate(table), schema)

    def note(self, need: Need, settled: Delta) -> None:
        """What the arrangement that answers a need is to be changed by."""
        if not settled.empty:
            self.writes[self.keepers[need]] = settled


def _in_layout(frame: DataFrame, schema: Schema) -> DataFrame:
    values = [f.col(f"`{name.replace('`', '``')}`") for name in schema.names]
    return frame.select(
        *(value.alias(f"c{at}") for at, value in enumerate(values)),
        f.lit(None).cast("string").alias(ERROR),
        TIME,
        DIFF,
    )
