"""Rows in order, all at once.

Law: ``in_order(order, rows, ids)`` are the places of the rows by partition, by the sort keys as SQL
compares them, and then by the whole row; `NoKernel` where Arrow's order is another.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.compute.kernel.scalar import ask
from noonmark.compute.kernel.updates import Ints, Rows
from noonmark.compute.scalar.number import NoKernel
from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.scalar import Scalar

_ALL_BUT_SIGN = (1 << 63) - 1


def values_of(scalars: Sequence[Scalar], rows: Rows) -> list[pa.Array]:
    """What scalars are on rows; `NoKernel` where one of them fails."""
    arrays, errors = ask(scalars, rows)
    if errors is not None:
        raise NoKernel
    return arrays


def sortable(array: pa.Array) -> pa.Array:
    """Values that Arrow orders, and takes for equal, as SQL does; `NoKernel` where there are none.

    NaN is above every number and equal to itself. A negative zero is equal to zero, but not the
    same: rows with one are left to the reference.
    """
    if not pa.types.is_floating(array.type):
        return array
    values = pc.fill_null(array, 0.0).cast(pa.float64()).to_numpy()
    if (np.signbit(values) & (values == 0)).any():
        raise NoKernel
    bits = values.view(np.int64)
    made = np.where(bits < 0, bits ^ np.int64(_ALL_BUT_SIGN), bits)
    made = np.where(np.isnan(values), np.int64(_ALL_BUT_SIGN), made)
    return pa.array(made, mask=array.is_null().to_numpy(zero_copy_only=False))


def in_order(order: Sequence[SortKey], rows: Rows, ids: npt.NDArray[Any]) -> Ints:
    """By partition, by the sort keys, and then by the whole row."""
    columns: list[Any] = [ids]
    directions = ["ascending"]
    for each, values in zip(order, values_of([e.scalar for e in order], rows), strict=True):
        array = sortable(values)
        columns += [pc.is_null(array), array]
        directions += ["descending" if each.nulls_first else "ascending"]
        directions += ["descending" if each.descending else "ascending"]
    for column in rows.columns:
        assert column is not None, "rows are put in order as a whole"
        columns.append(sortable(column))
        directions.append("ascending")
    names = [str(at) for at in range(len(columns))]
    table = pa.table(columns, names=names)
    by = list(zip(names, directions, strict=True))
    found = pc.sort_indices(table, by)
    return np.asarray(found.to_numpy(), np.int64)
