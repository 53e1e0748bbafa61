"""What is there when nothing is: the answers over empty inputs.

A small view is hydrated by the same walk that brings it forward: the contents of its inputs are
changes of nothing. Law: R(t) = R of nothing + the changes from nothing to what is there at t.

Where it runs: executors; pure.
"""

from __future__ import annotations

import numpy as np

from noonmark.compute.incremental.accumulate import accumulators
from noonmark.compute.incremental.temporal import waiting_of
from noonmark.compute.kernel.updates import Changes, Rows, empty_rows
from noonmark.compute.plan.arrangement import Arrangement
from noonmark.compute.scalar.row_by_row import error_text
from noonmark.errors import EvaluationError
from noonmark.rows.arrow import to_array
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.asked import bind
from noonmark.sql.meaning.relation import evaluate


def of_nothing(relation: r.Relation, time: int) -> Changes:
    """The rows, or the error, of a relation whose inputs are empty, at a time."""
    relation = bind(relation, (), time)
    try:
        found = evaluate(relation, {name: {} for name in r.scans(relation)})
    except EvaluationError as error:
        return Changes(empty_rows(relation.schema), ((error_text(error), time, 1),))
    rows = list(found)
    columns = [to_array([row[at] for row in rows], c.type) for at, c in enumerate(relation.schema)]
    diffs = np.array(list(found.values()), np.int64)
    return Changes(Rows(tuple(columns), np.full(len(rows), time, np.int64), diffs))


def kept_of_nothing(arrangement: Arrangement, time: int) -> Rows:
    """What an arrangement holds when the inputs are empty."""
    relation = arrangement.spec.relation
    if arrangement.spec.turns:
        assert isinstance(relation, r.Filter)
        return waiting_of(relation, of_nothing(relation.input, time).rows, time + 1)
    if not arrangement.spec.sums:
        return of_nothing(relation, time).rows
    assert isinstance(relation, r.Aggregate)
    # Not nothing at all: constants are among the rows that it adds up.
    return accumulators(relation, of_nothing(relation.input, time).rows, time)
