"""Network addresses: ``inet``, ``cidr``, ``macaddr`` and ``macaddr8``.

An address with a net is the family, the address with all bits behind the mask cleared, the length
of the mask, and the address as it is; a family comes before the other, a net before its parts, and
inside of one net the addresses are in their order. What PostgreSQL compares one after the other
stands one after the other, so the bytes are in its order.

Law (cidr): of a cidr both addresses are the same.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import ClassVar

from noonmark.errors import InvalidValue
from noonmark.rows.types import Coded

#: The first byte, by the number of bytes of an address; it is what PostgreSQL sends.
_FAMILY = {4: 2, 16: 3}
_SIZE = {family: size for size, family in _FAMILY.items()}


@dataclass(frozen=True, slots=True)
class Address:
    """An address and the length of its net's mask."""

    raw: bytes
    bits: int

    @classmethod
    def of(cls, value: bytes) -> Address:
        """The address of a value."""
        size = _SIZE[value[0]]
        return cls(value[size + 2 :], value[size + 1])

    @property
    def number(self) -> int:
        """The address as a number."""
        return int.from_bytes(self.raw, "big")

    @property
    def width(self) -> int:
        """How many bits an address of the family has."""
        return len(self.raw) * 8

    @property
    def mask(self) -> int:
        """The bits of the net."""
        return (1 << self.width) - (1 << self.width - self.bits)

    def at(self, number: int, bits: int | None = None) -> Address:
        """Another address of the family."""
        return Address(number.to_bytes(len(self.raw), "big"), self.bits if bits is None else bits)

    @property
    def net(self) -> Address:
        """Without what stands behind the mask."""
        return self.at(self.number & self.mask)

    @property
    def value(self) -> bytes:
        """The bytes of the value."""
        head = bytes([_FAMILY[len(self.raw)]])
        return head + self.net.raw + bytes([self.bits]) + self.raw

    @property
    def host(self) -> str:
        """The text of the address alone."""
        return str(IPv4Address(self.raw)) if len(self.raw) == 4 else _six(self.raw)

    def holds(self, other: Address) -> bool:
        """Whether the other net is this one or a part of it."""
        return (
            len(self.raw) == len(other.raw)
            and self.bits <= other.bits
            and other.number & self.mask == self.number & self.mask
        )


def _six(raw: bytes) -> str:
    """PostgreSQL writes the last 32 bits as IPv4 behind ten zero bytes, and behind ffff."""
    head, last = int.from_bytes(raw[:12], "big"), int.from_bytes(raw[12:], "big")
    tail = str(IPv4Address(raw[12:]))
    if head == 0xFFFF:
        return f"::ffff:{tail}"
    if head == 0 and last >> 16:
        return f"::{tail}"
    return str(IPv6Address(raw).compressed)


@dataclass(frozen=True, slots=True)
class _Net(Coded):
    """What both have in common."""

    category: ClassVar[str] = "I"
    bytes_min: ClassVar[int] = 10
    #: Whether it is of addresses: without a mask all four parts of one are written.
    whole: ClassVar[bool] = True

    def show(self, value: bytes, _: dt.tzinfo = dt.UTC) -> str:
        address = Address.of(value)
        whole = address.bits == address.width and self.whole
        return address.host if whole else f"{address.host}/{address.bits}"

    def send(self, value: bytes) -> bytes:
        address = Address.of(value)
        head = (value[0], address.bits, int(not self.whole), len(address.raw))
        return bytes(head) + address.raw

    def receive(self, raw: bytes) -> bytes:
        family, bits, _, size = raw[:4]
        if _SIZE.get(family) != size or len(raw) != size + 4 or bits > size * 8:
            raise ValueError(f"invalid address family or length in external {self.spelling} value")
        return self.checked(Address(raw[4:], bits), "external value")

    def checked(self, address: Address, _: str) -> bytes:
        """The value of an address that the type takes."""
        return address.value

    def parse(self, text: str, _: dt.tzinfo = dt.UTC) -> bytes:
        host, slash, length = text.partition("/")
        try:
            six = ":" in host
            raw = IPv6Address(host).packed if six else self._four(host, bool(slash))
            bits = self._bits(length, len(raw) * 8) if slash else self._implied(host, raw)
            if not six and slash and self.whole and bits // 8 > host.count(".") + 1:
                raise self.invalid(text)
        except (AddressValueError, ValueError):
            raise self.invalid(text) from None
        if "%" in text:
            raise self.invalid(text)
        return self.checked(Address(raw, bits), text)

    def _bits(self, text: str, width: int) -> int:
        if not re.fullmatch("[0-9]+", text) or int(text) > width:
            raise ValueError
        return int(text)

    def _four(self, host: str, masked: bool) -> bytes:
        parts = host.split(".")
        if not all(re.fullmatch("[0-9]{1,10}", part) and int(part) < 256 for part in parts):
            raise ValueError
        if len(parts) > 4 or (len(parts) < 4 and self.whole and not masked):
            raise ValueError
        return bytes(map(int, parts)).ljust(4, b"\0")

    def _implied(self, _: str, raw: bytes) -> int:
        """How long the mask is where none is written."""
        return len(raw) * 8


@dataclass(frozen=True, slots=True)
class Inet(_Net):
    """An address of IPv4 or IPv6, and optionally the net that it is in."""

    spelling: ClassVar[str] = "inet"
    oid: ClassVar[int] = 869
    array_oid: ClassVar[int] = 1041
    tag: ClassVar[int] = 155
    extremes: ClassVar[bool] = True
    preferred: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Cidr(_Net):
    """A net of IPv4 or IPv6."""

    spelling: ClassVar[str] = "cidr"
    oid: ClassVar[int] = 650
    array_oid: ClassVar[int] = 651
    tag: ClassVar[int] = 156
    wider: ClassVar[tuple[type[Coded], ...]] = (Inet,)
    whole: ClassVar[bool] = False

    def checked(self, address: Address, text: str) -> bytes:
        if address.net != address:
            raise InvalidValue(
                f'invalid cidr value: "{text}"', detail="Value has bits set to right of mask."
            )
        return address.value

    def _implied(self, host: str, raw: bytes) -> int:
        """Without a mask it is that of the old classes, or of the bytes that are written."""
        if len(raw) == 16:
            return 128
        first, written = raw[0], host.count(".") + 1
        by_class = (
            32
            if first >= 240
            else 8
            if first >= 224
            else 24
            if first >= 192
            else (16 if first >= 128 else 8)
        )
        bits = max(by_class, written * 8)
        if bits == 8 and first == 224:
            bits = 4
        return bits


@dataclass(frozen=True, slots=True)
class Macaddr(Coded):
    """Six bytes of a network card."""

    spelling: ClassVar[str] = "macaddr"
    oid: ClassVar[int] = 829
    array_oid: ClassVar[int] = 1040
    size: ClassVar[int] = 6
    tag: ClassVar[int] = 157
    bytes_min: ClassVar[int] = 6

    def parse(self, text: str, _: dt.tzinfo = dt.UTC) -> bytes:
        raw = _six_bytes(text.strip())
        if raw is None:
            raise self.invalid(text)
        return raw

    def show(self, value: bytes, _: dt.tzinfo = dt.UTC) -> str:
        return value.hex(":")

    def send(self, value: bytes) -> bytes:
        return value

    def receive(self, raw: bytes) -> bytes:
        if len(raw) != self.size:
            raise ValueError(f"a {self.spelling} has {self.size} bytes")
        return raw


@dataclass(frozen=True, slots=True)
class Macaddr8(Macaddr):
    """Eight bytes of a network card; six get ff:fe in their middle."""

    spelling: ClassVar[str] = "macaddr8"
    oid: ClassVar[int] = 774
    array_oid: ClassVar[int] = 775
    size: ClassVar[int] = 8
    tag: ClassVar[int] = 158
    bytes_min: ClassVar[int] = 8

    def parse(self, text: str, _: dt.tzinfo = dt.UTC) -> bytes:
        raw = _pairs(text.strip())
        if raw is None:
            raise self.invalid(text)
        return raw if len(raw) == 8 else raw[:3] + b"\xff\xfe" + raw[3:]


_HALF, _QUARTER = "[0-9a-fA-F]{6}", "[0-9a-fA-F]{4}"
#: The last digit of all may be missing: it is read as a pair of its own.
_FORMS = re.compile(
    f"({_HALF}[:-]?[0-9a-fA-F]{{4}}|{_QUARTER}([.-]){_QUARTER}\\2[0-9a-fA-F]{{2}})"
    "([0-9a-fA-F]{1,2})"
)
_ONE_BY_ONE = re.compile("[0-9a-fA-F]{1,2}(?:([:-])[0-9a-fA-F]{1,2})(?:\\1[0-9a-fA-F]{1,2}){4}")
_SPACED = re.compile("[0-9a-fA-F]{2}(?:[:.-]?[0-9a-fA-F]{2}){5,7}")
_SPACERS = re.compile("[:.-]")


def _six_bytes(text: str) -> bytes | None:
    """The bytes of a macaddr, in one of the ways that PostgreSQL reads."""
    if _ONE_BY_ONE.fullmatch(text):
        return bytes(int(each, 16) for each in _SPACERS.split(text))
    match = _FORMS.fullmatch(text)
    return match and bytes.fromhex(_SPACERS.sub("", match[1]) + match[3].zfill(2))


def _pairs(text: str) -> bytes | None:
    """The six or eight bytes of a macaddr8: pairs of digits, with one kind of sign between some."""
    if not _SPACED.fullmatch(text) or len(set(_SPACERS.findall(text))) > 1:
        return None
    raw = bytes.fromhex(_SPACERS.sub("", text))
    return raw if len(raw) in (6, 8) else None


Inet.assignable = (Cidr,)
Macaddr.wider, Macaddr8.wider = (Macaddr8,), (Macaddr,)
TYPES = (Inet, Cidr, Macaddr, Macaddr8)
