"""Audits: a view against its definition, at one time.

Law: ``audit_view(v, t)`` is empty iff v at t is its definition applied to its inputs at t. It
recomputes everything from the inputs with `noonmark.compute.batch` on Spark, and compares there:
only what differs comes back.

Where it runs: driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import functions as f

from noonmark.compute import session
from noonmark.compute.batch import Batch
from noonmark.compute.column import col
from noonmark.compute.frame import ERROR, columns, union
from noonmark.compute.reading import frame_at
from noonmark.compute.view import View
from noonmark.persist.run import DIFF
from noonmark.rows.arrow import conform, from_table
from noonmark.rows.schema import Column, Schema
from noonmark.sql.ir import relation as r


@dataclass(frozen=True)
class Difference:
    """A row, or an error, that is there `extra` times more than the definition says."""

    row: tuple[Any, ...]
    error: str | None
    extra: int


def audit_view(view: View, as_of: int, *, limit: int = 1000) -> list[Difference]:
    """The rows and errors in which a view differs from its definition at a time."""
    spark = session.for_batches(view.spark)
    plan, client = view.definition.plan, view.client
    read = partial(frame_at, spark, client, as_of)
    batch = Batch(spark, read, inputs_fail=view.inputs_fail, now=as_of)
    wanted = batch.frame(plan)
    stored = read(r.Scan(view.name, plan.schema))
    both = union([stored, wanted.withColumn(DIFF, -col(DIFF))])
    row = [*columns(len(plan.schema)), col(ERROR)]
    different = both.groupBy(*row).agg(f.sum(DIFF).alias(DIFF)).where(col(DIFF) != 0)
    table = different.limit(limit).toArrow()
    names = list(plan.schema.names)
    data = table.select(range(len(names))).rename_columns(names)
    free = Schema(tuple(Column(each.name, each.type) for each in plan.schema))
    rows = from_table(conform(data, free), free)
    errors, extras = table.column(ERROR).to_pylist(), table.column(DIFF).to_pylist()
    return [Difference(*each) for each in zip(rows, errors, extras, strict=True)]
