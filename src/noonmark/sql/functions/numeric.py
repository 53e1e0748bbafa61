"""Arithmetic of numerics: exact, except division and roots, which have PostgreSQL's digits.

The scales of the results are told in `functions.fit`.
"""

from __future__ import annotations

import decimal
from decimal import Decimal

from noonmark.errors import DivisionByZero, InvalidArgument, InvalidLogarithm, OutOfRange
from noonmark.rows import types as t
from noonmark.sql.functions.fit import WIDE, bounded, quantize
from noonmark.sql.functions.function import Function

SIGNIFICANT_DIGITS_MIN = 16
_DIGITS = 4  # PostgreSQL counts in base 10,000, and its digits of a quotient show it


def _leading(number: Decimal) -> tuple[int, int]:
    """The weight and value of the first digit in base 10,000."""
    if not number:
        return 0, 0
    weight = number.adjusted() // _DIGITS
    return weight, int(abs(number).scaleb(-weight * _DIGITS, WIDE))


def scale_of(number: Decimal) -> int:
    """The digits after the point."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return max(-exponent, 0)


def division_scale(a: Decimal, b: Decimal) -> int:
    """How many digits after the point PostgreSQL gives a / b."""
    (weight_a, first_a), (weight_b, first_b) = _leading(a), _leading(b)
    weight = weight_a - weight_b - (first_a <= first_b)
    return max(SIGNIFICANT_DIGITS_MIN - weight * _DIGITS, scale_of(a), scale_of(b), 0)


def divide(a: Decimal, b: Decimal) -> Decimal:
    """The quotient at PostgreSQL's scale.

    >>> divide(Decimal(1), Decimal(3)), divide(Decimal(200), Decimal(3))
    (Decimal('0.33333333333333333333'), Decimal('66.6666666666666667'))
    """
    if not b:
        raise DivisionByZero("division by zero")
    return quantize(WIDE.divide(a, b), min(division_scale(a, b), 1000))


def _modulo(a: Decimal, b: Decimal) -> Decimal:
    if not b:
        raise DivisionByZero("division by zero")
    return WIDE.remainder(a, b)


def square_root(a: Decimal, scale: int | None = None) -> Decimal:
    """The root at PostgreSQL's scale, or at the one given."""
    if a < 0:
        raise InvalidArgument("cannot take square root of a negative number")
    if scale is None:
        weight = (_leading(a)[0] + 1) * _DIGITS // 2 - 1
        scale = max(SIGNIFICANT_DIGITS_MIN - weight, scale_of(a), 0)
    return quantize(WIDE.sqrt(a), scale)


def _round(a: Decimal, digits: int) -> Decimal:
    digits = max(-100, min(digits, 100))
    return quantize(a, digits) if digits >= 0 else _round_whole(a, -digits)


def _round_whole(a: Decimal, digits: int) -> Decimal:
    unit = Decimal(1).scaleb(digits)
    return WIDE.multiply(quantize(WIDE.divide(a, unit), 0), unit)


def _trunc(a: Decimal, digits: int) -> Decimal:
    unit = Decimal(1).scaleb(-max(-100, min(digits, 100)))
    if unit.adjusted() <= -scale_of(a):
        return a
    return WIDE.multiply(WIDE.divide_int(a, unit), unit)


def _whole(rounding: str) -> type[Decimal]:
    def act(a: Decimal) -> Decimal:
        return a.quantize(Decimal(1), rounding=rounding, context=WIDE)

    return act  # type: ignore[return-value]


def _sign(a: Decimal) -> Decimal:
    return Decimal((a > 0) - (a < 0))


def _power(a: Decimal, b: Decimal) -> Decimal:
    if not a and b < 0:
        raise InvalidArgument("zero raised to a negative power is undefined")
    if a < 0 and b != b.to_integral_value():
        raise InvalidArgument(
            "a negative number raised to a non-integer power yields a complex result"
        )
    if a and abs(b * a.copy_abs().log10(WIDE)) > 200:
        raise OutOfRange("value overflows numeric format")
    try:
        return Decimal(1) if not b else WIDE.power(a, b)
    except decimal.DecimalException:
        raise OutOfRange("value overflows numeric format") from None


def _positive(a: Decimal) -> Decimal:
    if a <= 0:
        kind = "zero" if not a else "a negative number"
        raise InvalidLogarithm(f"cannot take logarithm of {kind}")
    return a


def _exp(a: Decimal) -> Decimal:
    if a > 400:
        raise OutOfRange("value overflows numeric format")
    return WIDE.exp(a) if a > -400 else Decimal(0)


def _digits(sql_type: t.SqlType) -> tuple[int, int] | None:
    """Digits before and after the point; None for plain numeric."""
    assert isinstance(sql_type, t.Numeric)
    if sql_type.precision is None or sql_type.scale is None:
        return None
    return sql_type.precision - sql_type.scale, sql_type.scale


def _sum_type(types: tuple[t.SqlType, ...]) -> t.SqlType:
    a, b = map(_digits, types)
    return t.Numeric() if a is None or b is None else bounded(max(a[0], b[0]) + 1, max(a[1], b[1]))


def _product_type(types: tuple[t.SqlType, ...]) -> t.SqlType:
    a, b = map(_digits, types)
    return t.Numeric() if a is None or b is None else bounded(a[0] + b[0], a[1] + b[1])


def _sum_overflows(types: tuple[t.SqlType, ...]) -> bool:
    a, b = map(_digits, types)
    digits = None if a is None or b is None else max(a[0], b[0]) + 1 + max(a[1], b[1])
    return digits is None or digits > t.NUMERIC_PRECISION_MAX


def _product_overflows(types: tuple[t.SqlType, ...]) -> bool:
    a, b = map(_digits, types)
    digits = None if a is None or b is None else sum(a) + sum(b)
    return digits is None or digits > t.NUMERIC_PRECISION_MAX


def _same_type(types: tuple[t.SqlType, ...]) -> t.SqlType:
    return types[0]


def _whole_type(types: tuple[t.SqlType, ...]) -> t.SqlType:
    digits = _digits(types[0])
    return t.Numeric() if digits is None else bounded(digits[0] + 1, 0)


ONE, TWO, PLAIN = (t.Numeric,), (t.Numeric, t.Numeric), t.Numeric()

TABLE = (
    Function("+", TWO, _sum_type, WIDE.add, fallible=_sum_overflows),
    Function("-", TWO, _sum_type, WIDE.subtract, fallible=_sum_overflows),
    Function("*", TWO, _product_type, WIDE.multiply, fallible=_product_overflows),
    Function("/", TWO, PLAIN, divide, fallible=True),
    Function("%", TWO, _sum_type, _modulo, fallible=True),
    Function("mod", TWO, _sum_type, _modulo, fallible=True),
    Function("-", ONE, _same_type, WIDE.minus),
    Function("abs", ONE, _same_type, abs),
    Function("sign", ONE, t.Numeric(1, 0), _sign),
    Function("round", ONE, _whole_type, lambda a: quantize(a, 0)),
    Function("round", (t.Numeric, t.Integer), PLAIN, _round, fallible=True),
    Function("trunc", ONE, _whole_type, lambda a: _trunc(a, 0)),
    Function("trunc", (t.Numeric, t.Integer), PLAIN, _trunc, fallible=True),
    Function("floor", ONE, _whole_type, _whole(decimal.ROUND_FLOOR)),
    Function("ceil", ONE, _whole_type, _whole(decimal.ROUND_CEILING)),
    Function("ceiling", ONE, _whole_type, _whole(decimal.ROUND_CEILING)),
    Function("sqrt", ONE, PLAIN, square_root, fallible=True),
    Function("power", TWO, PLAIN, _power, fallible=True),
    Function("^", TWO, PLAIN, _power, fallible=True),
    Function("exp", ONE, PLAIN, _exp, fallible=True),
    Function("ln", ONE, PLAIN, lambda a: _positive(a).ln(WIDE), fallible=True),
    Function("log", ONE, PLAIN, lambda a: _positive(a).log10(WIDE), fallible=True),
)
