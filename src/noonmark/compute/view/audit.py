"""Audits: a view against its query as it is written, at one time.

Law: ``audit_view(v, t)`` is empty iff v at t is what its text means over its inputs at t. The judge
starts from the text and takes none of the accused's steps:

    small inputs    the plain meaning of the plan as it was written, in one task (`compute.judge`)
    larger ones     Spark's own operators over that plan (`compute.spark.as_written`)
    not judged      where the text has no answer and the view has one, because the value that fails
                    is not needed: then the view is compared with the plan that is maintained
                    (`compute.spark.contents`), and the audit says so

What differs is found where the rows are: only that comes back.

Where it runs: driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from noonmark.compute.jvm import session
from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.spark.as_written import AsWritten, uncorrelated
from noonmark.compute.spark.column import col
from noonmark.compute.spark.contents import BatchQuery
from noonmark.compute.spark.frame import columns, rows_of, union
from noonmark.compute.spark.inputs import frame_at
from noonmark.compute.spark.judge_task import judged
from noonmark.compute.view.view import View
from noonmark.errors import EvaluationError, Unsupported, UsageError
from noonmark.persist.log.state import Collection
from noonmark.persist.part.run import DIFF
from noonmark.rows.arrow import conform, from_table
from noonmark.rows.schema import Column, Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.asked import bind
from noonmark.sql.meaning.judge import WORK_MAX, Difference, work_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Audit:
    """What an audit found, and how.

    Attributes:
        judge: "meaning", "spark", or "maintained" where the text itself has no answer.
    """

    differences: list[Difference]
    judge: str


def audit_view(view: View, as_of: int, *, limit: int = 1000) -> list[Difference]:
    """The rows and errors in which a view differs from its text at a time."""
    return audit(view, as_of, limit=limit).differences


def audit(view: View, as_of: int, *, limit: int = 1000, work_max: float = WORK_MAX) -> Audit:
    """The audit of a view at a time; beyond `work_max` the plain meaning takes too long.

    Raises:
        UsageError: another version computed the view at that time.
    """
    _check_own(view, as_of)
    spark = session.for_batches(view.spark)
    read = partial(frame_at, spark, view.client, as_of)
    written: r.Relation = bind(view.definition.written, (), as_of)
    stored = read(r.Scan(view.name, written.schema))
    sizes = {name: _rows(view.client.state.collection(name)) for name in r.scans(written)}
    found: list[Difference] | None
    if work_of(written, sizes) <= work_max:
        inputs = {r.Scan(name, schema): read(r.Scan(name, schema)) for name, schema in
                  r.scans(written).items()}  # fmt: skip
        judge, found = "meaning", judged(written, inputs, stored, limit)
    else:
        naive = AsWritten(spark, read, inputs_fail=view.inputs_fail)
        judge, found = "spark", _by_spark(naive, written, stored, limit)
    if found is None:
        batch = BatchQuery(spark, read, inputs_fail=view.inputs_fail, now=as_of)
        plan = view.definition.plan
        judge, found = "maintained", _different(plan, stored, batch.frame(plan), limit)
    return Audit(found, judge)


def _check_own(view: View, as_of: int) -> None:
    """Refuse to judge an earlier version, which may have understood the text otherwise."""
    own = view.owned.own_from
    if own is None or as_of < own:
        raise UsageError(
            f'another version of Noonmark computed view "{view.name}" at {as_of}',
            detail="It understood the query in another way."
            + ("" if own is None else f" This version computed the view anew at {own}."),
            hint="Audit it after its next tick."
            if own is None
            else f"Audit it AS OF {own} or later.",
        )


def _by_spark(
    naive: AsWritten, written: r.Relation, stored: DataFrame, limit: int
) -> list[Difference] | None:
    """By Spark's own operators; None if that plan has no answer, or cannot be asked of Spark."""
    try:
        plan = uncorrelated(written)
        wanted = naive.frame(plan)
        failed = naive.fails(plan) and _has_errors(wanted)
    except Unsupported:
        return None
    except EvaluationError:
        failed = True
    if failed:
        return [] if _has_errors(stored) else None
    return _different(plan, stored, rows_of(wanted, naive.fails(plan)), limit)


def _has_errors(frame: DataFrame) -> bool:
    return bool(frame.where(col(ERROR).isNotNull()).limit(1).count())


def _rows(collection: Collection) -> int:
    return sum(batch.rows for batch in collection.batches)


def _different(
    plan: r.Relation, stored: DataFrame, wanted: DataFrame, limit: int
) -> list[Difference]:
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
