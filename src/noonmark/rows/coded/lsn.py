"""Positions and numbers of PostgreSQL's own: ``pg_lsn``, a place in its log, and ``xid8``.

Both are 64 bits without a sign, in the order of the number.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import ClassVar

from noonmark.errors import InvalidValue
from noonmark.rows.types import Coded

#: More digits than 64 bits have, in any base.
_DIGITS_MAX = 30
_NUMBER = re.compile(r"\s*([+-]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))\s*", re.ASCII)
_LSN = re.compile("([0-9a-fA-F]{1,8})/([0-9a-fA-F]{1,8})")


@dataclass(frozen=True, slots=True)
class Lsn(Coded):
    """A place in a log of PostgreSQL."""

    spelling: ClassVar[str] = "pg_lsn"
    oid: ClassVar[int] = 3220
    array_oid: ClassVar[int] = 3221
    size: ClassVar[int] = 8
    tag: ClassVar[int] = 159
    extremes: ClassVar[bool] = True
    bytes_min: ClassVar[int] = 8

    def parse(self, text: str, _: dt.tzinfo = dt.UTC) -> bytes:
        match = _LSN.fullmatch(text)
        if match is None:
            raise self.invalid(text)
        return bytes.fromhex(match[1].zfill(8) + match[2].zfill(8))

    def show(self, value: bytes, _: dt.tzinfo = dt.UTC) -> str:
        high, low = (int.from_bytes(part, "big") for part in (value[:4], value[4:]))
        return f"{high:X}/{low:X}"

    def send(self, value: bytes) -> bytes:
        return value

    def receive(self, raw: bytes) -> bytes:
        if len(raw) != 8:
            raise ValueError("8 bytes are expected")
        return raw


@dataclass(frozen=True, slots=True)
class Xid8(Lsn):
    """The number of a transaction, with its epoch."""

    spelling: ClassVar[str] = "xid8"
    oid: ClassVar[int] = 5069
    array_oid: ClassVar[int] = 271
    tag: ClassVar[int] = 160
    stem: ClassVar[str] = "xid8"

    def parse(self, text: str, _: dt.tzinfo = dt.UTC) -> bytes:
        """As C reads a number: in base 8 behind a 0, in base 16 behind 0x."""
        match = _NUMBER.fullmatch(text)
        if match is None:
            raise self.invalid(text)
        base = 16 if match[2] else 8 if match[3] else 10
        digits = (match[2] or match[3] or match[4]).lstrip("0") or "0"
        number = int(digits[:_DIGITS_MAX], base)
        if number >> 64:
            raise InvalidValue(f'value "{text}" is out of range for type xid8')
        return ((-number if match[1] == "-" else number) % (1 << 64)).to_bytes(8, "big")

    def show(self, value: bytes, _: dt.tzinfo = dt.UTC) -> str:
        return str(int.from_bytes(value, "big"))


TYPES = (Lsn, Xid8)
