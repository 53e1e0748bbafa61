"""Arithmetic of numerics: exact, except division and roots, which have PostgreSQL's digits.

The scales of the results are told in `functions.fit`.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from functools import partial

from noonmark.errors import DivisionByZero, OutOfRange
from noonmark.rows import types as t
from noonmark.rows.numeral import EXACT_CONTEXT, scale_of
from noonmark.rows.types import NUMERIC_SCALE_MAX, NUMERIC_WHOLE_MAX
from noonmark.sql.functions.errors import InvalidPower
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.number.fit import WIDE, bounded, plain, quantize
from noonmark.sql.functions.number.scale import (
    DIGITS,
    SIGNIFICANT_DIGITS_MIN,
    context_of,
    division_scale,
    leading,
    quotient,
    shown,
)
from noonmark.sql.functions.number.transcendental import (
    exponential,
    logarithm,
    natural_logarithm,
    power,
    power_size,
)

_NAN, _TEN = Decimal("NaN"), Decimal(10)


def divide(a: Decimal, b: Decimal) -> Decimal:
    """The quotient at PostgreSQL's scale.

    >>> divide(Decimal(1), Decimal(3)), divide(Decimal(200), Decimal(3))
    (Decimal('0.33333333333333333333'), Decimal('66.6666666666666667'))
    """
    if a.is_nan() or b.is_nan():
        return _NAN
    if not b:
        raise DivisionByZero("division by zero")
    if a.is_infinite() or b.is_infinite():
        return Decimal(0) if a.is_finite() else WIDE.divide(a, b)
    return quotient(a, b, division_scale(a, b))


def modulo(a: Decimal, b: Decimal) -> Decimal:
    """The remainder, with the sign of a."""
    if a.is_nan() or b.is_nan():
        return _NAN
    if not b:
        raise DivisionByZero("division by zero")
    made = WIDE.remainder(a, b)
    return made if made else made.copy_abs()


def square_root(a: Decimal, scale: int | None = None) -> Decimal:
    """The root at PostgreSQL's scale, or at the one given."""
    if not a.is_nan() and a < 0:
        raise InvalidPower("cannot take square root of a negative number")
    if not a.is_finite():
        return a
    if scale is None:
        weight = (leading(a)[0] + 1) * DIGITS // 2 - 1
        scale = shown(SIGNIFICANT_DIGITS_MIN - weight, a)
    return quantize(context_of(scale + max(a.adjusted(), 0)).sqrt(a), scale)


def _round(a: Decimal, digits: int) -> Decimal:
    if not a.is_finite():
        return a
    digits = max(-NUMERIC_WHOLE_MAX, min(digits, NUMERIC_SCALE_MAX))
    return quantize(a, digits) if digits >= 0 else _at_unit(a, -digits, decimal.ROUND_HALF_UP)


def _trunc(a: Decimal, digits: int) -> Decimal:
    if not a.is_finite():
        return a
    digits = max(-NUMERIC_WHOLE_MAX, min(digits, NUMERIC_SCALE_MAX))
    if digits < 0:
        return _at_unit(a, -digits, decimal.ROUND_DOWN)
    made = a.quantize(Decimal(1).scaleb(-digits), rounding=decimal.ROUND_DOWN, context=WIDE)
    return made if made else made.copy_abs()


def _at_unit(a: Decimal, zeros: int, rounding: str) -> Decimal:
    """A whole number that ends with so many zeros."""
    made = a.quantize(Decimal((0, (1,), zeros)), rounding=rounding, context=WIDE)
    return made.quantize(Decimal(1), context=WIDE) if made else Decimal(0)


def _whole(rounding: str) -> Callable[[Decimal], Decimal]:
    def act(a: Decimal) -> Decimal:
        if not a.is_finite():
            return a
        made = a.quantize(Decimal(1), rounding=rounding, context=WIDE)
        return made if made else made.copy_abs()

    return act


def _sign(a: Decimal) -> Decimal:
    return a if a.is_nan() else Decimal((a > 0) - (a < 0))


def _sign_type(types: tuple[t.SqlType, ...]) -> t.SqlType:
    return t.Numeric() if _digits(types[0]) is None else t.Numeric(1, 0)


def _whole_quotient(a: Decimal, b: Decimal) -> Decimal:
    if a.is_nan() or b.is_nan():
        return _NAN
    if not b:
        raise DivisionByZero("division by zero")
    made = WIDE.divide_int(a, b)
    return made if made else Decimal(0)


def _scale(a: Decimal) -> int | None:
    return scale_of(a) if a.is_finite() else None


def _least_scale(a: Decimal) -> int | None:
    return scale_of(plain(a)) if a.is_finite() else None


def _digits(sql_type: t.SqlType) -> tuple[int, int] | None:
    """Digits before and after the point; None for plain numeric."""
    assert isinstance(sql_type, t.Numeric)
    if sql_type.precision is None or sql_type.scale is None or sql_type.trimmed:
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
    return t.Numeric() if _digits(types[0]) is None else types[0]


def _whole_type(types: tuple[t.SqlType, ...]) -> t.SqlType:
    digits = _digits(types[0])
    return t.Numeric() if digits is None else bounded(digits[0] + 1, 0)


def _counted(a: Decimal, b: Decimal) -> tuple[int, int, int] | None:
    """Both as whole numbers of the last digit that either shows, and its scale."""
    if not a.is_finite() or not b.is_finite():
        return None
    scale = max(scale_of(a), scale_of(b))
    whole = [int(EXACT_CONTEXT.scaleb(each.copy_abs(), scale)) for each in (a, b)]
    return whole[0], whole[1], scale


def _number(count: int, scale: int) -> Decimal:
    return EXACT_CONTEXT.scaleb(Decimal(count), -scale)


def _divisor(a: Decimal, b: Decimal) -> Decimal:
    counted = _counted(a, b)
    if counted is None:
        return Decimal("NaN")
    return _number(math.gcd(*counted[:2]), counted[2])


def _multiple(a: Decimal, b: Decimal) -> Decimal:
    counted = _counted(a, b)
    if counted is None:
        return Decimal("NaN")
    return _number(math.lcm(*counted[:2]), counted[2])


#: Of what number the factorial still is a numeric.
_FACTORIAL_MAX = 32_177


def _factorial(number: int) -> Decimal:
    if number < 0:
        raise OutOfRange("factorial of a negative number is undefined")
    if number > _FACTORIAL_MAX:
        raise OutOfRange("value overflows numeric format")
    return Decimal(math.factorial(number))


ONE, TWO, PLAIN = (t.Numeric,), (t.Numeric, t.Numeric), t.Numeric()

TABLE = (
    Function("+", TWO, _sum_type, WIDE.add, fallible=_sum_overflows),
    Function("-", TWO, _sum_type, WIDE.subtract, fallible=_sum_overflows),
    Function("*", TWO, _product_type, WIDE.multiply, fallible=_product_overflows),
    Function("/", TWO, PLAIN, divide, fallible=True),
    Function("%", TWO, _sum_type, modulo, fallible=True),
    Function("mod", TWO, _sum_type, modulo, fallible=True),
    Function("-", ONE, _same_type, WIDE.minus),
    Function("+", ONE, _same_type, lambda a: a),
    Function("abs", ONE, _same_type, lambda a: a.copy_abs()),
    Function("@", ONE, _same_type, lambda a: a.copy_abs()),
    Function("sign", ONE, _sign_type, _sign),
    Function("round", ONE, _whole_type, lambda a: quantize(a, 0)),
    Function("round", (t.Numeric, t.Integer), PLAIN, _round, fallible=True),
    Function("trunc", ONE, _whole_type, lambda a: _trunc(a, 0)),
    Function("trunc", (t.Numeric, t.Integer), PLAIN, _trunc, fallible=True),
    Function("floor", ONE, _whole_type, _whole(decimal.ROUND_FLOOR)),
    Function("ceil", ONE, _whole_type, _whole(decimal.ROUND_CEILING)),
    Function("ceiling", ONE, _whole_type, _whole(decimal.ROUND_CEILING)),
    Function("div", TWO, PLAIN, _whole_quotient, fallible=True),
    Function("scale", ONE, t.Integer(), _scale, gives_null=True),
    Function("min_scale", ONE, t.Integer(), _least_scale, gives_null=True),
    Function("trim_scale", ONE, PLAIN, lambda a: a if _scale(a) is None else plain(a)),
    Function("sqrt", ONE, PLAIN, square_root, fallible=True),
    Function("power", TWO, PLAIN, power, fallible=True, size=power_size),
    Function("^", TWO, PLAIN, power, fallible=True, size=power_size),
    Function("exp", ONE, PLAIN, exponential, fallible=True, size=partial(power_size, _TEN)),
    Function("ln", ONE, PLAIN, natural_logarithm, fallible=True),
    Function("log", ONE, PLAIN, lambda a: logarithm(_TEN, a), fallible=True),
    Function("log", TWO, PLAIN, logarithm, fallible=True),
    Function("log10", ONE, PLAIN, lambda a: logarithm(_TEN, a), fallible=True),
    Function("pow", TWO, PLAIN, power, fallible=True, size=power_size),
    Function("gcd", TWO, PLAIN, _divisor),
    Function("lcm", TWO, PLAIN, _multiple, fallible=True),
    Function("factorial", (t.BigInt,), PLAIN, _factorial, fallible=True, size=lambda n: 100 * n),
)
