"""Plain numeric: numbers of any size that keep their scale, in Python and as bytes.

A *numeral* is NaN, an infinity, or a number with a scale, how many digits after the point are
shown: 10.0 and 10.00 are equal in SQL and are two numerals. Its range is PostgreSQL's.

    head (3 bytes)   digits and end (n bytes)   scale (2 bytes)

The head tells class, sign and the place e of the first digit that is not 0 (the number is
d.ddd * 10^e): ``0x800000 +- (0x400000 + e)``, 0x800000 alone for zero, beyond all of these for the
infinities and NaN. The digits follow, half a byte each, without trailing zeros: digit d is d + 1,
and one or two zeros are the end. Of a negative number digit d is 14 - d, and the end is 15. Zero,
NaN and the infinities have no digits and no end. So the bytes in hexadecimal are the digits, letter
by letter: Spark, too, can read and write them.

Law (round trip): ``decode(encode(n)) == n`` for every numeral n, the scale included.
Law (order): bytes compare as PostgreSQL compares the numbers, NaN above all; those of equal numbers
compare by scale. So statistics, sorting and merging need not know what the bytes mean.
Law (key): ``key_form(encode(a)) == key_form(encode(b))`` iff a = b in SQL. It is all but the scale.

Pure.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Any

from noonmark.errors import InvalidValue, NumberTooLarge
from noonmark.rows.types import NUMERIC_SCALE_MAX, NUMERIC_WHOLE_MAX

#: Exact on every number that plain numeric has; what has no value is NaN.
EXACT_CONTEXT = decimal.Context(
    prec=400_000,
    rounding=decimal.ROUND_HALF_UP,
    Emin=-decimal.MAX_EMAX,
    Emax=decimal.MAX_EMAX,
    traps=[],
)
SCALE_BYTES = 2
#: A hint where a numeric(p,s) has no room.
NO_PRECISION = "Use numeric without a precision."
_MIDDLE, _SIDE = 0x800000, 0x400000
_NAN, _UP, _DOWN = (at.to_bytes(3, "big") + b"\0\0" for at in (0xF10000, 0xF00000, 0x100000))
_UP_DIGITS = str.maketrans("0123456789", "123456789a")
_DOWN_DIGITS = str.maketrans("0123456789", "edcba98765")
_FROM_UP = str.maketrans("123456789a", "0123456789")
_FROM_DOWN = str.maketrans("edcba98765", "0123456789")


class Numeral(Decimal):
    """A value of plain numeric: equal to a Decimal only at the same scale, and NaN to NaN.

    Equality is identity of what is stored, so that rows may be keys of dicts. With integers it
    compares as a number. Arithmetic gives Decimals; `numeral` makes them numerals again.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Decimal):
            return not self.compare_total(other)
        return Decimal.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return 0 if self.is_nan() else Decimal.__hash__(self)

    def __reduce__(self) -> Any:
        return (Numeral, (str(self),))


def numeral(number: Decimal | int) -> Numeral:
    """The numeral of a number, with the scale that it has.

    Raises:
        NumberTooLarge: it is beyond what plain numeric holds.
    """
    if type(number) is Numeral:
        return number
    value = Numeral(number)
    if not value.is_finite():
        return Numeral("NaN") if value.is_nan() else value
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    if not value:
        value = Numeral((0, (0,), min(exponent, 0)))  # there is no negative zero
    elif value.adjusted() >= NUMERIC_WHOLE_MAX:
        raise NumberTooLarge("value overflows numeric format")
    elif exponent > 0:
        return Numeral(number.quantize(Decimal(1), context=EXACT_CONTEXT))  # type: ignore[union-attr]
    if -exponent > NUMERIC_SCALE_MAX:
        raise NumberTooLarge("value overflows numeric format")
    return value


def equal_range(number: Decimal) -> tuple[Numeral, Numeral]:
    """The first and the last in order of the numerals that are equal to a number."""
    if not number.is_finite():
        return numeral(number), numeral(number)
    text = format(number, "f")
    low = numeral(Decimal(text.rstrip("0").rstrip(".") if "." in text else text))
    last = Decimal((0, (1,), -NUMERIC_SCALE_MAX))
    return low, numeral(number.quantize(last, context=EXACT_CONTEXT))


def scale_of(number: Decimal) -> int:
    """How many digits after the point a number has; none that is not finite."""
    exponent = number.as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0


def encode(number: Decimal) -> bytes:
    """The bytes of a numeral."""
    if not number.is_finite():
        return _NAN if number.is_nan() else _DOWN if number < 0 else _UP
    scale = scale_of(number).to_bytes(SCALE_BYTES, "big")
    if not number:
        return _MIDDLE.to_bytes(3, "big") + scale
    place = number.adjusted()
    sign, digits, _ = number.as_tuple()
    text = bytes(digits).translate(_ASCII).rstrip(b"0").decode()
    head = _MIDDLE - _SIDE - place if sign else _MIDDLE + _SIDE + place
    end = ("f" if sign else "0") * (2 - len(text) % 2)
    made = text.translate(_DOWN_DIGITS if sign else _UP_DIGITS)
    return head.to_bytes(3, "big") + bytes.fromhex(made + end) + scale


_ASCII = bytes(at + 48 if at < 10 else 0 for at in range(256))


def decode(raw: bytes) -> Numeral:
    """The numeral of its bytes; `InvalidValue` when they are of none."""
    head = int.from_bytes(raw[:3], "big")
    scale = int.from_bytes(raw[-SCALE_BYTES:], "big")
    if head == _MIDDLE:
        return Numeral((0, (0,), -scale))
    if raw in _ODD:
        return _ODD[raw]
    negative = head < _MIDDLE
    place = (_MIDDLE - _SIDE - head) if negative else (head - _MIDDLE - _SIDE)
    text = raw[3:-SCALE_BYTES].hex().rstrip("f" if negative else "0")
    digits = text.translate(_FROM_DOWN if negative else _FROM_UP)
    if not digits.isdecimal():
        raise InvalidValue(f"0x{raw[:40].hex()} is not a numeric")
    text = digits.ljust(place + 1 + scale, "0")
    return Numeral(f"{'-' if negative else ''}{text}E-{scale}")


_ODD = {_NAN: Numeral("NaN"), _UP: Numeral("Infinity"), _DOWN: Numeral("-Infinity")}


def key_form(raw: bytes) -> bytes:
    """What equal numbers have in common, whatever their scales."""
    return raw[:-SCALE_BYTES]


def format_numeral(number: Decimal) -> str:
    """The text of a numeral, as PostgreSQL prints it."""
    if number.is_finite():
        return format(number, "f")
    return "NaN" if number.is_nan() else "-Infinity" if number < 0 else "Infinity"
