"""Numbers in the range and at the scale of their type.

Law: ``fit(x, t)`` is the value of type t nearest to x, ties away from zero, or `OutOfRange`. Values
of other types pass unchanged.

Numerics. PostgreSQL's numeric has as many digits as it needs and shows as many as its operands
had. Ours are 38 digits wide at a scale that is known when the query is planned:

- ``a + b``, ``a - b``, ``a % b`` have the larger scale of the two; ``a * b`` the sum of the scales:
  as PostgreSQL shows them.
- ``a / b``, ``avg`` and the like are plain numeric: PostgreSQL's digits (at least 16 significant),
  at most 18 of them after the point, trailing zeros not shown.
- Where a result would need more than 38 digits its scale is cut to 18 before its range is.

So every value is PostgreSQL's, or is PostgreSQL's rounded to 18 digits after the point; only a
number above 10^20 (plain) or above 38 digits is `OutOfRange` where PostgreSQL goes on.
"""

from __future__ import annotations

import decimal
import math
import struct
from decimal import Decimal
from typing import Any

from noonmark.errors import OutOfRange
from noonmark.rows import types as t
from noonmark.rows.identity import one_float

WIDE = decimal.Context(prec=400, rounding=decimal.ROUND_HALF_UP, Emin=-100_000, Emax=100_000)
_BITS: dict[type[t.SqlType], int] = {t.SmallInt: 15, t.Integer: 31, t.BigInt: 63}
_WHOLE_DIGITS: dict[type[t.SqlType], int] = {t.SmallInt: 5, t.Integer: 10, t.BigInt: 19}


def fit(value: Any, sql_type: t.SqlType) -> Any:
    """The value as one of the type; None stays None."""
    if value is None:
        return None
    bits = _BITS.get(type(sql_type))
    if bits is not None:
        if not -(1 << bits) <= value < 1 << bits:
            raise OutOfRange(f"{sql_type} out of range")
        return value
    if isinstance(sql_type, t.Numeric):
        return fit_numeric(value, sql_type)
    if isinstance(sql_type, t.Real):
        return one_float(to_real(value))
    return one_float(value) if isinstance(sql_type, t.Double) else value


def fit_numeric(value: Decimal | int, sql_type: t.Numeric) -> Decimal:
    """The number at the scale of the type; plain numeric without trailing zeros."""
    number = quantize(Decimal(value), sql_type.stored_scale)
    if number and number.adjusted() >= sql_type.stored_precision - sql_type.stored_scale:
        raise OutOfRange(
            "numeric field overflow",
            detail=f"A field of type {sql_type} must round to an absolute value less than "
            f"10^{sql_type.stored_precision - sql_type.stored_scale}.",
        )
    return number if sql_type.scale is not None else plain(number)


def quantize(number: Decimal, scale: int) -> Decimal:
    """The number with that many digits after the point, ties away from zero; no negative zero."""
    if number and number.adjusted() > 200:
        raise OutOfRange("value overflows numeric format")
    rounded = number.quantize(Decimal(1).scaleb(-scale), context=WIDE)
    return rounded if rounded else abs(rounded)


def plain(number: Decimal) -> Decimal:
    """The number without trailing zeros after the point, and without an exponent."""
    stripped = number.normalize(WIDE)
    exponent = stripped.as_tuple().exponent
    assert isinstance(exponent, int)
    return stripped.quantize(Decimal(1), context=WIDE) if exponent > 0 else stripped


def to_real(value: float) -> float:
    """The nearest 32-bit float."""
    if math.isinf(value) or math.isnan(value):
        return value
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise OutOfRange("value out of range: overflow") from None
    if rounded == 0 and value != 0:
        raise OutOfRange("value out of range: underflow")
    return rounded


def numeric_for(sql_type: t.SqlType) -> t.Numeric:
    """The numeric that holds every value of an integer or numeric type, and no more."""
    if isinstance(sql_type, t.Numeric):
        return sql_type
    digits = _WHOLE_DIGITS.get(type(sql_type))
    return t.Numeric() if digits is None else t.Numeric(digits, 0)


def bounded(whole: int, scale: int) -> t.Numeric:
    """The numeric with so many digits before and after the point, cut to what storage has.

    >>> str(bounded(10, 2)), str(bounded(40, 4)), str(bounded(10, 40))
    ('numeric(12,2)', 'numeric(38,4)', 'numeric')
    """
    if scale > t.NUMERIC_PLAIN_SCALE:
        return t.Numeric()
    return t.Numeric(max(min(whole + scale, t.NUMERIC_PRECISION_MAX), 1), scale)
