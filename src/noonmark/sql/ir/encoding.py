"""Plans as bytes: canonical, so that what is stored can be named after them; and versioned.

Law (inverse): ``decode(encode(p)) == p`` for every plan p of a maintained view. So two plans have
one encoding only if they are equal, whatever literals stand in them.

Law (canonical): equal plans have one encoding, in every process. It depends on the value of a plan
alone: not on which subplans are one object, nor on what anything is called in Python (`ir.tags`).

Law (stable): the encodings that one version makes never change; `tests/sql/encodings.txt` keeps
some. Whoever has to change them raises `VERSION`, and what is named after plans gets new names. So
does whoever changes what a plan means in which no function's entry says so: a cast, a join.

    plan    the version; how many nodes there are; the nodes, each after those inside it, equal ones
            once; the last is the plan
    node    its tag; how many fields are written; of each its id and its value, by id. A node
            of another edition than the first has that, too, as a field 0
    value   one byte that says what it is, and then that; a node is the number of one before

Numbers are written 7 bits a byte, the lowest first, the high bit set on all but the last. A plan
that shares subplans is so as long as it has different nodes, however often each is used.
"""

from __future__ import annotations

import datetime as dt
import enum
import hashlib
import math
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from noonmark.errors import Unsupported, UsageError
from noonmark.rows import value as v
from noonmark.rows.label import Label
from noonmark.rows.numeral import Numeral
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import Field, SqlType
from noonmark.sql.functions.cast import cast_edition
from noonmark.sql.ir.call import AggregateCall, TableCall, WindowCall
from noonmark.sql.ir.node import Node
from noonmark.sql.ir.scalar import Call, Cast
from noonmark.sql.ir.tags import ENUMS, KINDS, UNWRITTEN, WRITTEN, Kind

VERSION = 1
#: The field that says which edition a node is of.
_EDITION = 0

_BY_CLASS: dict[type[Any], Kind] = {kind.made: kind for kind in KINDS}
_BY_TAG = {kind.tag: kind for kind in KINDS}
_CODES = {member: (tag, code) for tag, codes in ENUMS.items() for member, code in codes.items()}
_MEMBERS = {pair: member for member, pair in _CODES.items()}
_CALLS = (Call, AggregateCall, WindowCall, TableCall)
_NODES = (Node, SqlType, Schema, Column, Field)

(
    _NULL, _FALSE, _TRUE, _INTEGER, _FLOAT, _TEXT, _BYTES, _DECIMAL, _TUPLE, _NODE, _ENUM,
    _DATE, _TIME, _TIMESTAMP, _TIMESTAMPTZ, _INTERVAL, _UUID, _LABEL,
) = range(18)  # fmt: skip


_SMALL = [bytes([number]) for number in range(0x80)]


def encode(plan: Node) -> bytes:
    """The plan as bytes.

    Raises:
        Unsupported: it has a part that only a session knows: it cannot be maintained either.
    """
    writer = _Writer()
    writer.node(plan)
    return b"".join([_number(VERSION), _number(len(writer.nodes)), *writer.nodes])


def fingerprint(*parts: Any) -> str:
    """A short text, the same for the same parts (nodes, values, tuples) and for no others."""
    writer = _Writer()
    made = writer.value(parts)
    digest = hashlib.blake2b(_number(VERSION), digest_size=16)
    for each in (_number(len(writer.nodes)), *writer.nodes, made):
        digest.update(each)
    return digest.hexdigest()


def decode(data: bytes) -> Any:
    """The plan that `encode` made the bytes of.

    Raises:
        UsageError: they are of another version.
    """
    return _Reader(data).plan()


def edition_of(node: Any) -> int:
    """Of a function or cast, how often what it gives has changed, counted from 1.

    A plan of another edition is another plan: what is kept of it has another name, and a view that
    another version made is computed anew.
    """
    if isinstance(node, Cast):
        return cast_edition(node.operand.type, node.type)
    return node.entry.edition if isinstance(node, _CALLS) else 1


# --- writing


class _Writer:
    """The different nodes of one plan, in order."""

    def __init__(self) -> None:
        self.nodes: dict[bytes, int] = {}
        # An id is only good while its object lives: the plan keeps its nodes.
        self._done: dict[int, int] = {}

    def node(self, node: Any) -> int:
        """The number of a node, which is written unless an equal one is."""
        found = self._done.get(id(node))
        if found is None:
            written = self._written(node)
            found = self._done[id(node)] = self.nodes.setdefault(written, len(self.nodes))
        return found

    def _written(self, node: Any) -> bytes:
        kind = _BY_CLASS.get(type(node))
        if kind is None:
            what = "is known to its session alone" if isinstance(node, UNWRITTEN) else "is unknown"
            raise Unsupported(f"a plan with {type(node).__name__} has no stored form: it {what}")
        fields = [(each, getattr(node, each.name)) for each in kind.fields]
        kept = [
            (each.id, value)
            for each, value in fields
            if each.absent is WRITTEN
            or type(value) is not type(each.absent)
            or value != each.absent
        ]
        if (edition := edition_of(node)) > 1:
            kept.insert(0, (_EDITION, edition))
        parts = [_number(kind.tag), _number(len(kept))]
        for number, value in kept:
            parts += [_number(number), self.value(value)]
        return b"".join(parts)

    def value(self, value: Any) -> bytes:
        """What says a value, once the nodes in it are written."""
        if isinstance(value, tuple | list):
            return b"".join([_SMALL[_TUPLE], _number(len(value)), *map(self.value, value)])
        if isinstance(value, _NODES):
            return _SMALL[_NODE] + _number(self.node(value))
        if isinstance(value, enum.Enum):
            tag, code = _CODES[value]
            return _SMALL[_ENUM] + _number(tag) + _number(code)
        if isinstance(value, float):  # also a negative zero that is no plain float
            return _SMALL[_FLOAT] + _float(value)
        return _WRITE[type(value)](value)


def _number(number: int) -> bytes:
    """A number that is not negative."""
    if number < 0x80:
        return _SMALL[number]
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _long(data: bytes) -> bytes:
    return _number(len(data)) + data


def _whole(number: int) -> bytes:
    return _long(number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True))


def _float(number: float) -> bytes:
    """Its bits; there is one NaN."""
    return struct.pack(">d", math.nan if math.isnan(number) else number)


def _timestamp(value: dt.datetime) -> bytes:
    if value.tzinfo is None:
        return bytes([_TIMESTAMP]) + _whole(v.micros_of_timestamp(value))
    return bytes([_TIMESTAMPTZ]) + _whole(v.micros_of_timestamptz(value))


def _interval(value: v.Interval) -> bytes:
    return bytes([_INTERVAL]) + b"".join(map(_whole, (value.months, value.days, value.micros)))


_WRITE: dict[type[Any], Callable[[Any], bytes]] = {
    type(None): lambda _: bytes([_NULL]),
    bool: lambda value: bytes([_TRUE if value else _FALSE]),
    int: lambda value: bytes([_INTEGER]) + _whole(value),
    str: lambda value: bytes([_TEXT]) + _long(value.encode("utf-8", "surrogatepass")),
    bytes: lambda value: bytes([_BYTES]) + _long(value),
    # The scientific form of the decimal standard: one text for each sign, digits and exponent.
    Decimal: lambda value: bytes([_DECIMAL]) + _long(str(value).encode()),
    Numeral: lambda value: bytes([_DECIMAL]) + _long(str(value).encode()),
    dt.date: lambda value: bytes([_DATE]) + _whole(v.days_of(value)),
    v.FarDate: lambda value: bytes([_DATE]) + _whole(v.days_of(value)),
    dt.time: lambda value: bytes([_TIME]) + _whole(v.micros_of_time(value)),
    v.EndOfDay: lambda value: bytes([_TIME]) + _whole(v.micros_of_time(value)),
    dt.datetime: _timestamp,
    # With a zone or without: the literal's type says it.
    v.FarTimestamp: lambda value: bytes([_TIMESTAMP]) + _whole(value.micros),
    v.Interval: _interval,
    uuid.UUID: lambda value: bytes([_UUID]) + value.bytes,
    Label: lambda value: bytes([_LABEL]) + _long(value.stored),
}


# --- reading


class _Reader:
    """The bytes of a plan, from their beginning."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._nodes: list[Any] = []

    def plan(self) -> Any:
        version = self._number()
        if version != VERSION:
            raise UsageError(f"the plan is of version {version} of the encoding, not {VERSION}")
        for _ in range(self._number()):
            self._nodes.append(self._node())
        if self._at != len(self._data) or not self._nodes:
            raise UsageError("the encoding of a plan does not end where it should")
        return self._nodes[-1]

    def _node(self) -> Any:
        kind = _BY_TAG[self._number()]
        given = {each.name: each.absent for each in kind.fields if each.absent is not WRITTEN}
        names = {each.id: each.name for each in kind.fields}
        edition = 1
        for _ in range(self._number()):
            number = self._number()
            if number == _EDITION:
                edition = self._value()
            else:
                given[names[number]] = self._value()
        made = kind.made(**given)
        if edition != edition_of(made):
            raise UsageError(f"the plan has an edition {edition} that is not that of now")
        return made

    def _value(self) -> Any:
        return _READ[self._take(1)[0]](self)

    def _take(self, count: int) -> bytes:
        start, self._at = self._at, self._at + count
        if self._at > len(self._data):
            raise UsageError("the encoding of a plan ends too early")
        return self._data[start : self._at]

    def items(self) -> tuple[Any, ...]:
        return tuple(self._value() for _ in range(self._number()))

    def node(self) -> Any:
        return self._nodes[self._number()]

    def member(self) -> enum.Enum:
        return _MEMBERS[self._number(), self._number()]

    def _number(self) -> int:
        number = shift = 0
        while (byte := self._take(1)[0]) >= 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
        return number | byte << shift

    def long(self) -> bytes:
        return self._take(self._number())

    def whole(self) -> int:
        return int.from_bytes(self.long(), "big", signed=True)

    def real(self) -> float:
        (number,) = struct.unpack(">d", self._take(8))
        assert isinstance(number, float)
        return number

    def identifier(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._take(16))


_READ: dict[int, Callable[[_Reader], Any]] = {
    _NULL: lambda _: None,
    _FALSE: lambda _: False,
    _TRUE: lambda _: True,
    _TUPLE: _Reader.items,
    _NODE: _Reader.node,
    _ENUM: _Reader.member,
    _INTEGER: _Reader.whole,
    _FLOAT: _Reader.real,
    _TEXT: lambda given: given.long().decode("utf-8", "surrogatepass"),
    _BYTES: _Reader.long,
    _DECIMAL: lambda given: Decimal(given.long().decode()),
    _DATE: lambda given: v.date_of(given.whole()),
    _TIME: lambda given: v.time_of(given.whole()),
    _TIMESTAMP: lambda given: v.timestamp_of(given.whole()),
    _TIMESTAMPTZ: lambda given: v.timestamptz_of(given.whole()),
    _INTERVAL: lambda given: v.Interval(given.whole(), given.whole(), given.whole()),
    _UUID: _Reader.identifier,
    _LABEL: lambda given: Label.of(given.long()),
}
