"""Strings of bits: operators and functions. Bits count from 0, positions from 1."""

from __future__ import annotations

import operator
from collections.abc import Callable

from noonmark.errors import InvalidArgument, NegativeLength, OutOfRange
from noonmark.rows import types as t
from noonmark.rows.coded.bits import Bit, Varbit
from noonmark.rows.value import INT32_MAX
from noonmark.sql.functions.errors import NoSuchSubscript, UnlikeBits
from noonmark.sql.functions.function import Function

_INVERSE = bytes.maketrans(b"01", b"10")


def _each(name: str, act: Callable[[int, int], int]) -> Callable[[bytes, bytes], bytes]:
    def both(a: bytes, b: bytes) -> bytes:
        if len(a) != len(b):
            raise UnlikeBits(f"cannot {name} bit strings of different sizes")
        return f"{act(int(a, 2), int(b, 2)):0{len(a)}b}".encode() if a else a

    return both


AND, OR, XOR = (
    _each(name, act)
    for name, act in (("AND", operator.and_), ("OR", operator.or_), ("XOR", operator.xor))
)


def _left(value: bytes, by: int) -> bytes:
    if by < 0:
        return _right(value, -by)
    return value[by:].ljust(len(value), b"0")


def _right(value: bytes, by: int) -> bytes:
    if by < 0:
        return _left(value, -by)
    return value[: max(len(value) - by, 0)].rjust(len(value), b"0")


def _checked(value: bytes, at: int) -> int:
    if not 0 <= at < len(value):
        raise NoSuchSubscript(f"bit index {at} out of valid range (0..{len(value) - 1})")
    return at


def _bit(value: bytes, at: int) -> int:
    return value[_checked(value, at)] - ord("0")


def _with_bit(value: bytes, at: int, new: int) -> bytes:
    _checked(value, at)
    if new not in (0, 1):
        raise InvalidArgument("new bit must be 0 or 1")
    return value[:at] + (b"1" if new else b"0") + value[at + 1 :]


def _substring(value: bytes, start: int, length: int) -> bytes:
    if length < 0:
        raise NegativeLength("negative substring length not allowed")
    return value[max(start - 1, 0) : max(start - 1 + length, 0)]


def _overlay(value: bytes, new: bytes, start: int, length: int | None = None) -> bytes:
    if start <= 0:
        raise NegativeLength("negative substring length not allowed")
    size = len(new) if length is None else length
    if start + size > INT32_MAX:
        raise OutOfRange("integer out of range")
    return value[: start - 1] + new + value[max(start + size - 1, 0) :]


def _position(value: bytes, part: bytes) -> int:
    return value.find(part) + 1 if value else 0


_BITS, _INT = Bit(), t.Integer()
_TWO = (Bit, Bit)

TABLE = (
    Function("&", _TWO, _BITS, AND, fallible=True),
    Function("|", _TWO, _BITS, OR, fallible=True),
    Function("#", _TWO, _BITS, XOR, fallible=True),
    Function("~", (Bit,), _BITS, lambda value: value.translate(_INVERSE)),
    Function("<<", (Bit, t.Integer), _BITS, _left),
    Function(">>", (Bit, t.Integer), _BITS, _right),
    Function("||", (Varbit, Varbit), Varbit(), operator.add),
    *(Function(name, (Bit,), _INT, len) for name in ("length", "bit_length")),
    Function("octet_length", (Bit,), _INT, lambda value: (len(value) + 7) // 8),
    Function("bit_count", (Bit,), t.BigInt(), lambda value: value.count(b"1")),
    Function("get_bit", (Bit, t.Integer), _INT, _bit, fallible=True),
    Function("set_bit", (Bit, t.Integer, t.Integer), _BITS, _with_bit, fallible=True),
    Function("substring", (Bit, t.Integer), _BITS, lambda value, at: value[max(at - 1, 0) :]),
    Function("substring", (Bit, t.Integer, t.Integer), _BITS, _substring, fallible=True),
    Function("overlay", (*_TWO, t.Integer), _BITS, _overlay, fallible=True),
    Function("overlay", (*_TWO, t.Integer, t.Integer), _BITS, _overlay, fallible=True),
    Function("position", _TWO, _INT, _position),
)
