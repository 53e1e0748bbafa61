"""Binary strings: bytes and bits by their numbers from 0, parts by their positions from 1."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from functools import cache

from noonmark.errors import InvalidArgument, NegativeLength, OutOfRange
from noonmark.rows import types as t
from noonmark.rows.value import INT32_MAX
from noonmark.sql.functions.errors import NoSuchSubscript
from noonmark.sql.functions.function import Function


def _substring(data: bytes, start: int, length: int) -> bytes:
    if length < 0:
        raise NegativeLength("negative substring length not allowed")
    return data[max(start - 1, 0) : max(start - 1 + length, 0)]


def _overlay(data: bytes, new: bytes, start: int, length: int | None = None) -> bytes:
    """The bytes with so many from `start` on replaced: as many as are new, if unsaid."""
    if start <= 0:
        raise NegativeLength("negative substring length not allowed")
    size = len(new) if length is None else length
    if start + size > INT32_MAX:
        raise OutOfRange("integer out of range")
    return data[: start - 1] + new + data[max(start + size - 1, 0) :]


def _checked(at: int, count: int) -> int:
    if not 0 <= at < count:
        raise NoSuchSubscript(f"index {at} out of valid range, 0..{count - 1}")
    return at


def _byte(data: bytes, at: int) -> int:
    return data[_checked(at, len(data))]


def _bit(data: bytes, at: int) -> int:
    return data[_checked(at, 8 * len(data)) // 8] >> at % 8 & 1


def _with_byte(data: bytes, at: int, new: int) -> bytes:
    _checked(at, len(data))
    return data[:at] + bytes([new & 0xFF]) + data[at + 1 :]


def _with_bit(data: bytes, at: int, new: int) -> bytes:
    _checked(at, 8 * len(data))
    if new not in (0, 1):
        raise InvalidArgument("new bit must be 0 or 1")
    old = data[at // 8]
    return _with_byte(data, at // 8, old | 1 << at % 8 if new else old & ~(1 << at % 8))


_CASTAGNOLI = 0x82F63B78


@cache
def _remainders() -> tuple[int, ...]:
    """Of the division of every byte, for crc32c."""

    def remainder(byte: int) -> int:
        for _ in range(8):
            byte = byte >> 1 ^ (_CASTAGNOLI if byte & 1 else 0)
        return byte

    return tuple(map(remainder, range(256)))


def _crc32c(data: bytes) -> int:
    table, crc = _remainders(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _trims() -> list[Function]:
    ways: tuple[tuple[str, Callable[[bytes, bytes], bytes]], ...] = (
        ("btrim", bytes.strip),
        ("ltrim", bytes.lstrip),
        ("rtrim", bytes.rstrip),
    )
    return [Function(name, (_B, _B), _B(), act) for name, act in ways]


def _parts() -> list[Function]:
    rows = []
    for name in ("substring", "substr"):
        start, both = (_B, t.Integer), (_B, t.Integer, t.Integer)
        rows += [
            Function(name, start, _B(), lambda data, at: data[max(at - 1, 0) :]),
            Function(name, both, _B(), _substring, fallible=True, decided_by=(2,)),
        ]
    for more in ((t.Integer,), (t.Integer, t.Integer)):
        rows.append(Function("overlay", (_B, _B, *more), _B(), _overlay, fallible=True))
    return rows


_B = t.Bytea
_INT, _LONG = t.Integer(), t.BigInt()

TABLE = (
    Function("get_byte", (_B, t.Integer), _INT, _byte, fallible=True),
    Function("get_bit", (_B, t.BigInt), _INT, _bit, fallible=True),
    Function("set_byte", (_B, t.Integer, t.Integer), _B(), _with_byte, fallible=True),
    Function("set_bit", (_B, t.BigInt, t.Integer), _B(), _with_bit, fallible=True),
    Function("bit_count", (_B,), _LONG, lambda data: int.from_bytes(data, "big").bit_count()),
    Function("bit_length", (_B,), _INT, lambda data: 8 * len(data)),
    Function("md5", (_B,), t.Text(), lambda data: hashlib.md5(data).hexdigest()),
    Function("crc32", (_B,), _LONG, zlib.crc32),
    Function("crc32c", (_B,), _LONG, _crc32c),
    Function("reverse", (_B,), _B(), lambda data: data[::-1]),
    Function("position", (_B, _B), _INT, lambda data, part: data.find(part) + 1),
    *_trims(),
    *_parts(),
)
