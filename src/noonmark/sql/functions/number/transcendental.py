"""Powers, exponentials and logarithms of numerics, with PostgreSQL's digits.

Law: the value is the exact one, rounded once at the scale that PostgreSQL chooses: from an estimate
of the result's weight, so that at least 16 digits are significant, and no less than the scales of
the operands.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal

from noonmark.errors import DivisionByZero, InvalidLogarithm, OutOfRange
from noonmark.rows.numeral import scale_of
from noonmark.sql.functions.errors import InvalidPower
from noonmark.sql.functions.number.fit import quantize
from noonmark.sql.functions.number.scale import (
    DIGITS,
    SCALE_SHOWN_MAX,
    SIGNIFICANT_DIGITS_MIN,
    context_of,
    leading,
    quotient,
    shown,
)

_NAN, _ZERO, _ONE, _INFINITY = Decimal("NaN"), Decimal(0), Decimal(1), Decimal("Infinity")
_LOG10_E = 0.434294481903252
#: As far as PostgreSQL estimates: beyond it a result overflows, or is zero.
_WEIGHT_MAX = 131_072


def exponential(a: Decimal) -> Decimal:
    """The exponential."""
    if not a.is_finite():
        return _ZERO if a == -_INFINITY else a
    weight = max(-2000.0, min(float(a) * _LOG10_E, 200_000.0))
    if weight > _WEIGHT_MAX:
        raise _overflows()
    scale = shown(SIGNIFICANT_DIGITS_MIN - int(weight), a)
    return _rounded(lambda context: context.exp(a), scale, weight)


def natural_logarithm(a: Decimal) -> Decimal:
    """The logarithm to the base e."""
    if _is_odd(_positive(a)):
        return a
    return _logarithm(a, shown(SIGNIFICANT_DIGITS_MIN - _ln_weight(a), a))


def logarithm(base: Decimal, a: Decimal) -> Decimal:
    """The logarithm to a base."""
    if base.is_nan() or a.is_nan():
        return _NAN
    _positive(base)
    _positive(a)
    if not base.is_finite() or not a.is_finite():
        if base.is_finite():
            return _INFINITY
        return _ZERO if a.is_finite() else _NAN
    wanted = SIGNIFICANT_DIGITS_MIN - (_ln_weight(a) - _ln_weight(base))
    scale = shown(wanted, base, a)
    if base == 1:
        raise DivisionByZero("division by zero")
    digits = context_of(scale + SCALE_SHOWN_MAX // 10)
    return quantize(digits.divide(a.ln(digits), base.ln(digits)), scale)


#: A digit of a power takes as long as so many characters.
_DIGIT_SIZE = 500


def power(a: Decimal, b: Decimal) -> Decimal:
    """The power."""
    if _is_odd(a) or _is_odd(b):
        return _odd_power(a, b)
    whole = _is_whole(b)
    if not a and b < 0:
        raise InvalidPower("zero raised to a negative power is undefined")
    if a < 0 and not whole:
        raise _complex()
    if whole and abs(b) < 1 << 31:
        return _whole_power(a, int(b), scale_of(b))
    if not a:
        return quantize(_ZERO, SIGNIFICANT_DIGITS_MIN)
    estimate = _power_weight(a.copy_abs(), b)
    if abs(estimate) > 3.01 * _WEIGHT_MAX * _LOG10_E:
        if estimate > 0:
            raise _overflows()
        return quantize(_ZERO, SCALE_SHOWN_MAX)
    scale = shown(SIGNIFICANT_DIGITS_MIN - int(estimate), a, b)
    made = _rounded(lambda context: context.power(a.copy_abs(), b), scale, estimate)
    return made.copy_negate() if a < 0 and b % 2 else made


def _power_weight(a: Decimal, b: Decimal) -> float:
    """PostgreSQL's estimate of the weight of a power: of a logarithm to about eight digits."""
    scale = max(8 - _ln_weight(a), 0)
    return float(quantize(_logarithm(a, scale) * b, scale)) * _LOG10_E


def power_size(a: Decimal, b: Decimal) -> float:
    """What a power is to make, as the length of a text that takes as long."""
    if _is_odd(a) or _is_odd(b):
        return 0
    return _DIGIT_SIZE * float(abs(b)) * (abs(a.adjusted()) + 1)


def _whole_power(a: Decimal, exponent: int, exponent_scale: int) -> Decimal:
    weight = 0.0
    if a:
        digits = "".join(map(str, a.as_tuple().digits[:17]))
        weight = exponent * (math.log10(int(digits)) + a.adjusted() - len(digits) + 1)
    if weight > _WEIGHT_MAX:
        raise _overflows()
    if weight + 1 < -SCALE_SHOWN_MAX:
        return quantize(_ZERO, SCALE_SHOWN_MAX)
    wanted = max(SIGNIFICANT_DIGITS_MIN - int(weight), exponent_scale)
    scale = shown(wanted, a)
    if exponent == 0:
        return quantize(_ONE, scale)
    if not a:
        return quantize(_ZERO, scale)
    if exponent == -1:
        return quotient(_ONE, a, scale)
    return _rounded(lambda context: context.power(a, exponent), scale, weight)


def _odd_power(a: Decimal, b: Decimal) -> Decimal:
    """Where one of them is NaN or infinite, as POSIX has it."""
    if a == 1 or b == 0:
        return _ONE
    if a.is_nan() or b.is_nan():
        return _NAN
    if not a and b < 0:
        raise InvalidPower("zero raised to a negative power is undefined")
    if b.is_infinite():
        size = a.copy_abs()
        if size == 1:
            return _ONE
        return _INFINITY if (size > 1) == (b > 0) else _ZERO
    if a < 0 and not _is_whole(b):
        raise _complex()
    if b < 0:
        return _ZERO
    if a > 0:
        return _INFINITY
    return -_INFINITY if b % 2 else _INFINITY


def _rounded(act: Callable[[decimal.Context], Decimal], scale: int, weight: float) -> Decimal:
    context = context_of(scale + max(int(weight), 0))
    try:
        return quantize(act(context), scale)
    except decimal.DecimalException:
        raise _overflows() from None


def _logarithm(a: Decimal, scale: int) -> Decimal:
    return quantize(a.ln(context_of(scale + 10)), scale)


def _ln_weight(a: Decimal) -> int:
    """PostgreSQL's estimate of the weight of the first digit of ln(a)."""
    if Decimal("0.9") <= a <= Decimal("1.1"):
        rest = context_of(max(scale_of(a), 1)).subtract(a, _ONE)
        return rest.adjusted() if rest else 0
    weight, first = leading(a)
    digits, place = first, weight * DIGITS
    rest = a.scaleb(-place, context_of(60))
    second = int((rest % 1).scaleb(DIGITS))
    if rest % 1:
        digits, place = digits * 10_000 + second, place - DIGITS
    estimate = math.log(digits) + place * math.log(10)
    return int(math.log10(abs(estimate)))


def _is_odd(number: Decimal) -> bool:
    return not number.is_finite()


def _is_whole(number: Decimal) -> bool:
    return scale_of(number) == 0 or number.to_integral_value().compare(number) == 0


def _positive(a: Decimal) -> Decimal:
    if not a.is_nan() and a <= 0:
        kind = "zero" if not a else "a negative number"
        raise InvalidLogarithm(f"cannot take logarithm of {kind}")
    return a


def _complex() -> InvalidPower:
    return InvalidPower("a negative number raised to a non-integer power yields a complex result")


def _overflows() -> OutOfRange:
    return OutOfRange("value overflows numeric format")
