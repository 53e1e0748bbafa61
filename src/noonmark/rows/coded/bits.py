"""Strings of bits: ``bit(n)``, of exactly n, and ``bit varying(n)``, of at most n.

A value is its digits in ASCII, which are in the order that PostgreSQL gives bits: the first that
differs decides, and a string comes before all that it begins.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from dataclasses import dataclass
from typing import Any, ClassVar

from noonmark.errors import InvalidValue
from noonmark.rows.types import Coded

#: As many bits as PostgreSQL's type takes.
BITS_MAX = 83_886_080
_HEADER = struct.Struct(">i")
_NOT_BINARY, _NOT_HEX = re.compile("[^01]"), re.compile("[^0-9a-fA-F]")


class WrongLength(InvalidValue, id="bits_of_wrong_length", sqlstate="22026"):
    """More or fewer bits than a bit(n) has."""


class TooManyBits(InvalidValue, id="too_many_bits", sqlstate="22001"):
    """More bits than a bit varying(n) takes."""


@dataclass(frozen=True, slots=True)
class _Bits(Coded):
    """What both have in common."""

    category: ClassVar[str] = "V"
    fields: ClassVar[tuple[tuple[str, Any], ...]] = (("length", None),)
    length: int | None = None

    @classmethod
    def of(cls, parameters: tuple[int, ...]) -> Coded:
        if len(parameters) > 1:
            raise InvalidValue("invalid type modifier")
        short = cls.spelling.replace("bit varying", "varbit")
        if parameters and not 1 <= parameters[0] <= BITS_MAX:
            edge = "must be at least 1" if parameters[0] < 1 else f"cannot exceed {BITS_MAX}"
            raise InvalidValue(f"length for type {short} {edge}")
        return cls(*parameters)

    @classmethod
    def of_modifier(cls, modifier: int) -> Coded:
        return cls(modifier if modifier > 0 else None)

    @property
    def modifier(self) -> int:
        return -1 if self.length is None else self.length

    def __str__(self) -> str:
        return self.spelling if self.length is None else f"{self.spelling}({self.length})"

    @property
    def unsized(self) -> Coded:
        return type(self)()

    def sized(self, value: bytes) -> bytes:
        """The bits, cut, or with zeros behind them, as a written cast makes them fit."""
        raise NotImplementedError

    def parse(self, text: str, _: dt.tzinfo = dt.UTC) -> bytes:
        return self.fitted(digits(text))

    def show(self, value: bytes, _: dt.tzinfo = dt.UTC) -> str:
        return value.decode()

    def send(self, value: bytes) -> bytes:
        packed = int(value or b"0", 2) << -len(value) % 8
        return _HEADER.pack(len(value)) + packed.to_bytes((len(value) + 7) // 8, "big")

    def receive(self, raw: bytes) -> bytes:
        (length,) = _HEADER.unpack_from(raw)
        body = raw[_HEADER.size :]
        if length < 0 or len(body) != (length + 7) // 8:
            raise ValueError("invalid length in external bit string")
        return self.fitted(f"{int.from_bytes(body, 'big'):0{len(body) * 8}b}"[:length].encode())


def digits(text: str) -> bytes:
    """The bits of a text: of binary digits, or behind an x of hexadecimal ones."""
    if text[:1] in ("x", "X"):
        wrong = _NOT_HEX.search(text, 1)
        if wrong:
            raise InvalidValue(f'"{wrong[0]}" is not a valid hexadecimal digit')
        return "".join(f"{int(each, 16):04b}" for each in text[1:]).encode()
    body = text[1:] if text[:1] in ("b", "B") else text
    wrong = _NOT_BINARY.search(body)
    if wrong:
        raise InvalidValue(f'"{wrong[0]}" is not a valid binary digit')
    return body.encode()


@dataclass(frozen=True, slots=True)
class Varbit(_Bits):
    """At most `length` bits; None = any number."""

    spelling: ClassVar[str] = "bit varying"
    oid: ClassVar[int] = 1562
    array_oid: ClassVar[int] = 1563
    tag: ClassVar[int] = 154
    names: ClassVar[tuple[str, ...]] = ("varbit",)
    preferred: ClassVar[bool] = True

    def fitted(self, value: bytes) -> bytes:
        if self.length is not None and len(value) > self.length:
            raise TooManyBits(f"bit string too long for type bit varying({self.length})")
        return value

    def sized(self, value: bytes) -> bytes:
        return value[: self.length]


@dataclass(frozen=True, slots=True)
class Bit(_Bits):
    """Exactly `length` bits; None = any number, as a literal is: there is no name for that."""

    spelling: ClassVar[str] = "bit"
    oid: ClassVar[int] = 1560
    array_oid: ClassVar[int] = 1561
    tag: ClassVar[int] = 153
    wider: ClassVar[tuple[type[Coded], ...]] = (Varbit,)

    @classmethod
    def of(cls, parameters: tuple[int, ...]) -> Coded:
        return super(Bit, cls).of(parameters or (1,))

    @property
    def stored(self) -> str:
        return "bit(any)" if self.length is None else str(self)

    def fitted(self, value: bytes) -> bytes:
        if self.length is not None and len(value) != self.length:
            raise WrongLength(
                f"bit string length {len(value)} does not match type bit({self.length})"
            )
        return value

    def sized(self, value: bytes) -> bytes:
        return value if self.length is None else value[: self.length].ljust(self.length, b"0")


Varbit.wider = (Bit,)
TYPES = (Bit, Varbit)
