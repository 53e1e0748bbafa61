"""Temporal filters of large changes: every row has its turn.

Law: that of `noonmark.compute.incremental.temporal`.

Where it runs: driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.plan.arrangement import ArrangementSpec
from noonmark.compute.spark.column import col
from noonmark.compute.spark.delta.scope import Scope
from noonmark.compute.spark.frame import NOTHING, Delta, names, rows_of, union
from noonmark.compute.spark.pending import AT, waiting, with_turns
from noonmark.persist.part.run import DIFF, TIME
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import may_fail
from noonmark.sql.ir.temporal import temporal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def follow(node: r.Filter, scope: Scope, source: Delta) -> Delta:
    """The changes of a temporal filter, from those of its input; what waits goes to the scope."""
    need = ArrangementSpec(node, turns=True)
    due = scope.due(scope.keepers[need])
    what = temporal(node)
    assert what is not None, "a filter that does not follow the time"
    fails = source.fails or may_fail(what.scalar)
    made: list[DataFrame] = []
    kept: list[DataFrame] = []
    if not source.empty:
        turned = with_turns(node, source.frame)
        rows = rows_of(turned, fails)
        if not what.begins:
            rows = rows.where(col(TIME) < col(AT))
        made += _acts(rows, scope.upper, begins=what.begins)
        kept.append(waiting(node, rows, scope.upper))
        if fails:
            made.append(turned.where(col(ERROR).isNotNull()))
    if due is not None:
        sign = 1 if what.begins else -1
        made.append(due.withColumn(DIFF, col(DIFF) * sign))
        gone = due.withColumn(AT, col(TIME)).withColumn(DIFF, -col(DIFF))
        kept.append(waiting(node, gone, scope.lower))
    if not made:
        return NOTHING
    layout = [*names(len(node.schema)), ERROR, TIME, DIFF]
    frame = union([each.select(*layout) for each in made])
    both = union(kept)
    scope.turns[need] = Delta(lambda: both)
    return Delta(lambda: frame, fails)


def _acts(rows: DataFrame, upper: int, *, begins: bool) -> list[DataFrame]:
    """What rows with turns do before the end of the tick."""
    if begins:
        late = rows.withColumn(TIME, f.greatest(TIME, AT))
        return [late.where(col(TIME) < upper)]
    gone = rows.where(col(AT) < upper)
    return [rows, gone.withColumn(TIME, col(AT)).withColumn(DIFF, -col(DIFF))]
