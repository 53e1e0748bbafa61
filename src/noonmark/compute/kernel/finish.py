"""Aggregates of accumulators: `noonmark.compute.spark.aggregates` for many groups at once.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from noonmark.compute.kernel.accumulator import final, places, summands, type_of
from noonmark.compute.kernel.average import averaged
from noonmark.compute.kernel.updates import Errors, Ints, Rows
from noonmark.compute.scalar import number
from noonmark.compute.scalar.number import NoKernel
from noonmark.compute.scalar.row_by_row import error_text
from noonmark.errors import EvaluationError
from noonmark.rows.arrow import from_array, to_array
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall


def finished(node: r.Aggregate, rows: Rows, errors: Errors) -> tuple[Rows, Ints]:
    """The aggregates of the groups that have them, and which groups these are."""
    width = len(node.keys)
    columns = list(rows.columns[:width])
    failed: list[str | None] = [None] * len(rows)
    for call, place in zip(node.aggregates, places(node), strict=True):
        made, wrong = shown(call, [each for each in rows.columns[place] if each is not None])
        columns.append(made)
        if wrong:
            failed = [a or b for a, b in zip(failed, wrong, strict=True)]
    aggregated = rows.with_columns(columns)
    if not any(failed):
        return aggregated, np.arange(len(rows))
    errors.add(failed, rows.time, rows.diff)
    fine = np.flatnonzero([text is None for text in failed])
    return aggregated.take(fine), fine


def shown(
    call: AggregateCall, accumulators: Sequence[pa.Array]
) -> tuple[pa.Array, list[str | None]]:
    """One aggregate of its accumulators, and its errors; none is an empty list."""
    counts, *totals = accumulators
    if call.entry.name == "count":
        return counts, []
    if call.entry.name == "sum" and pa.types.is_decimal(totals[0].type):
        total = number.scaled(totals[0])
        there = counts.to_numpy() != 0
        try:
            return number.to_array(number.Scaled(total.values, total.scale, there), call.type), []
        except NoKernel:
            pass  # one of them does not fit: which, and why, is asked one by one
    if call.entry.name == "avg":
        made = averaged(totals[0], counts, call.type)
        if made is not None:
            return made, []
    kinds = [type_of(call, each) for each in summands(call)]
    sums = [from_array(each, kind) for each, kind in zip(totals, kinds, strict=True)]
    values: list[Any] = []
    errors: list[str | None] = []
    for count, *each in zip(counts.to_pylist(), *sums, strict=True):
        try:
            values.append(final(call, count, *each))
            errors.append(None)
        except EvaluationError as error:
            values.append(None)
            errors.append(error_text(error))
    return to_array(values, call.type), errors
