"""Scalars over the rows of a change or a collection.

Law: ``ask(scalars, rows)`` gives for every row the values that the scalars mean
(`noonmark.sql.evaluate`), or the error of the first that has none.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from noonmark.compute.kernel.updates import Errors, Rows, places
from noonmark.compute.scalar.columns import one
from noonmark.sql.ir import scalar as s


def ask(scalars: Sequence[s.Scalar], rows: Rows) -> tuple[list[pa.Array], list[str | None] | None]:
    """The values, and per row the first error; None when there is no error."""
    arrays: list[pa.Array] = []
    errors: list[str | None] | None = None
    for scalar in scalars:
        array, failed = one(scalar, rows.columns, len(rows))
        arrays.append(array)
        if failed is not None:
            before = errors or [None] * len(rows)
            errors = [a if a is not None else b for a, b in zip(before, failed, strict=True)]
    return arrays, errors


def projected(
    scalars: Sequence[s.Scalar], rows: Rows, errors: Errors
) -> tuple[list[pa.Array], Rows]:
    """The values of the rows that have them; what fails is added to the errors."""
    arrays, failed = ask(scalars, rows)
    if failed is None:
        return arrays, rows
    errors.add(failed, rows.time, rows.diff)
    fine = np.flatnonzero([text is None for text in failed])
    return [array.take(pa.array(fine)) for array in arrays], rows.take(fine)


def kept(predicate: s.Scalar, rows: Rows, errors: Errors) -> np.ndarray[Any, Any]:
    """The places of the rows for which the predicate is TRUE; what fails is added to the errors."""
    if predicate == s.TRUE or not len(rows):
        return np.arange(len(rows))
    array, failed = one(predicate, rows.columns, len(rows))
    if failed is not None:
        errors.add(failed, rows.time, rows.diff)
    return places(array)
