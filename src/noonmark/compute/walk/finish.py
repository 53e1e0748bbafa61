"""Aggregates of accumulators: `noonmark.compute.aggregates` for many groups at once.

Where it runs: executors; pure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from noonmark.compute import aggregates
from noonmark.compute.row_by_row import error_text
from noonmark.compute.walk import number
from noonmark.compute.walk.average import averaged
from noonmark.compute.walk.number import NoKernel
from noonmark.compute.walk.rows import Errors, Ints, Rows
from noonmark.errors import EvaluationError
from noonmark.rows.arrow import from_array, to_array
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall


def finished(node: r.Aggregate, rows: Rows, errors: Errors) -> tuple[Rows, Ints]:
    """The aggregates of the groups that have them, and which groups these are."""
    width = len(node.keys)
    columns = list(rows.columns[:width])
    failed: list[str | None] = [None] * len(rows)
    for at, call in enumerate(node.aggregates):
        counts, totals = rows.columns[width + 1 + 2 * at], rows.columns[width + 2 + 2 * at]
        assert counts is not None and totals is not None  # noqa: PT018 - mypy takes both
        made, wrong = _final(call, counts, totals)
        columns.append(made)
        if wrong:
            failed = [a or b for a, b in zip(failed, wrong, strict=True)]
    shown = rows.with_columns(columns)
    if not any(failed):
        return shown, np.arange(len(rows))
    errors.add(failed, rows.time, rows.diff)
    fine = np.flatnonzero([text is None for text in failed])
    return shown.take(fine), fine


def _final(
    call: AggregateCall, counts: pa.Array, totals: pa.Array
) -> tuple[pa.Array, list[str | None]]:
    """One aggregate, and its errors; none is an empty list."""
    if call.entry.name == "count":
        return counts, []
    if call.entry.name == "sum":
        total = number.scaled(totals)
        there = counts.to_numpy() != 0
        try:
            return number.to_array(number.Scaled(total.values, total.scale, there), call.type), []
        except NoKernel:
            pass  # one of them does not fit: which, and why, is asked one by one
    if call.entry.name == "avg":
        made = averaged(totals, counts, call.type)
        if made is not None:
            return made, []
    kind = aggregates.sum_type(call)
    values: list[Any] = []
    errors: list[str | None] = []
    for count, value in zip(counts.to_pylist(), from_array(totals, kind), strict=True):
        try:
            values.append(aggregates.final(call, count, value))
            errors.append(None)
        except EvaluationError as error:
            values.append(None)
            errors.append(error_text(error))
    return to_array(values, call.type), errors
