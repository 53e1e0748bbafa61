"""Exact numbers as integers at a scale: numerics computed by numpy.

Law: a `Scaled` of values x and scale s stands for the numbers x / 10^s; sums and products of such
are exact: 64-bit where everything fits, Python's own integers where it may not.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.rows import types as t
from noonmark.rows.arrow import arrow_type
from noonmark.sql.functions.number.fit import WIDE

#: Below this a product or sum is certain to fit.
SAFE = float(1 << 62)
Values = npt.NDArray[Any]


class NoKernel(Exception):
    """There is no way to compute this for all rows at once: it is asked row by row."""


#: How kernels say that: our own, and Arrow's for a value or a type that they do not take.
NO_KERNEL = (NoKernel, pa.ArrowInvalid, pa.ArrowNotImplementedError)


@dataclass(frozen=True, eq=False)
class Scaled:
    """Numbers at a scale; `valid` is None when none is NULL, and a NULL's value is 0."""

    values: Values
    scale: int
    valid: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def at_scale(self, scale: int) -> Scaled:
        """The same numbers with more digits after the point."""
        if scale == self.scale:
            return self
        if scale < self.scale:
            raise NoKernel
        factor = 10 ** (scale - self.scale)
        return Scaled(_times(self.values, factor), scale, self.valid)


def bound(values: Values) -> float:
    """What none of the values is above, nor its negative."""
    return max(abs(float(values.max())), abs(float(values.min()))) if len(values) else 0.0


def _wide(values: Values) -> Values:
    return values if values.dtype == object else values.astype(object)


def _both_short(a: Values, b: Values) -> bool:
    return bool(a.dtype == np.int64) and bool(b.dtype == np.int64)


def _times(values: Values, factor: int) -> Values:
    if values.dtype == object or factor >= 1 << 62 or bound(values) * factor >= SAFE:
        return _wide(values) * factor
    return values * np.int64(factor)


def _negated(values: Values) -> Values:
    return -_wide(values) if bound(values) >= SAFE else -values


def plus(a: Values, b: Values) -> Values:
    """Exact sums."""
    if _both_short(a, b) and bound(a) + bound(b) < SAFE:
        return a + b
    return _wide(a) + _wide(b)


def times(a: Values, b: Values) -> Values:
    """Exact products."""
    if _both_short(a, b) and bound(a) * bound(b) < SAFE:
        return a * b
    return _wide(a) * _wide(b)


def sums(values: Values, ids: npt.NDArray[np.int64], count: int) -> Values:
    """The exact sum of the values of each group."""
    if values.dtype != object and bound(values) * max(len(values), 1) < SAFE:
        if count == 1:
            return np.array([values.sum()], np.int64)
        total = np.zeros(count, np.int64)
        np.add.at(total, ids, values)
        return total
    made = np.zeros(count, object)
    for at, value in zip(ids.tolist(), values.tolist(), strict=True):
        made[at] += value
    return made


def _both(a: Scaled, b: Scaled) -> npt.NDArray[np.bool_] | None:
    if a.valid is None or b.valid is None:
        return b.valid if a.valid is None else a.valid
    return a.valid & b.valid


def add(a: Scaled, b: Scaled) -> Scaled:
    """A + b at the larger scale."""
    scale = max(a.scale, b.scale)
    x, y = a.at_scale(scale), b.at_scale(scale)
    return Scaled(plus(x.values, y.values), scale, _both(a, b))


def subtract(a: Scaled, b: Scaled) -> Scaled:
    """A - b at the larger scale."""
    return add(a, Scaled(_negated(b.values), b.scale, b.valid))


def multiply(a: Scaled, b: Scaled) -> Scaled:
    """A * b at the sum of the scales."""
    return Scaled(times(a.values, b.values), a.scale + b.scale, _both(a, b))


def compared(a: Scaled, b: Scaled, op: Callable[[Any, Any], Any]) -> pa.Array:
    """Whether a stands to b as asked, whatever their scales; NULL where one of them is."""
    scale = max(a.scale, b.scale)
    made = np.asarray(op(a.at_scale(scale).values, b.at_scale(scale).values), np.bool_)
    valid = _both(a, b)
    mask = None if valid is None else ~np.broadcast_to(valid, made.shape)
    return pa.array(made, pa.bool_(), mask=mask)


def scaled(array: pa.Array) -> Scaled:
    """An array of integers or decimals."""
    valid = None if not array.null_count else array.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_integer(array.type):
        values = pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        return Scaled(values, 0, valid)
    if not pa.types.is_decimal128(array.type):
        raise NoKernel
    words = np.frombuffer(array.buffers()[1], np.int64) if len(array) else np.zeros(0, np.int64)
    words = words[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = words[0::2], words[1::2]
    if valid is not None:
        low, high = np.where(valid, low, 0), np.where(valid, high, 0)
    if (high == low >> 63).all():
        return Scaled(low, array.type.scale, valid)
    wide = high.astype(object) * (1 << 64) + low.view(np.uint64).astype(object)
    return Scaled(wide, array.type.scale, valid)


def scaled_or_constant(value: pa.Array | pa.Scalar) -> Scaled:
    """A column or a constant; numpy spreads the constant over the rows."""
    return scaled(pa.repeat(value, 1) if isinstance(value, pa.Scalar) else value)


def to_array(numbers: Scaled, kind: t.SqlType) -> pa.Array:
    """The numbers as a column of an integer or numeric type; `NoKernel` when one does not fit."""
    storage = arrow_type(kind)
    mask = None if numbers.valid is None else ~numbers.valid
    if pa.types.is_integer(storage):
        if numbers.scale or numbers.values.dtype == object:
            raise NoKernel
        if bound(numbers.values) >= float(1 << (storage.bit_width - 2)):
            raise NoKernel
        return as_stored(numbers.values, storage, mask)
    if not pa.types.is_decimal128(storage):
        raise NoKernel
    exact = numbers.at_scale(storage.scale)
    if bound(exact.values) >= 10.0 ** min(storage.precision, 38) * 0.999:
        raise NoKernel
    if exact.values.dtype == object:
        listed = [Decimal(x).scaleb(-storage.scale, WIDE) for x in exact.values.tolist()]
        return pa.array(listed, storage, mask=mask)
    return as_stored(exact.values, storage, mask)


def as_stored(
    values: npt.NDArray[np.int64], storage: pa.DataType, mask: npt.NDArray[np.bool_] | None
) -> pa.Array:
    """Integers as a column of integers, or as decimals at the scale of these; all of them fit."""
    if pa.types.is_integer(storage):
        return pa.array(values, pa.int64(), mask=mask).cast(storage)
    words = np.empty(2 * len(values), np.int64)
    words[0::2], words[1::2] = values, values >> 63
    made = pa.Array.from_buffers(storage, len(values), [None, pa.py_buffer(words.tobytes())])
    return made if mask is None else pc.if_else(pa.array(mask), pa.scalar(None, storage), made)
