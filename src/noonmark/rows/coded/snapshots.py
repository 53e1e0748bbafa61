"""``pg_snapshot`` and ``txid_snapshot``: which transactions had ended at a moment.

A value is its text, ``xmin:xmax:xip,...``: below xmin all have ended, from xmax on none has, and of
those between, the ones that are listed have not. There is neither equality nor order.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from dataclasses import dataclass
from typing import ClassVar

from noonmark.rows.types import Coded

_TEXT = re.compile(r"(\d{1,19}):(\d{1,19}):([\d,]*)", re.ASCII)
_NUMBER_MAX = (1 << 63) - 1
#: Where the number of an epoch ends: below it, 0 is no transaction.
_LOW = (1 << 32) - 1
_HEADER = struct.Struct(">iqq")


@dataclass(frozen=True)
class Snapshot:
    """One snapshot, taken apart."""

    least: int
    end: int
    under_way: tuple[int, ...] = ()

    @property
    def value(self) -> bytes:
        """As a value of either type."""
        return f"{self.least}:{self.end}:{','.join(map(str, self.under_way))}".encode()

    @classmethod
    def of(cls, value: bytes) -> Snapshot:
        """A value, taken apart."""
        least, end, listed = value.decode().split(":")
        return cls(int(least), int(end), tuple(map(int, filter(None, listed.split(",")))))

    @property
    def is_sound(self) -> bool:
        """Whether its numbers are in order: each once, from the first to before the last."""
        ends = self.least <= self.end <= _NUMBER_MAX
        ends = ends and bool(self.least & _LOW) and bool(self.end & _LOW)
        listed = self.under_way
        return ends and (not listed or (self.least <= listed[0] and listed[-1] < self.end))

    def has(self, number: int) -> bool:
        """Whether a transaction had ended."""
        return number < self.least or (number < self.end and number not in self.under_way)


@dataclass(frozen=True, slots=True)
class PgSnapshot(Coded):
    """A snapshot of numbers of type xid8."""

    spelling: ClassVar[str] = "pg_snapshot"
    oid: ClassVar[int] = 5038
    array_oid: ClassVar[int] = 5039
    tag: ClassVar[int] = 174
    stem: ClassVar[str] = "pg_snapshot_"
    equality: ClassVar[bool] = False
    ordered: ClassVar[bool] = False

    def parse(self, text: str, _: dt.tzinfo = dt.UTC) -> bytes:
        match = _TEXT.fullmatch(text)
        if match is None or ",," in match[3] or match[3][:1] == ",":
            raise self.invalid(text)
        listed = [int(each) for each in match[3].split(",") if each]
        made = Snapshot(int(match[1]), int(match[2]), tuple(dict.fromkeys(listed)))
        if listed != sorted(listed) or not made.is_sound:
            raise self.invalid(text)
        return made.value

    def show(self, value: bytes, _: dt.tzinfo = dt.UTC) -> str:
        return value.decode()

    def send(self, value: bytes) -> bytes:
        made = Snapshot.of(value)
        listed = struct.pack(f">{len(made.under_way)}q", *made.under_way)
        return _HEADER.pack(len(made.under_way), made.least, made.end) + listed

    def receive(self, raw: bytes) -> bytes:
        count, least, end = _HEADER.unpack_from(raw)
        listed = struct.unpack(f">{count}q", raw[_HEADER.size :]) if count >= 0 else ()
        made = Snapshot(least, end, tuple(dict.fromkeys(listed)))
        if count < 0 or list(listed) != sorted(listed) or not made.is_sound:
            raise ValueError("invalid external pg_snapshot data")
        return made.value


@dataclass(frozen=True, slots=True)
class TxidSnapshot(PgSnapshot):
    """The older type of the same, of numbers that are bigints."""

    spelling: ClassVar[str] = "txid_snapshot"
    oid: ClassVar[int] = 2970
    array_oid: ClassVar[int] = 2949
    tag: ClassVar[int] = 175
    stem: ClassVar[str] = "txid_snapshot_"


TYPES = (PgSnapshot, TxidSnapshot)
