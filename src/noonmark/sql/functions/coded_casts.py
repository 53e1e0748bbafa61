"""Casts of the types of `rows.coded` among each other and from numbers, as in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noonmark.errors import InvalidText, InvalidValue, OutOfRange
from noonmark.rows import types as t
from noonmark.rows.coded.bits import Bit, Varbit, digits
from noonmark.rows.coded.network import Address, Cidr, Inet, Macaddr, Macaddr8
from noonmark.rows.coded.ranges import PAIRS, Range

Meaning = Callable[[Any, t.SqlType, t.SqlType], Any]
Pair = tuple[type[t.SqlType], type[t.SqlType]]


def _bits(value: bytes, _: t.SqlType, target: t.SqlType) -> bytes:
    assert isinstance(target, Bit | Varbit)
    return target.sized(value)


def bits_of_text(value: str, source: t.SqlType, target: t.SqlType) -> bytes:
    """A text as bits: a written cast cuts, where reading refuses."""
    try:
        return _bits(digits(value), source, target)
    except InvalidValue as error:
        raise InvalidText(error.message) from None


def _bits_of_number(value: int, _: t.SqlType, target: t.SqlType) -> bytes:
    """The last bits of the number; there are as many as it takes of its sign."""
    assert isinstance(target, Bit)
    length = target.length or 1
    return f"{value % (1 << length):0{length}b}".encode()


def _number_of_bits(value: bytes, _: t.SqlType, target: t.SqlType) -> int:
    width = 32 if isinstance(target, t.Integer) else 64
    if len(value) > width:
        raise OutOfRange(f"{target} out of range")
    number = int(value or b"0", 2)
    return number - (1 << width) if number >> width - 1 else number


def address_text(value: bytes) -> str:
    """The text of an address as a cast writes it: always with its mask."""
    address = Address.of(value)
    return f"{address.host}/{address.bits}"


def _short_card(value: bytes, _: t.SqlType, __: t.SqlType) -> bytes:
    if value[3:5] != b"\xff\xfe":
        raise OutOfRange(
            "macaddr8 data out of range to convert to macaddr",
            hint="Only addresses that have FF and FE as values in the 4th and 5th bytes from the "
            "left, for example xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from "
            "macaddr8 to macaddr.",
        )
    return value[:3] + value[5:]


def _same(value: bytes, _: t.SqlType, __: t.SqlType) -> bytes:
    return value


def _several(one: type[Range]) -> Meaning:
    return lambda value, *_: one.of_several.value(one.spans(value))


CASTS: dict[Pair, Meaning] = {
    **{(a, b): _bits for a in (Bit, Varbit) for b in (Bit, Varbit)},
    **{(number, Bit): _bits_of_number for number in (t.Integer, t.BigInt)},
    **{(Bit, number): _number_of_bits for number in (t.Integer, t.BigInt)},
    (Cidr, Inet): _same,
    (Inet, Cidr): lambda value, *_: Address.of(value).net.value,
    (Macaddr, Macaddr8): lambda value, *_: value[:3] + b"\xff\xfe" + value[3:],
    (Macaddr8, Macaddr): _short_card,
    **{(one, several): _several(one) for one, several in PAIRS},
}
#: Those that no value refuses.
INFALLIBLE = frozenset(pair for pair in CASTS if pair[1] not in (t.Integer, t.BigInt, Macaddr))
