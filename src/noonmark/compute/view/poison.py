"""The row that a tick does not get past, found by halving the change.

A tick is a pure function of its change, so it can be run over half of it without consequences. A
half that does not end in time holds a row that does not; of two halves that both end, none does,
and the change is too large as a whole. A row is only blamed when the change without it ends: a
machine that is busy with something else is slow for every row.

Cost: two runs a halving, each ended after `seconds`.

Where it runs: driver; the halves as Spark jobs.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from noonmark.compute.runner.job import TickTask
from noonmark.compute.runner.limit import Limit
from noonmark.compute.runner.runner import JOBS
from noonmark.errors import NoonmarkError
from noonmark.persist.part.run import DIFF, TIME
from noonmark.persist.spark.errors import SPARK_ERRORS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHOWN_MAX = 200
#: How long the worker of a run that was ended may still take a core: Spark kills it after 2 s.
_GONE_S = 3.0

#: An updated row: the input, and which of its updates.
Place = tuple[str, int]


def find(
    spark: SparkSession, view: str, work: TickTask, seconds: float, limit: Limit
) -> str | None:
    """Where a tick of a view hangs: the input and the row, in words; None when no one row is it.

    Args:
        spark: runs the halves.
        view: the view's name.
        work: the tick.
        seconds: how long a half may take.
        limit: gives the search up.
    """
    work = work.at_hand()
    whole = [(name, at) for name, table in work.changes.items() for at in range(table.num_rows)]
    rows = whole
    while len(rows) > 1:
        middle = len(rows) // 2
        for half in (rows[:middle], rows[middle:]):
            if limit.over:
                return None
            if not _ends(spark, view, _only(work, half), seconds):
                rows = half
                break
        else:
            return None
    rest = [each for each in whole if each not in rows]
    if not rows or not _ends(spark, view, _only(work, rest), seconds):
        return None
    return _shown(work, rows[0])


def _ends(spark: SparkSession, view: str, work: TickTask, seconds: float) -> bool:
    group, limit = f"noonmark-halving-{view}", Limit()
    try:
        with limit.of(partial(JOBS.end, lambda: spark, group), seconds):
            JOBS.run(lambda: spark, [(view, work)], group)
    except (NoonmarkError, *SPARK_ERRORS):
        if limit.over:
            threading.Event().wait(_GONE_S)
        return not limit.over
    return True


def _only(work: TickTask, rows: Sequence[Place]) -> TickTask:
    by_name: dict[str, list[int]] = {}
    for name, at in rows:
        by_name.setdefault(name, []).append(at)
    return replace(work, changes={n: work.changes[n].take(at) for n, at in by_name.items()})


def _shown(work: TickTask, row: Place) -> str:
    name, at = row
    (values,) = work.changes[name].slice(at, 1).to_pylist()
    shown = ", ".join(f"{k}={v}" for k, v in values.items() if k not in (TIME, DIFF))
    return f'The row of "{name}" that it does not get past: {shown[:_SHOWN_MAX]}.'
