"""Functions of angles in degrees, and what trigonometry has besides: exact where people know it.

sind(30) is 0.5 and tand(45) is 1: as PostgreSQL does it, each is divided by what the machine's own
function gives there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from noonmark.errors import OutOfRange
from noonmark.rows import types as t
from noonmark.sql.functions.function import Function

_DEGREE = math.radians(1)
_SIN_30 = math.sin(30 * _DEGREE)
_ONE_MINUS_COS_60 = 1 - math.cos(60 * _DEGREE)
_ASIN_HALF, _ACOS_HALF, _ATAN_ONE = math.asin(0.5), math.acos(0.5), math.atan(1)


def _small_sine(degrees: float) -> float:
    return math.sin(degrees * _DEGREE) / _SIN_30 / 2


def _large_cosine(degrees: float) -> float:
    return 1 - ((1 - math.cos(degrees * _DEGREE)) / _ONE_MINUS_COS_60) / 2


def _first_sine(degrees: float) -> float:
    """Of 0 to 90."""
    return _small_sine(degrees) if degrees <= 30 else _large_cosine(90 - degrees)


def _first_cosine(degrees: float) -> float:
    return _large_cosine(degrees) if degrees <= 60 else _small_sine(90 - degrees)


def _first_arcsine(value: float) -> float:
    """Of 0 to 1."""
    if value <= 0.5:
        return math.asin(value) / _ASIN_HALF * 30
    return 90 - math.acos(value) / _ACOS_HALF * 60


def _first_arccosine(value: float) -> float:
    if value <= 0.5:
        return 90 - math.asin(value) / _ASIN_HALF * 30
    return math.acos(value) / _ACOS_HALF * 60


_TAN_45 = _first_sine(45) / _first_cosine(45)
_COT_45 = _first_cosine(45) / _first_sine(45)


def _in_first(degrees: float) -> tuple[float, bool, bool, bool]:
    """The angle of 0 to 90 that it is like, and whether it was below 0, above 180, above 90."""
    if math.isinf(degrees):
        raise OutOfRange("input is out of range")
    angle = math.fmod(degrees, 360)
    below = angle < 0
    angle = -angle if below else angle  # -0 stays -0: its sine is -0
    above = angle > 180
    angle = 360 - angle if above else angle
    wide = angle > 90
    return (180 - angle if wide else angle), below, above, wide


def _sine(degrees: float) -> float:
    angle, below, above, _ = _in_first(degrees)
    return _first_sine(angle) * (-1 if below != above else 1)


def _cosine(degrees: float) -> float:
    angle, _, _, wide = _in_first(degrees)
    return _first_cosine(angle) * (-1 if wide else 1)


def _quotient(up: float, down: float, at_45: float, sign: int) -> float:
    return sign * (up / down / at_45) + 0.0 if down else sign * math.inf


def _tangent(degrees: float) -> float:
    angle, below, above, wide = _in_first(degrees)
    sign = -1 if below ^ above ^ wide else 1
    return _quotient(_first_sine(angle), _first_cosine(angle), _TAN_45, sign)


def _cotangent(degrees: float) -> float:
    angle, below, above, wide = _in_first(degrees)
    sign = -1 if below ^ above ^ wide else 1
    return _quotient(_first_cosine(angle), _first_sine(angle), _COT_45, sign)


def _within_one(value: float) -> float:
    if value < -1 or value > 1:
        raise OutOfRange("input is out of range")
    return value


def _arcsine(value: float) -> float:
    return math.copysign(_first_arcsine(abs(_within_one(value))), value)


def _arccosine(value: float) -> float:
    _within_one(value)
    return _first_arccosine(value) if value >= 0 else 90 + _first_arcsine(-value)


def _arctangent(value: float) -> float:
    return math.atan(value) / _ATAN_ONE * 45


def _arctangent_of(y: float, x: float) -> float:
    return math.atan2(y, x) / _ATAN_ONE * 45


def _radian_cotangent(angle: float) -> float:
    if math.isinf(angle):
        raise OutOfRange("input is out of range")
    tangent = math.tan(angle)
    return 1 / tangent if tangent else math.copysign(math.inf, tangent)


def _hyperbolic_arccosine(value: float) -> float:
    if value < 1:
        raise OutOfRange("input is out of range")
    return math.acosh(value)


def _hyperbolic_arctangent(value: float) -> float:
    _within_one(value)
    return math.copysign(math.inf, value) if abs(value) == 1 else math.atanh(value)


def _not_a_number(compute: Callable[..., float]) -> Callable[..., float]:
    return lambda *angles: math.nan if any(map(math.isnan, angles)) else compute(*angles)


_FUNCTIONS: tuple[tuple[str, Callable[..., float], int], ...] = (
    ("sind", _sine, 1),
    ("cosd", _cosine, 1),
    ("tand", _tangent, 1),
    ("cotd", _cotangent, 1),
    ("asind", _arcsine, 1),
    ("acosd", _arccosine, 1),
    ("atand", _arctangent, 1),
    ("atan2d", _arctangent_of, 2),
    ("cot", _radian_cotangent, 1),
    ("acosh", _hyperbolic_arccosine, 1),
    ("atanh", _hyperbolic_arctangent, 1),
    ("erf", math.erf, 1),
    ("erfc", math.erfc, 1),
)

TABLE = tuple(
    Function(name, (t.Double,) * count, t.Double(), _not_a_number(act), fallible=True)
    for name, act, count in _FUNCTIONS
)
