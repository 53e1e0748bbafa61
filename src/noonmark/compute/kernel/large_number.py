"""Whole numbers of any size: sums of floats, and of squares, which no numeric holds.

A float is a whole number of units of 2^-1126: so a sum of floats is one of whole numbers, exact
whatever its order. Sums of squares of floats count units of 2^-2252.

Law: ``decode(encode(x)) == x``, and equal numbers have equal bytes. ``sums(values, ...)`` and
``sums_of_squares(values, ...)`` are the exact sums over each group.

Where it runs: everywhere; pure.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noonmark.compute.kernel.updates import Ints
from noonmark.compute.scalar import number
from noonmark.compute.scalar.number import Values

#: The exponent of the unit: the smallest float is 2^-1074, with 53 digits as they are taken here.
FLOAT_UNITS = 1_126
_DIGITS = 53
_SHIFT_BYTES = 2
#: More than any shift: floats are below 2^1024, and so are their squares below 2^2048.
_SHIFTS = 1 << 13
#: Products of two halves have 54 bits; half of those can be added up a billion times.
_HALF = 27

Floats = npt.NDArray[np.float64]


def encode(whole: int) -> bytes:
    """A number in as many bytes as it needs: how many zero bits it ends with, and the rest."""
    if not whole:
        return b""
    zeros = (whole & -whole).bit_length() - 1
    rest = whole >> zeros
    digits = rest.to_bytes(rest.bit_length() // 8 + 1, "big", signed=True)
    return zeros.to_bytes(_SHIFT_BYTES, "big") + digits


def decode(data: bytes) -> int:
    """The number that was encoded."""
    zeros = int.from_bytes(data[:_SHIFT_BYTES], "big")
    return int.from_bytes(data[_SHIFT_BYTES:], "big", signed=True) << zeros


def to_array(values: Values) -> pa.Array:
    """Numbers as a column."""
    return pa.array([encode(int(each)) for each in values.tolist()], pa.binary())


def from_array(array: pa.Array) -> Values:
    """The numbers of a column."""
    made = np.empty(len(array), object)
    made[:] = [decode(each) for each in array.to_pylist()]
    return made


def sums(values: Floats, diff: Ints, ids: Ints, count: int) -> Values:
    """The sum of the finite values of each group, each as often as it is there."""
    whole, shift = _parts(values)
    return _gathered(iter([(whole, shift)]), diff, ids, count)


def sums_of_squares(values: Floats, diff: Ints, ids: Ints, count: int) -> Values:
    """The sum of the squares of the finite values of each group."""
    whole, shift = _parts(values)
    high, low = whole >> _HALF, whole & ((1 << _HALF) - 1)
    terms = [
        (high * high, 2 * shift + 2 * _HALF),
        (high * low, 2 * shift + _HALF + 1),
        (low * low, 2 * shift),
    ]
    return _gathered(iter(terms), diff, ids, count)


def _parts(values: Floats) -> tuple[Ints, Ints]:
    """The digits of floats as whole numbers, and by how many bits they are above the unit."""
    fraction, exponent = np.frexp(values)
    whole = np.ldexp(fraction, _DIGITS).astype(np.int64)
    return whole, exponent.astype(np.int64) + (FLOAT_UNITS - _DIGITS)


def _gathered(terms: Iterator[tuple[Ints, Ints]], diff: Ints, ids: Ints, count: int) -> Values:
    """The sum of terms below 2^55, each shifted: those of one group and shift at once."""
    made = np.zeros(count, object)
    for whole, shift in terms:
        cells, at = np.unique(ids * _SHIFTS + shift, return_inverse=True)
        high, low = whole >> _HALF, whole & ((1 << _HALF) - 1)
        highs, lows = (
            number.sums(number.times(part, diff), at, len(cells)).tolist() for part in (high, low)
        )
        for cell, above, below in zip(cells.tolist(), highs, lows, strict=True):
            group, bits = divmod(cell, _SHIFTS)
            made[group] += ((above << _HALF) + below) << bits
    return made
