"""The labels of enumerations: a text, and its place among the labels of its type.

A place is bytes, none of them 0 and the last above 1. Places are compared as bytes, a prefix before
what goes on; it is the order in which the labels were declared.

Law (room): for places a < b there is a place between them, so a label is added before or after any
other without another place. Law (stored order): ``x.stored < y.stored`` iff ``x.place < y.place``,
so what is stored stays in order whatever labels come.

A stored value has its label beside its place: who reads it needs no catalog.
"""

from __future__ import annotations

from typing import Any

from noonmark.errors import InvalidValue

_END = b"\0"
#: Digits of a place: the least that may stand last, and how many follow each other in two bytes.
_LEAST, _DIGITS = 2, 254


class Label(str):
    r"""One label: a text that knows its place. Equal iff the texts are; the place gives the order.

    >>> Label.of(Label("sad", b"\x10").stored)
    'sad'
    """

    __slots__ = ("place",)
    place: bytes

    def __new__(cls, text: str, place: bytes) -> Label:
        """A label at a place."""
        made = super().__new__(cls, text)
        made.place = place
        return made

    @classmethod
    def of(cls, stored: bytes) -> Label:
        """The inverse of `stored`."""
        place, end, text = bytes(stored).partition(_END)
        if not place or not end:
            raise InvalidValue("a value is not the stored form of an enum")
        return cls(text.decode(), place)

    @property
    def stored(self) -> bytes:
        """The bytes that are kept: in the order of the places."""
        return self.place + _END + self.encode()

    def __reduce__(self) -> Any:
        return Label, (str(self), self.place)


def place_of(label: Label) -> bytes:
    """What decides the order of a label."""
    return label.place


def first_places(count: int) -> list[bytes]:
    """The places of the labels that a type is made with: evenly apart.

    >>> [each.hex() for each in first_places(3)]
    ['4181', '8102', 'c081']
    """
    if count >= _DIGITS * _DIGITS:
        raise InvalidValue(f"an enum has at most {_DIGITS * _DIGITS - 1} labels at first")
    step = _DIGITS * _DIGITS // (count + 1)
    return [_two(step * (at + 1)) for at in range(count)]


def _two(number: int) -> bytes:
    high, low = divmod(number, _DIGITS)
    return bytes([high + _LEAST, low + _LEAST])


def place_between(low: bytes | None, high: bytes | None) -> bytes:
    r"""A place above `low` and below `high`; None is the end of all.

    >>> place_between(b"\x10", b"\x11").hex(), place_between(None, b"\x02").hex()
    ('1080', '0180')
    """
    made = bytearray()
    at = 0
    while True:
        least = low[at] if low is not None and at < len(low) else 0
        most = high[at] if high is not None and at < len(high) else 256
        middle = (least + most + 1) // 2
        if least < middle < most and middle >= _LEAST:
            return bytes([*made, middle])
        # Both go on from here with the digit of the lower one, or with 1 below a digit of 2.
        digit = least or 1
        made.append(digit)
        if digit < most:
            high = None
        if digit > least:
            low = None
        at += 1
