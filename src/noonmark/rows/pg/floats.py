"""Floats as PostgreSQL writes them (extra_float_digits 1) and reads them.

Law (shortest): the text is the shortest decimal strictly inside the interval of reals that round to
the float, and of those the closest. Python's `repr` also takes a decimal on the very edge of that
interval, which only round-half-even reads back; such a decimal exists only from 2**53 up (2**24 for
real), so only there a second look is needed.
"""

from __future__ import annotations

import math
import re
import struct
from fractions import Fraction

import numpy as np

from noonmark.errors import InvalidValue, NumberTooLarge

_WORDS = {"nan": math.nan, "infinity": math.inf, "inf": math.inf}


def format_double(number: float) -> str:
    """The text of a double precision.

    >>> format_double(1e15), format_double(-0.0), format_double(0.1)
    ('1e+15', '-0', '0.1')
    """
    if 1e-4 <= abs(number) < 1e15:
        return repr(number).removesuffix(".0")
    if abs(number) < 2.0**53:
        return _layout(number, repr(number), 15)
    return _layout(number, _inside(number, repr(number), 17, np.float64), 15)


def format_real(number: float) -> str:
    """The text of a real, given as the Python float that equals it."""
    narrow = np.float32(number)
    text = np.format_float_scientific(narrow, unique=True, trim="0")
    if abs(number) < 2.0**24:
        return _layout(number, text, 6)
    return _layout(number, _inside(number, text, 9, np.float32), 6)


def _layout(number: float, text: str, fixed_digits: int) -> str:
    """Digits laid out as printf's %g does: an exponent below 1e-4 and from `fixed_digits` on."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    if number == 0:
        return sign + "0"
    mantissa, _, power = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading_zeros = len(whole + fraction) - len(digits)
    exponent = int(power or 0) + len(whole) - leading_zeros - 1
    digits = digits.rstrip("0")
    if exponent < -4 or exponent >= fixed_digits:
        point = "." + digits[1:] if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{point}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    padded = digits.ljust(exponent + 1, "0")
    rest = padded[exponent + 1 :]
    return f"{sign}{padded[: exponent + 1]}{'.' + rest if rest else ''}"


def _inside(number: float, text: str, digits_max: int, kind: type[np.floating]) -> str:
    """`text`, or a longer one when it lies on the edge between `number` and a neighbour."""
    if not math.isfinite(number):
        return text
    exact = Fraction(abs(number))
    low, high = ((exact + _neighbour(abs(number), toward, kind)) / 2 for toward in (0.0, math.inf))
    if low < Fraction(text.lstrip("-")) < high:
        return text
    power = len(str(int(exact))) - 1
    for digits in range(1, digits_max + 1):
        unit = Fraction(10) ** (power - digits + 1)
        below = int(exact / unit)
        near = [n for n in (below, below + 1) if low < n * unit < high]
        if near:
            best = min(near, key=lambda n: abs(n * unit - exact))
            return f"{best}e{power - digits + 1}"
    return text


def _neighbour(number: float, toward: float, kind: type[np.floating]) -> Fraction:
    with np.errstate(over="ignore"):
        near = float(np.nextafter(kind(number), kind(toward)))
    if math.isinf(near):
        # The step above the largest float is as wide as the one below it.
        return 2 * Fraction(number) - _neighbour(number, 0.0, kind)
    return Fraction(near)


#: As C writes it: a power of two after the digits.
_HEXADECIMAL = re.compile(r"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?")


def parse_double(text: str) -> float:
    """The double precision that `text` stands for."""
    return _parse(text, "double precision")


def parse_real(text: str) -> float:
    """The real that `text` stands for, as a Python float; rounded once."""
    wide = _parse(text, "real")
    if (
        math.isfinite(wide)
        and struct.unpack("<Q", struct.pack("<d", wide))[0] & 0x1FFFFFFF == 1 << 28
    ):
        # The double lies on the edge between two reals, perhaps only because it was rounded to it.
        word = text.strip()
        exact = Fraction(wide if _HEXADECIMAL.fullmatch(word.lower()) else word)
        if exact != Fraction(wide):
            wide = math.nextafter(wide, math.inf if exact > Fraction(wide) else -math.inf)
    with np.errstate(over="ignore", under="ignore"):
        narrow = float(np.float32(wide))
    if (math.isinf(narrow) and not math.isinf(wide)) or (narrow == 0 and wide != 0):
        raise NumberTooLarge(f'"{text}" is out of range for type real')
    return narrow


def _parse(text: str, type_name: str) -> float:
    word = text.strip().lower()
    sign = -1.0 if word.startswith("-") else 1.0
    named = _WORDS.get(word.lstrip("+-") if word[:1] in "+-" else word)
    if named is not None:
        return math.nan if math.isnan(named) else sign * named
    try:
        if "_" in word or not word.isascii():
            raise ValueError
        number = float.fromhex(word) if _HEXADECIMAL.fullmatch(word) else float(word)
    except OverflowError:
        number = math.inf
    except ValueError:
        raise InvalidValue(f'invalid input syntax for type {type_name}: "{text}"') from None
    if math.isinf(number) or (number == 0 and _has_value(word)):
        raise NumberTooLarge(f'"{text}" is out of range for type {type_name}')
    return number


def _has_value(word: str) -> bool:
    """Whether the digits before an exponent have one that is not zero."""
    if _HEXADECIMAL.fullmatch(word):
        return any(digit in "123456789abcdef" for digit in word.partition("p")[0])
    return any(digit in "123456789" for digit in word.partition("e")[0])
