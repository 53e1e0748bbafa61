"""Arithmetic of integers and floats.

Integers never wrap: a result outside the type is `OutOfRange`. Division and remainder truncate
towards zero. Floats follow IEEE 754, except that a finite computation that overflows, or
underflows to zero, is `OutOfRange`, and division by zero is an error, as in PostgreSQL.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

from noonmark.errors import (
    DivisionByZero,
    InvalidLogarithm,
    OutOfRange,
    Unsupported,
)
from noonmark.rows import types as t
from noonmark.rows.order import is_ordered, sort_key
from noonmark.sql.functions.errors import InvalidBuckets, InvalidPower, NullRefused
from noonmark.sql.functions.function import Any_, Function

INTEGERS: tuple[type[t.SqlType], ...] = (t.SmallInt, t.Integer, t.BigInt)
FLOATS: tuple[type[t.SqlType], ...] = (t.Real, t.Double)


def int_div(a: int, b: int) -> int:
    """The quotient, truncated towards zero."""
    if b == 0:
        raise DivisionByZero("division by zero")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def int_mod(a: int, b: int) -> int:
    """The remainder of `int_div`: with the sign of a."""
    return a - b * int_div(a, b)


def checked(compute: Callable[..., float], *operands: float, underflow: bool = False) -> float:
    """The result of a float computation; overflow and underflow of finite operands are errors."""
    try:
        result = compute(*operands)
    except OverflowError:
        raise OutOfRange("value out of range: overflow") from None
    if math.isinf(result) and not any(map(math.isinf, operands)):
        raise OutOfRange("value out of range: overflow")
    if underflow and result == 0 and all(operands) and not any(map(math.isinf, operands)):
        raise OutOfRange("value out of range: underflow")
    return result


def _float_add(a: float, b: float) -> float:
    return checked(operator.add, a, b)


def _float_sub(a: float, b: float) -> float:
    return checked(operator.sub, a, b)


def _float_mul(a: float, b: float) -> float:
    return checked(operator.mul, a, b, underflow=True)


def _float_div(a: float, b: float) -> float:
    if b == 0 and a == a:  # noqa: PLR0124 - NaN / 0 is NaN
        raise DivisionByZero("division by zero")
    return a if a != a else checked(operator.truediv, a, b, underflow=True)  # noqa: PLR0124


def float_power(a: float, b: float) -> float:
    """A to the power of b."""
    if a == 0 and b < 0:
        raise InvalidPower("zero raised to a negative power is undefined")
    if a < 0 and math.isfinite(b) and b != math.floor(b):
        raise InvalidPower(
            "a negative number raised to a non-integer power yields a complex result"
        )
    return checked(math.pow, a, b, underflow=True)


def _sqrt(a: float) -> float:
    if a < 0:
        raise InvalidPower("cannot take square root of a negative number")
    return math.sqrt(a)


def _cbrt(a: float) -> float:
    return math.cbrt(a)


def _logarithm(base: Callable[[float], float]) -> Callable[[float], float]:
    def log(a: float) -> float:
        if a == 0:
            raise InvalidLogarithm("cannot take logarithm of zero")
        if a < 0:
            raise InvalidLogarithm("cannot take logarithm of a negative number")
        return base(a)

    return log


def _exp(a: float) -> float:
    return 0.0 if a == -math.inf else checked(math.exp, a, underflow=True)


def _rounding(way: Callable[[float], float]) -> Callable[[float], float]:
    """Integers as floats; NaN and the infinities stay."""

    def act(a: float) -> float:
        return a if math.isnan(a) or math.isinf(a) else math.copysign(float(way(a)), a)

    return act


def _degrees(radians: float) -> float:
    return radians / math.radians(1)  # as PostgreSQL rounds it


def _radians(degrees: float) -> float:
    return _float_mul(degrees, math.radians(1))


def _float_sign(a: float) -> float:
    return float((a > 0) - (a < 0))  # of NaN, it is 0


def _trigonometric(compute: Callable[[float], float]) -> Callable[[float], float]:
    def act(a: float) -> float:
        try:
            return compute(a)
        except ValueError:
            raise OutOfRange("input is out of range") from None

    return act


def _greatest(types: tuple[t.SqlType, ...], sign: int, *values: Any) -> Any:
    key = sort_key(types[0])
    present = [value for value in values if value is not None]
    return (max if sign > 0 else min)(present, key=key) if present else None


class Extreme:
    """GREATEST and LEAST: NULL arguments are passed over."""

    def __init__(self, sign: int) -> None:
        self.sign = sign

    def __call__(self, types: tuple[t.SqlType, ...], *values: Any) -> Any:
        """The extreme of the values."""
        return _greatest(types, self.sign, *values)


def _shift_left(a: int, b: int, bits: int) -> int:
    return _wrapped(a << (b % bits), bits)


def _wrapped(number: int, bits: int) -> int:
    """The last bits of a number, as a number with a sign."""
    value = number & ((1 << bits) - 1)
    return value - (1 << bits) if value >> (bits - 1) else value


def _grown(compute: Callable[[float], float], value: float) -> float:
    """What grows beyond all numbers is infinite, as PostgreSQL has it for these."""
    try:
        return compute(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _width_bucket(value: float, low: float, high: float, count: int) -> int:
    """Which of `count` equal parts of a range a value is in: 0 before them, count + 1 behind."""
    if count <= 0:
        raise InvalidBuckets("count must be greater than zero")
    if math.isnan(value) or math.isnan(low) or math.isnan(high):
        raise InvalidBuckets("operand, lower bound, and upper bound cannot be NaN")
    if math.isinf(low) or math.isinf(high):
        raise InvalidBuckets("lower and upper bounds must be finite")
    if low == high:
        raise InvalidBuckets("lower bound cannot equal upper bound")
    if low > high:
        value, low, high = -value, -low, -high
    if value < low:
        return 0
    if value >= high:
        return count + 1
    if math.isinf(high - low):
        value, low, high = value / 2, low / 2, high / 2
    return min(int(count * ((value - low) / (high - low))), count - 1) + 1


def _exact_bucket(value: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    """The same of numerics, without a rounding."""
    value, low, high = map(Decimal, (value, low, high))  # numbers alone, whatever their scales
    if (
        count <= 0
        or any(map(Decimal.is_nan, (value, low, high)))
        or not (low.is_finite() and high.is_finite() and low != high)
    ):
        return _width_bucket(float(value), float(low), float(high), count)  # it says why
    below, beyond = (value > low, value <= high) if low > high else (value < low, value >= high)
    if below or beyond:
        return 0 if below else count + 1
    first, last = Fraction(low), Fraction(high)
    return int((Fraction(value) - first) * count / (last - first)) + 1


def _array_bucket(types: tuple[t.SqlType, ...], value: Any, bounds: tuple[Any, ...]) -> int:
    """How many of the ordered bounds are at or below the value."""
    if not is_ordered(types[0]):
        raise Unsupported(f"type {types[0]} has no order here")
    if None in bounds:
        raise NullRefused("thresholds array must not contain NULLs")
    key = sort_key(types[0])
    return bisect_right([key(each) for each in bounds], key(value))


def _same_type(types: tuple[t.SqlType, ...]) -> t.SqlType:
    return types[0]


def _integers() -> list[Function]:
    rows = []
    for kind in INTEGERS:
        two, one = (kind, kind), (kind,)
        rows += [
            Function("+", two, kind(), operator.add, fallible=True),
            Function("-", two, kind(), operator.sub, fallible=True),
            Function("*", two, kind(), operator.mul, fallible=True),
            Function("/", two, kind(), int_div, fallible=True),
            Function("%", two, kind(), int_mod, fallible=True),
            Function("mod", two, kind(), int_mod, fallible=True),
            Function("-", one, kind(), operator.neg, fallible=True),
            Function("+", one, kind(), lambda a: a),
            Function("abs", one, kind(), abs, fallible=True),
            Function("@", one, kind(), abs, fallible=True),
            Function("&", two, kind(), operator.and_),
            Function("|", two, kind(), operator.or_),
            Function("#", two, kind(), operator.xor),
            Function("~", one, kind(), operator.invert),
        ]
    short = (t.SmallInt, t.Integer)
    rows += [
        Function("<<", short, t.SmallInt(), lambda a, b: _wrapped(a << (b % 32), 16)),
        Function(">>", short, t.SmallInt(), lambda a, b: a >> (b % 32)),
    ]
    for kind, bits in ((t.Integer, 32), (t.BigInt, 64)):
        rows += [
            Function("<<", (kind, t.Integer), kind(), lambda a, b, n=bits: _shift_left(a, b, n)),
            Function(">>", (kind, t.Integer), kind(), lambda a, b, n=bits: a >> (b % n)),
            Function("gcd", (kind, kind), kind(), math.gcd, fallible=True),
            Function("lcm", (kind, kind), kind(), math.lcm, fallible=True),
        ]
    return rows


def _floats() -> list[Function]:
    rows = []
    for kind, other in product(FLOATS, FLOATS):
        two = (kind, other)
        wide = kind() if kind is other else t.Double()
        rows += [
            Function("+", two, wide, _float_add, fallible=True),
            Function("-", two, wide, _float_sub, fallible=True),
            Function("*", two, wide, _float_mul, fallible=True),
            Function("/", two, wide, _float_div, fallible=True),
        ]
    for kind in FLOATS:
        rows += [
            Function("-", (kind,), kind(), operator.neg),
            Function("+", (kind,), kind(), lambda a: a),
            Function("abs", (kind,), kind(), abs),
            Function("@", (kind,), kind(), abs),
        ]
    one, two = (t.Double,), (t.Double, t.Double)
    for name, compute in (
        ("sqrt", _sqrt),
        ("exp", _exp),
        ("ln", _logarithm(math.log)),
        ("log", _logarithm(math.log10)),
        ("log10", _logarithm(math.log10)),
        *((n, _trigonometric(getattr(math, n))) for n in ("sin", "cos", "tan", "asin", "acos")),
    ):
        rows.append(Function(name, one, t.Double(), compute, fallible=True))
    rows += [
        Function("power", two, t.Double(), float_power, fallible=True),
        Function("pow", two, t.Double(), float_power, fallible=True),
        Function("^", two, t.Double(), float_power, fallible=True),
        Function("cbrt", one, t.Double(), _cbrt),
        Function("sinh", one, t.Double(), lambda a: _grown(math.sinh, a)),
        Function("cosh", one, t.Double(), lambda a: abs(_grown(math.cosh, a))),
        Function("tanh", one, t.Double(), math.tanh),
        Function("asinh", one, t.Double(), math.asinh),
        Function("atan", one, t.Double(), math.atan),
        Function("atan2", two, t.Double(), math.atan2),
        Function("degrees", one, t.Double(), lambda a: checked(_degrees, a), fallible=True),
        Function("radians", one, t.Double(), _radians, fallible=True),
        Function("pi", (), t.Double(), lambda: math.pi),
        Function("round", one, t.Double(), _rounding(round)),
        Function("trunc", one, t.Double(), _rounding(math.trunc)),
        Function("floor", one, t.Double(), _rounding(math.floor)),
        Function("ceil", one, t.Double(), _rounding(math.ceil)),
        Function("ceiling", one, t.Double(), _rounding(math.ceil)),
        Function("sign", one, t.Double(), _float_sign),
    ]
    return rows


def _buckets() -> list[Function]:
    rows: tuple[tuple[tuple[Any, ...], Any], ...] = (
        ((t.Double, t.Double, t.Double, t.Integer), _width_bucket),
        ((t.Numeric, t.Numeric, t.Numeric, t.Integer), _exact_bucket),
        ((Any_.ELEMENT, Any_.ARRAY), _array_bucket),
    )
    return [
        Function(
            "width_bucket",
            parameters,
            t.Integer(),
            meaning,
            typed=meaning is _array_bucket,
            fallible=True,
        )
        for parameters, meaning in rows
    ]


def _any() -> list[Function]:
    some = (Any_.ELEMENT,)
    counts = (
        ("num_nulls", lambda *values: sum(each is None for each in values)),
        ("num_nonnulls", lambda *values: sum(each is not None for each in values)),
    )
    rows = [
        Function(name, (Any_.ANY,), t.Integer(), act, strict=False, variadic=True)
        for name, act in counts
    ]
    for name, sign in (("greatest", 1), ("least", -1)):
        extreme = Extreme(sign)
        rows.append(
            Function(
                name,
                some,
                _same_type,
                extreme,
                strict=False,
                gives_null=True,
                variadic=True,
                typed=True,
            )
        )
    return rows


TABLE = (*_integers(), *_floats(), *_buckets(), *_any())
