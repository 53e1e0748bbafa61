"""When two Python values are the same stored value.

The evaluator, mirrors and multisets keep rows as keys of dicts, and a row that replaces an equal
one that is not the same (0 by -0, 10.0 by 10.00) is a change.

Law (identity): for values a, b of one type, ``hashable(a) == hashable(b)`` iff they are stored as
the same bits: there is one NaN, and -0 is not 0. Both can be hashed.
Equality in SQL is another thing, and coarser: `noonmark.rows.order`.

Python's own equality says that -0.0 is 0.0, so a negative zero among rows is `NEGATIVE_ZERO`: a
float in every respect, except that it is equal to no positive zero that is a float. It is equal to
the integer 0, which is no value of its type: so a function that asks ``x == 0`` need not know.
"""

from __future__ import annotations

import math
from typing import Any

from noonmark.rows import types as t


class _NegativeZero(float):
    """See the module."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, float):
            return other.hex() == "-0x0.0p+0"
        return float.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return 0

    def __reduce__(self) -> str:
        return "NEGATIVE_ZERO"


NEGATIVE_ZERO = _NegativeZero(-0.0)


def one_float(value: float) -> float:
    """The float such that equal is the same."""
    if value != value:  # noqa: PLR0124 - NaN
        return math.nan
    if value == 0 and math.copysign(1.0, value) < 0:
        return NEGATIVE_ZERO
    return value


def hashable(value: Any) -> Any:
    """The value as it stands in the key of a dict; an array is a tuple."""
    if isinstance(value, list | tuple):
        return tuple(map(hashable, value))
    return one_float(value) if isinstance(value, float) else value


def is_own_identity(kind: t.SqlType) -> bool:
    """Whether values of the type need no `hashable`."""
    return not isinstance(kind, t.Array | t.Record | t.Real | t.Double)
