"""Floats, all rows at once: what numpy computes as PostgreSQL does.

NaN is equal to itself and above every number, and a negative zero is equal to zero. A result that
PostgreSQL refuses, because it overflows, underflows or divides by zero, is `NoKernel`: the rows are
asked one by one then, and say which of them it is.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.compute.scalar.number import NoKernel, Scaled

_ALL_BUT_SIGN = np.int64((1 << 63) - 1)
#: Whole numbers below it, and powers of ten up to it, are floats as they are.
_WHOLE_MAX, _POWER_MAX = float(1 << 53), 22

Floats = npt.NDArray[Any]


def in_order(array: pa.Array) -> pa.Array:
    """Whole numbers in the order of the floats, equal where those are."""
    values = pc.fill_null(array, 0.0).cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0
    bits = values.view(np.int64)
    made = np.where(bits < 0, bits ^ _ALL_BUT_SIGN, bits)
    made = np.where(np.isnan(values), _ALL_BUT_SIGN, made)
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(made, mask=mask)


def _quotient(a: Floats, b: Floats) -> Floats:
    if (b == 0).any():
        raise NoKernel
    return np.asarray(a / b)


_ACTS: dict[str, Callable[[Floats, Floats], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _quotient,
}


def arithmetic(op: str, a: pa.Array, b: pa.Array, storage: pa.DataType) -> pa.Array:
    """One of + - * / of two columns of the same length."""
    null = pc.or_(a.is_null(), b.is_null()).to_numpy(zero_copy_only=False)
    kind = storage.to_pandas_dtype()
    # Where one is NULL there is nothing to compute, nor to refuse.
    x, y = (
        np.where(null, 1, pc.fill_null(each, 1.0).to_numpy(zero_copy_only=False)).astype(kind)
        for each in (a, b)
    )
    with np.errstate(all="ignore"):
        made = np.asarray(_ACTS[op](x, y))
    if (np.isinf(made) & np.isfinite(x) & np.isfinite(y)).any():
        raise NoKernel
    if op in "*/" and ((made == 0) & (x != 0) & np.isfinite(y) & (y != 0)).any():
        raise NoKernel
    return pa.array(made, storage, mask=null)


def of_numbers(numbers: Scaled) -> pa.Array:
    """The floats next to exact numbers; `NoKernel` where they are not certain."""
    values = numbers.values
    if values.dtype == object or numbers.scale > _POWER_MAX:
        raise NoKernel
    if (
        numbers.scale
        and len(values)
        and max(abs(float(values.max())), -float(values.min())) >= (_WHOLE_MAX)
    ):
        raise NoKernel
    made = values.astype(np.float64) / 10.0**numbers.scale
    return pa.array(made, mask=None if numbers.valid is None else ~numbers.valid)
