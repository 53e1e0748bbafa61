"""Numbers of geometry: arithmetic that tells when it leaves the floats; comparisons within a bit.

Two numbers are equal here when they differ by at most `EPSILON`, and one is less than another when
it is so by more: as in PostgreSQL.
"""

from __future__ import annotations

import math

from noonmark.errors import DivisionByZero, OutOfRange
from noonmark.rows.coded.geometry import EPSILON, is_above


def _fits(result: float, *operands: float) -> float:
    if math.isinf(result) and not any(map(math.isinf, operands)):
        raise OutOfRange("value out of range: overflow")
    return result


def add(a: float, b: float) -> float:
    """The sum."""
    return _fits(a + b, a, b)


def sub(a: float, b: float) -> float:
    """The difference."""
    return _fits(a - b, a, b)


def mul(a: float, b: float) -> float:
    """The product."""
    result = _fits(a * b, a, b)
    if result == 0 and a != 0 and b != 0:
        raise OutOfRange("value out of range: underflow")
    return result


def div(a: float, b: float) -> float:
    """The quotient."""
    if b == 0:
        if math.isnan(a):
            return a
        raise DivisionByZero("division by zero")
    result = a / b
    if math.isinf(result) and not math.isinf(a):
        raise OutOfRange("value out of range: overflow")
    if result == 0 and a != 0 and not math.isinf(b):
        raise OutOfRange("value out of range: underflow")
    return result


def hypot(x: float, y: float) -> float:
    """The length of (x, y), with PostgreSQL's rounding."""
    if math.isinf(x) or math.isinf(y):
        return math.inf
    if math.isnan(x) or math.isnan(y):
        return math.nan
    long, short = max(abs(x), abs(y)), min(abs(x), abs(y))
    if short == 0:
        return long
    part = short / long
    result = long * math.sqrt(1.0 + part * part)
    if math.isinf(result):
        raise OutOfRange("value out of range: overflow")
    if result == 0:
        raise OutOfRange("value out of range: underflow")
    return result


def is_zero(a: float) -> bool:
    """Whether it is 0 within a bit."""
    return abs(a) <= EPSILON


def eq(a: float, b: float) -> bool:
    """Whether they are equal within a bit."""
    return a == b or abs(a - b) <= EPSILON


def ne(a: float, b: float) -> bool:
    """Whether they differ by more than a bit: NaN differs from nothing."""
    return a != b and abs(a - b) > EPSILON


def lt(a: float, b: float) -> bool:
    """Whether a is less by more than a bit."""
    return a + EPSILON < b


def le(a: float, b: float) -> bool:
    """Whether a is not greater by more than a bit."""
    return a <= b + EPSILON


def gt(a: float, b: float) -> bool:
    """Whether a is greater by more than a bit."""
    return a > b + EPSILON


def ge(a: float, b: float) -> bool:
    """Whether a is not less by more than a bit."""
    return a + EPSILON >= b


def less(a: float, b: float) -> bool:
    """Whether a number is less than another one exactly: NaN is above all."""
    return is_above(b, a)


def same(a: float, b: float) -> bool:
    """Whether numbers are equal exactly: NaN equals itself."""
    return a == b or (math.isnan(a) and math.isnan(b))


def least(a: float, b: float) -> float:
    """The lesser, NaN above all."""
    return a if less(a, b) else b


def greatest(a: float, b: float) -> float:
    """The greater, NaN above all."""
    return a if is_above(a, b) else b
