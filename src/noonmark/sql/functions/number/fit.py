"""Numbers in the range and at the scale of their type.

Law: ``fit(x, t)`` is the value of type t nearest to x, ties away from zero, or `OutOfRange`. Values
of other types pass unchanged.

Numerics. PostgreSQL's numeric has as many digits as it needs and shows as many as its operands
had. Where the scale of a result follows from the types of its operands, ours are up to 38 digits
at that scale, which is quick; everything else is plain numeric, with PostgreSQL's digits:

- ``a + b``, ``a - b``, ``a % b`` have the larger scale of the two; ``a * b`` the sum of the scales;
  of plain numerics, the scales of the values.
- ``a / b``, ``avg`` and the like are plain numeric, with PostgreSQL's digits.

So every value is PostgreSQL's; only a sum or product of numeric(p,s) that has more than 38 digits
is `OutOfRange` where PostgreSQL goes on. Of plain numeric, what PostgreSQL cannot hold is, too.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

from noonmark.errors import InvalidValue, OutOfRange
from noonmark.rows import types as t
from noonmark.rows.identity import one_float
from noonmark.rows.numeral import (
    EXACT_CONTEXT,
    NO_PRECISION,
    Numeral,
    format_numeral,
    numeral,
    scale_of,
)
from noonmark.sql.functions.errors import NotHeldHere

#: Exact for sums and products of all numerics; what has no value is NaN, as in PostgreSQL.
WIDE = EXACT_CONTEXT
#: Above this, fixed numerics are not written out.
_SHORT = 200
#: With more digits after the point a result of numeric(p,s) is plain.
_SCALE_MAX = 18
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
    """The number at the scale of the type; plain numeric at its own."""
    if sql_type.is_plain:
        return _plain(value)
    number = Decimal(value)
    if number.is_nan():
        raise NotHeldHere(f"NaN of type {sql_type} is not supported", hint=NO_PRECISION)
    if not number.is_finite():
        raise OutOfRange(
            "numeric field overflow",
            detail=f"A field of type {sql_type} cannot hold {format_numeral(number)}.",
        )
    if number and number.adjusted() > _SHORT:
        raise _overflow(sql_type)
    number = quantize(number, sql_type.stored_scale)
    if number and number.adjusted() >= sql_type.stored_precision - sql_type.stored_scale:
        raise _overflow(sql_type)
    return plain(number) if sql_type.trimmed else number


def _overflow(sql_type: t.Numeric) -> OutOfRange:
    return OutOfRange(
        "numeric field overflow",
        detail=f"A field of type {sql_type} must round to an absolute value less than "
        f"10^{sql_type.stored_precision - sql_type.stored_scale}.",
    )


def _plain(value: Decimal | int) -> Numeral:
    if type(value) is Numeral:
        return value
    number = Decimal(value)
    if scale_of(number) > t.NUMERIC_SCALE_MAX:
        number = quantize(number, t.NUMERIC_SCALE_MAX)  # as PostgreSQL rounds a product
    try:
        return numeral(number)
    except InvalidValue as error:
        raise OutOfRange(error.message) from None


def quantize(number: Decimal, scale: int) -> Decimal:
    """The number with that many digits after the point, ties away from zero; no negative zero."""
    if not number.is_finite():
        return number
    if number and number.adjusted() >= t.NUMERIC_WHOLE_MAX:
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
    """The numeric with so many digits before and after the point, cut to 38, or plain numeric.

    >>> str(bounded(10, 2)), str(bounded(40, 4)), str(bounded(10, 40))
    ('numeric(12,2)', 'numeric(38,4)', 'numeric')
    """
    if scale > _SCALE_MAX:
        return t.Numeric()
    return t.Numeric(max(min(whole + scale, t.NUMERIC_PRECISION_MAX), 1), scale)
