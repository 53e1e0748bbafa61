"""Numbers that look random and are a pure function of where they stand.

`draw(seed, stream, a, b, ...)` hashes its arguments, arrays element by element, to 64 bits with the
finalizer of splitmix64. Nothing is kept between calls, so a record can be made again, alone, in any
order and on any machine; and nothing depends on the version of numpy, as its generators do.

Law (pure): equal arguments, equal bits, in whatever shape of call they came.

>>> int(draw(1, 2, 3)), draw(1, 2, np.array([3, 4])).tolist()[0] == int(draw(1, 2, 3))
(1072907043932612987, True)
"""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_64 = (1 << 64) - 1
_30, _27, _31, _32 = (np.uint64(bits) for bits in (30, 27, 31, 32))


def draw(seed: int, *places: Any) -> Words:
    """64 bits for each place; places are integers or arrays of them, and broadcast."""
    word = np.array([seed & _64], np.uint64)
    for place in places:
        word = _mix(word + _GOLDEN * (_words(place) + np.uint64(1)))
    return word if word.size > 1 or any(np.ndim(place) for place in places) else word[0]


def below(bits: Words, count: int | Longs) -> Longs:
    """A number in [0, count) from the upper bits; count is at most 2^32."""
    return (((bits >> _32) * np.asarray(count).astype(np.uint64)) >> _32).astype(np.int64)


def between(bits: Words, low: int, high: int) -> Longs:
    """A number in [low, high], both possible."""
    return low + below(bits, high - low + 1)


def again(bits: Words, nth: int) -> Words:
    """More bits from the same bits: cheaper than a `draw` for each column of a row."""
    return _mix(bits + np.uint64(int(_GOLDEN) * nth & _64))


def stride(count: int) -> int:
    """A step that visits all of `count` places before the first comes again, not in order."""
    step = max(1, int(count * 0.6180339887))
    while gcd(step, count) != 1:
        step += 1
    return step


def _words(place: Any) -> Words:
    # Arrays wrap around in silence, as they should here; numpy's scalars warn.
    return np.atleast_1d(place).astype(np.uint64)


def _mix(word: Words) -> Words:
    word = (word ^ (word >> _30)) * _FIRST
    word = (word ^ (word >> _27)) * _SECOND
    return word ^ (word >> _31)
