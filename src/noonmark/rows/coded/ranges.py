"""Ranges and multiranges of the six types that have them.

A range is empty, or goes from one edge to another, each of which has a value or is infinite. In
bytes it is 0 if it is empty, else 1, the lower edge and the upper one:

    lower edge   0 if infinite; else 1, the value, and 0 if the value is in the range, else 1
    upper edge   2 if infinite; else 1, the value, and 1 if the value is in the range, else 0

Values are bytes in their order that none begins another. A multirange is its ranges, which lie
apart and in order, and 0. So the bytes are in PostgreSQL's order. Behind all that stand the scales
of numerics, which are shown and do not count: equal ranges may be of different bytes.

Law (canonical): ranges of whole numbers and of days have their lower edge and not their upper one.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from noonmark.errors import InvalidValue
from noonmark.rows import numeral
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.coded.spans import (
    Span,
    Texts,
    ranges_of,
    shown,
    span_of_text,
)
from noonmark.rows.order import sort_key


class BadRange(InvalidValue, id="bad_range", sqlstate="22000"):
    """A range whose lower edge is above its upper one."""


@dataclass(frozen=True)
class _Values:
    """How the values of one type are written so that they are in order, and read again."""

    write: Callable[[Any], bytes]
    #: From a place in bytes: the value and where it ends.
    read: Callable[[bytes, int], tuple[Any, int]]
    #: The value behind a value, of a type that counts.
    after: Callable[[Any], Any] | None = None


def _whole(size: int, of: Callable[[Any], int], made: Callable[[int], Any]) -> _Values:
    middle = 1 << size * 8 - 1

    def read(data: bytes, at: int) -> tuple[Any, int]:
        return made(int.from_bytes(data[at : at + size], "big") - middle), at + size

    return _Values(lambda value: (of(value) + middle).to_bytes(size, "big"), read)


def _counted(size: int) -> _Values:
    name = "integer" if size == 4 else "bigint"

    def after(value: int) -> int:
        if value + 1 >= 1 << size * 8 - 1:
            raise InvalidValue(f"{name} out of range")
        return value + 1

    plain = _whole(size, int, int)
    return _Values(plain.write, plain.read, after)


def _next_day(value: Any) -> Any:
    days = v.days_of(value)
    if days in (v.INT32_MIN, v.INT32_MAX):
        return value
    if days >= v.DAYS_MAX:
        raise InvalidValue("date out of range")
    return v.date_of(days + 1)


def _read_numeric(data: bytes, at: int) -> tuple[Any, int]:
    """Up to the end of the digits; the scale stands elsewhere."""
    head = int.from_bytes(data[at : at + 3], "big")
    end = at + 3
    if head not in _WITHOUT_DIGITS:
        last = 0x0F if head < _MIDDLE else 0
        while data[end] & 0x0F != last:
            end += 1
        end += 1
    return data[at:end], end


_MIDDLE = 0x800000
_WITHOUT_DIGITS = frozenset((_MIDDLE, 0xF10000, 0xF00000, 0x100000))
_DAY = _whole(4, v.days_of, v.date_of)
_VALUES: dict[type[t.SqlType], _Values] = {
    t.Integer: _counted(4),
    t.BigInt: _counted(8),
    t.Numeric: _Values(lambda value: numeral.encode(numeral.numeral(value)), _read_numeric),
    t.Date: _Values(_DAY.write, _DAY.read, _next_day),
    t.Timestamp: _whole(8, v.micros_of_timestamp, v.timestamp_of),
    t.TimestampTz: _whole(8, v.micros_of_timestamptz, v.timestamptz_of),
}


@dataclass(frozen=True, slots=True)
class _Spans(t.Coded):
    """What ranges and multiranges have in common."""

    category: ClassVar[str] = "R"
    bytes_min: ClassVar[int] = 1
    element: ClassVar[t.SqlType]
    of_range: ClassVar[type[Range]]
    of_several: ClassVar[type[Multirange]]

    @classmethod
    def sort(cls, value: Any) -> Any:
        """The key of a value of the element, by which it is compared."""
        return sort_key(cls.element)(value)

    @classmethod
    def counted(cls) -> bool:
        """Whether its values are counted: whole numbers and days."""
        return _VALUES[type(cls.element)].after is not None

    @classmethod
    def span(cls, low: Any, high: Any, low_in: bool, high_in: bool) -> Span:
        """The range between two values; None is infinite.

        Raises:
            BadRange: the lower one is above the upper one.
        """
        low_in, high_in = low_in and low is not None, high_in and high is not None
        if low is not None and high is not None and cls.sort(low) > cls.sort(high):
            message = "range lower bound must be less than or equal to range upper bound"
            raise BadRange(message)
        after = _VALUES[type(cls.element)].after
        made = Span.of(low, high, low_in, high_in, cls.sort)
        if after is None or made.empty:
            return made
        if low is not None and not low_in:
            moved = after(low)
            low_in = moved != low
            low = moved
        if high is not None and high_in:
            moved = after(high)
            high_in = moved == high
            high = moved
        return Span.of(low, high, low_in, high_in, cls.sort)

    @classmethod
    def pack(cls, spans: Iterable[Span]) -> tuple[bytes, bytes]:
        """The bytes of ranges one after the other, and what stands behind them all."""
        write, parts, scales = _VALUES[type(cls.element)].write, [], []
        numeric = isinstance(cls.element, t.Numeric)

        def edge(value: Any, flag: bool) -> None:
            raw = write(value)
            if numeric:
                scales.append(raw[-numeral.SCALE_BYTES :])
                raw = numeral.key_form(raw)
            parts.append(b"\1" + raw + (b"\1" if flag else b"\0"))

        for span in spans:
            if span.empty:
                parts.append(b"\0")
                continue
            parts.append(b"\1")
            if span.low is None:
                parts.append(b"\0")
            else:
                edge(span.low, not span.low_in)
            if span.high is None:
                parts.append(b"\2")
            else:
                edge(span.high, span.high_in)
        return b"".join(parts), b"".join(scales)

    @classmethod
    def unpack(cls, data: bytes) -> tuple[list[Span], int]:
        """The ranges up to a 0 or the end, and where they end: with scales, if there are such."""
        at, raw = 0, []
        read = _VALUES[type(cls.element)].read
        while at < len(data) and data[at] == 1:
            low = high = None
            low_in = high_in = False
            at += 1
            if data[at] == 1:
                low, at = read(data, at + 1)
                low_in = data[at] == 0
            at += 1
            if data[at] == 1:
                high, at = read(data, at + 1)
                high_in = data[at] == 1
            at += 1
            raw.append((low, high, low_in, high_in))
            if issubclass(cls, Range):
                break
        if isinstance(cls.element, t.Numeric):
            raw = list(_with_scales(raw, data, at + (not issubclass(cls, Range))))
        return [Span.of(*each, cls.sort) for each in raw], at

    def key(self, value: bytes) -> bytes:
        if self.one_form:
            return value
        at = self.unpack(value)[1]
        return value[: max(at, 1)] if isinstance(self, Range) else value[: at + 1]

    def plainest(self, value: bytes) -> bytes:
        if self.one_form:
            return value
        return self.value_of(
            Span.of(_fewest(x.low), _fewest(x.high), x.low_in, x.high_in, self.sort)
            for x in self.unpack(value)[0]
        )

    @classmethod
    def value_of(cls, spans: Iterable[Span]) -> bytes:
        """The value of ranges that lie apart; of a range, of at most one."""
        raise NotImplementedError

    def _texts(self, zone: dt.tzinfo) -> Texts:
        from noonmark.rows.pg.text import format_value, parse_value  # door: they read all types

        return Texts(
            lambda value: format_value(value, self.element, zone),
            lambda text: parse_value(text, self.element, zone),
        )


def _fewest(number: Any) -> Any:
    """The number with as few digits as it can have; an infinite edge is that."""
    return None if number is None else numeral.equal_range(number)[0]


def _with_scales(
    raw: Sequence[tuple[Any, Any, bool, bool]], data: bytes, at: int
) -> Iterator[tuple[Any, Any, bool, bool]]:
    """The numbers of their digits, and of their scales from a place on."""
    for low, high, low_in, high_in in raw:
        made: list[Any] = []
        for digits in (low, high):
            if digits is None:
                made.append(None)
                continue
            made.append(numeral.decode(digits + data[at : at + numeral.SCALE_BYTES]))
            at += numeral.SCALE_BYTES
        yield made[0], made[1], low_in, high_in


_EMPTY, _LOW_IN, _HIGH_IN, _LOW_INFINITE, _HIGH_INFINITE = 1, 2, 4, 8, 16
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Range(_Spans):
    """From one value to another."""

    catalog_kind: ClassVar[str] = "r"
    stem: ClassVar[str] = "range_"

    @classmethod
    def value_of(cls, spans: Iterable[Span]) -> bytes:
        return cls.value(next(iter(spans), Span.none()))

    @classmethod
    def value(cls, span: Span) -> bytes:
        """The value of a range."""
        raw, scales = cls.pack((span,))
        return raw + scales

    @classmethod
    def spans(cls, value: bytes) -> list[Span]:
        """Its ranges that are not empty: one, or none."""
        return cls.unpack(value)[0]

    @classmethod
    def one(cls, value: bytes) -> Span:
        """The range of a value."""
        return next(iter(cls.spans(value)), Span.none())

    def parse(self, text: str, zone: dt.tzinfo = dt.UTC) -> bytes:
        return self.value(self.span_of(span_of_text(text, self._texts(zone))))

    def span_of(self, parts: tuple[Any, Any, bool, bool] | None) -> Span:
        """The range of what a text or a message says; None is empty."""
        return Span.none() if parts is None else self.span(*parts)

    def show(self, value: bytes, zone: dt.tzinfo = dt.UTC) -> str:
        return shown(self.one(value), self._texts(zone))

    def send(self, value: bytes) -> bytes:
        from noonmark.rows.pg.binary import encode  # door: it asks all types for their numbers

        span = self.one(value)
        if span.empty:
            return bytes([_EMPTY])
        flags = _LOW_IN * span.low_in + _HIGH_IN * span.high_in
        flags += _LOW_INFINITE * (span.low is None) + _HIGH_INFINITE * (span.high is None)
        parts = [encode(x, self.element) for x in (span.low, span.high) if x is not None]
        return bytes([flags]) + b"".join(_LENGTH.pack(len(raw)) + raw for raw in parts)

    def receive(self, raw: bytes) -> bytes:
        from noonmark.rows.pg.binary import decode  # door: it asks all types for their numbers

        flags, at = raw[0], 1
        edges: list[Any] = []
        for infinite in (_LOW_INFINITE, _HIGH_INFINITE):
            if flags & (infinite | _EMPTY):
                edges.append(None)
                continue
            (length,) = _LENGTH.unpack_from(raw, at)
            at += _LENGTH.size + length
            edges.append(decode(raw[at - length : at], self.element))
        if at != len(raw):
            raise ValueError("there is more data than the range has")
        if flags & _EMPTY:
            return self.value(Span.none())
        return self.value(
            self.span(edges[0], edges[1], bool(flags & _LOW_IN), bool(flags & _HIGH_IN))
        )


@dataclass(frozen=True, slots=True)
class Multirange(_Spans):
    """Ranges that lie apart, in order."""

    catalog_kind: ClassVar[str] = "m"
    stem: ClassVar[str] = "multirange_"

    @classmethod
    def value_of(cls, spans: Iterable[Span]) -> bytes:
        return cls.value(spans)

    @classmethod
    def value(cls, spans: Iterable[Span]) -> bytes:
        """The value of ranges in any order, which may touch each other."""
        raw, scales = cls.pack(Span.apart(spans))
        return raw + b"\0" + scales

    @classmethod
    def spans(cls, value: bytes) -> list[Span]:
        """Its ranges."""
        return cls.unpack(value)[0]

    def parse(self, text: str, zone: dt.tzinfo = dt.UTC) -> bytes:
        one, texts = self.of_range(), self._texts(zone)
        parts = [span_of_text(each, texts) for each in ranges_of(text)]
        return self.value(one.span_of(each) for each in parts)

    def show(self, value: bytes, zone: dt.tzinfo = dt.UTC) -> str:
        texts = self._texts(zone)
        return "{" + ",".join(shown(span, texts) for span in self.spans(value)) + "}"

    def send(self, value: bytes) -> bytes:
        one = self.of_range()
        parts = [one.send(one.value(span)) for span in self.spans(value)]
        body = b"".join(_LENGTH.pack(len(raw)) + raw for raw in parts)
        return _LENGTH.pack(len(parts)) + body

    def receive(self, raw: bytes) -> bytes:
        one, spans = self.of_range(), []
        (count,) = _LENGTH.unpack_from(raw)
        at = _LENGTH.size
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(raw, at)
            at += _LENGTH.size + length
            spans.append(one.one(one.receive(raw[at - length : at])))
        if at != len(raw):
            raise ValueError("there is more data than the multirange has")
        return self.value(spans)


def _pair(
    stem: str, element: t.SqlType, numbers: tuple[int, int, int, int], tag: int
) -> tuple[type[Range], type[Multirange]]:
    """The range and the multirange of one type, under the names that they have here."""

    def made(kind: Any, word: str, oid: int, array_oid: int, number: int) -> Any:
        name = f"{stem}{word}"
        body = {
            "__doc__": f"{name.lower()} of PostgreSQL.", "__slots__": (), "__module__": __name__,
            "spelling": name.lower(), "element": element, "oid": oid, "array_oid": array_oid,
            "tag": number, "one_form": not isinstance(element, t.Numeric),
        }  # fmt: skip
        return type(name, (kind,), body)

    one = made(Range, "Range", *numbers[:2], tag)
    several = made(Multirange, "Multirange", *numbers[2:], tag + 1)
    one.of_range = several.of_range = one
    one.of_several = several.of_several = several
    return one, several


Int4Range, Int4Multirange = _pair("Int4", t.Integer(), (3904, 3905, 4451, 6150), 161)
Int8Range, Int8Multirange = _pair("Int8", t.BigInt(), (3926, 3927, 4536, 6157), 163)
NumRange, NumMultirange = _pair("Num", t.Numeric(), (3906, 3907, 4532, 6151), 165)
DateRange, DateMultirange = _pair("Date", t.Date(), (3912, 3913, 4535, 6155), 167)
TsRange, TsMultirange = _pair("Ts", t.Timestamp(), (3908, 3909, 4533, 6152), 169)
TstzRange, TstzMultirange = _pair("Tstz", t.TimestampTz(), (3910, 3911, 4534, 6153), 171)
PAIRS: tuple[tuple[type[Range], type[Multirange]], ...] = (
    (Int4Range, Int4Multirange), (Int8Range, Int8Multirange), (NumRange, NumMultirange),
    (DateRange, DateMultirange), (TsRange, TsMultirange), (TstzRange, TstzMultirange),
)  # fmt: skip
TYPES = tuple(kind for pair in PAIRS for kind in pair)
