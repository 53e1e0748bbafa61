"""Points, lines, segments, boxes, paths, polygons and circles of a plane.

A value is PostgreSQL's binary form: coordinates as 64-bit floats, a path with whether it is closed
and how many points it has. None of them has an order or an equality that DISTINCT or a key could
go by: ``=`` of boxes and circles compares areas, and that of points is ``~=``
(`sql.functions.geometry`).
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from noonmark.errors import InvalidValue
from noonmark.rows.pg.floats import format_double, parse_double
from noonmark.rows.types import Coded

Pair = tuple[float, float]
#: Points are as near to each other as equal ones within this.
EPSILON = 1e-6
_NUMBER = re.compile(
    r"\s*([+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan))\s*",
    re.ASCII | re.IGNORECASE,
)
_BLANKS = " \t\n\r\v\f"
_COUNT = struct.Struct(">i")


class _Text:
    """A text that is read from the left."""

    def __init__(self, kind: Coded, text: str) -> None:
        self.kind, self.text, self.at = kind, text, 0

    def wrong(self) -> InvalidValue:
        """It is no value."""
        return self.kind.invalid(self.text)

    def skip(self) -> None:
        """Go behind blanks."""
        while self.text[self.at : self.at + 1] in _BLANKS and self.at < len(self.text):
            self.at += 1

    def has(self, sign: str, ahead: int = 0) -> bool:
        """Whether a sign is next."""
        return self.text[self.at + ahead : self.at + ahead + 1] == sign

    def take(self, sign: str) -> bool:
        """Go behind a sign, if it is next."""
        if not self.has(sign):
            return False
        self.at += 1
        return True

    def need(self, sign: str) -> None:
        """Go behind a sign that must be next."""
        if not self.take(sign):
            raise self.wrong()

    def number(self) -> float:
        """A number, and blanks around it."""
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            raise self.wrong()
        self.at = match.end()
        return parse_double(match[1])

    def pair(self) -> Pair:
        """``(x,y)``, or without brackets."""
        self.skip()
        bracket = self.take("(")
        x = self.number()
        self.need(",")
        y = self.number()
        if bracket:
            self.need(")")
            self.skip()
        return x, y

    def is_last_bracket(self) -> bool:
        """Whether the bracket that is next is the last that opens."""
        return self.text.rfind("(") == self.at

    def points(self, count: int, *, may_open: bool) -> tuple[list[Pair], bool]:
        """So many points, and whether they stand in square brackets."""
        self.skip()
        depth, is_open = 0, self.has("[")
        if is_open:
            if not may_open:
                raise self.wrong()
            depth, self.at = 1, self.at + 1
        elif self.has("("):
            behind = self.at + 1
            while self.text[behind : behind + 1] in _BLANKS and behind < len(self.text):
                behind += 1
            if self.text[behind : behind + 1] == "(" or self.is_last_bracket():
                depth, self.at = 1, behind
        found = []
        for _ in range(count):
            found.append(self.pair())
            self.take(",")
        if depth:
            if not self.take(")") and not (is_open and self.take("]")):
                raise self.wrong()
            self.skip()
        return found, is_open

    def end(self) -> None:
        """There is nothing more."""
        if self.at != len(self.text):
            raise self.wrong()

    def count(self) -> int:
        """How many points there are, by their commas."""
        commas = self.text.count(",")
        if commas % 2 == 0:
            raise self.wrong()
        return (commas + 1) // 2


def _shown(points: Iterable[Pair]) -> str:
    return ",".join(f"({format_double(x)},{format_double(y)})" for x, y in points)


@dataclass(frozen=True, slots=True)
class Shape(Coded):
    """What all have in common: a value as floats, and what to do with it."""

    category: ClassVar[str] = "G"
    equality: ClassVar[bool] = False
    ordered: ClassVar[bool] = False
    count: ClassVar[int] = 0

    @classmethod
    def floats(cls, value: bytes) -> tuple[float, ...]:
        """The numbers of a value of one length."""
        return struct.unpack(f">{cls.count}d", value)

    @classmethod
    def of_floats(cls, *numbers: float) -> bytes:
        """The value of these numbers."""
        return struct.pack(f">{cls.count}d", *numbers)

    def send(self, value: bytes) -> bytes:
        return value

    def receive(self, raw: bytes) -> bytes:
        if len(raw) != 8 * self.count:
            raise ValueError(f"{8 * self.count} bytes are expected")
        return raw


@dataclass(frozen=True, slots=True)
class Point(Shape):
    """A place."""

    spelling: ClassVar[str] = "point"
    oid: ClassVar[int] = 600
    array_oid: ClassVar[int] = 1017
    size: ClassVar[int] = 16
    tag: ClassVar[int] = 176
    stem: ClassVar[str] = "point_"
    count: ClassVar[int] = 2

    def parse(self, text: str, _: dt.tzinfo = dt.UTC) -> bytes:
        reader = _Text(self, text)
        made = self.of_floats(*reader.pair())
        reader.end()
        return made

    def show(self, value: bytes, _: dt.tzinfo = dt.UTC) -> str:
        x, y = self.floats(value)
        return _shown([(x, y)])


@dataclass(frozen=True, slots=True)
class Lseg(Shape):
    """A segment between two places."""

    spelling: ClassVar[str] = "lseg"
    oid: ClassVar[int] = 601
    array_oid: ClassVar[int] = 1018
    size: ClassVar[int] = 32
    tag: ClassVar[int] = 177
    stem: ClassVar[str] = "lseg_"
    count: ClassVar[int] = 4

    def parse(self, text: str, _: dt.tzinfo = dt.UTC) -> bytes:
        reader = _Text(self, text)
        (a, b), _is_open = reader.points(2, may_open=True)
        reader.end()
        return self.of_floats(*a, *b)

    def show(self, value: bytes, _: dt.tzinfo = dt.UTC) -> str:
        ax, ay, bx, by = self.floats(value)
        return f"[{_shown([(ax, ay), (bx, by)])}]"


@dataclass(frozen=True, slots=True)
class Box(Shape):
    """A rectangle, as its upper right and its lower left corner."""

    spelling: ClassVar[str] = "box"
    oid: ClassVar[int] = 603
    array_oid: ClassVar[int] = 1020
    size: ClassVar[int] = 32
    tag: ClassVar[int] = 178
    stem: ClassVar[str] = "box_"
    delimiter: ClassVar[str] = ";"
    count: ClassVar[int] = 4

    @classmethod
    def of_corners(cls, a: Pair, b: Pair) -> bytes:
        """The box of two opposite corners; of equal coordinates (0 and -0), the first is high."""
        high = tuple(y if is_above(y, x) else x for x, y in zip(a, b, strict=True))
        low = tuple(x if is_above(y, x) else y for x, y in zip(a, b, strict=True))
        return cls.of_floats(*high, *low)

    def parse(self, text: str, _: dt.tzinfo = dt.UTC) -> bytes:
        reader = _Text(self, text)
        (a, b), _is_open = reader.points(2, may_open=False)
        reader.end()
        return self.of_corners(a, b)

    def show(self, value: bytes, _: dt.tzinfo = dt.UTC) -> str:
        hx, hy, lx, ly = self.floats(value)
        return _shown([(hx, hy), (lx, ly)])

    def receive(self, raw: bytes) -> bytes:
        hx, hy, lx, ly = self.floats(Shape.receive(self, raw))
        return self.of_corners((hx, hy), (lx, ly))


def is_above(a: float, b: float) -> bool:
    """Whether a number is greater than another one: NaN is above all."""
    return (a != a and b == b) or a > b  # noqa: PLR0124 - NaN


@dataclass(frozen=True, slots=True)
class Line(Shape):
    """All places with Ax + By + C = 0."""

    spelling: ClassVar[str] = "line"
    oid: ClassVar[int] = 628
    array_oid: ClassVar[int] = 629
    size: ClassVar[int] = 24
    tag: ClassVar[int] = 179
    stem: ClassVar[str] = "line_"
    count: ClassVar[int] = 3

    def parse(self, text: str, _: dt.tzinfo = dt.UTC) -> bytes:
        reader = _Text(self, text)
        reader.skip()
        if not reader.has("{"):
            (a, b), _is_open = reader.points(2, may_open=True)
            reader.end()
            return self.through(a, b)
        reader.take("{")
        numbers = [reader.number()]
        for _each in range(2):
            reader.need(",")
            numbers.append(reader.number())
        reader.need("}")
        reader.skip()
        reader.end()
        if abs(numbers[0]) <= EPSILON and abs(numbers[1]) <= EPSILON:
            raise InvalidValue("invalid line specification: A and B cannot both be zero")
        return self.of_floats(*numbers)

    @classmethod
    def through(cls, a: Pair, b: Pair) -> bytes:
        """The line through two places."""
        if all(x == y or abs(x - y) <= EPSILON for x, y in zip(a, b, strict=True)):
            raise InvalidValue("invalid line specification: must be two distinct points")
        return cls.of_floats(*sloped(a, slope(a, b)))

    def show(self, value: bytes, _: dt.tzinfo = dt.UTC) -> str:
        return f"{{{','.join(map(format_double, self.floats(value)))}}}"

    def receive(self, raw: bytes) -> bytes:
        a, b, _c = self.floats(Shape.receive(self, raw))
        if abs(a) <= EPSILON and abs(b) <= EPSILON:
            raise ValueError("invalid line specification: A and B cannot both be zero")
        return raw


def slope(a: Pair, b: Pair) -> float:
    """How steep the way between two places is; infinite straight up."""
    if a[0] == b[0] or abs(a[0] - b[0]) <= EPSILON:
        return float("inf")
    if a[1] == b[1] or abs(a[1] - b[1]) <= EPSILON:
        return 0.0
    return (a[1] - b[1]) / (a[0] - b[0])


def sloped(at: Pair, steep: float) -> tuple[float, float, float]:
    """The numbers of the line through a place."""
    if steep in (float("inf"), float("-inf")):
        return -1.0, 0.0, at[0]
    if steep == 0:
        return 0.0, -1.0, at[1]
    return steep, -1.0, (at[1] - steep * at[0]) + 0.0


@dataclass(frozen=True, slots=True)
class Polygon(Shape):
    """A closed way with what is inside of it."""

    spelling: ClassVar[str] = "polygon"
    oid: ClassVar[int] = 604
    array_oid: ClassVar[int] = 1027
    tag: ClassVar[int] = 180
    stem: ClassVar[str] = "poly_"

    @staticmethod
    def points(value: bytes) -> tuple[Pair, ...]:
        """The places of a value."""
        (count,) = _COUNT.unpack_from(value)
        numbers = struct.unpack_from(f">{2 * count}d", value, _COUNT.size)
        return tuple(zip(numbers[::2], numbers[1::2], strict=True))

    @staticmethod
    def of_points(points: Sequence[Pair]) -> bytes:
        """The value of these places."""
        flat = [each for pair in points for each in pair]
        return _COUNT.pack(len(points)) + struct.pack(f">{len(flat)}d", *flat)

    def parse(self, text: str, _: dt.tzinfo = dt.UTC) -> bytes:
        reader = _Text(self, text)
        found, _is_open = reader.points(reader.count(), may_open=False)
        reader.end()
        return self.of_points(found)

    def show(self, value: bytes, _: dt.tzinfo = dt.UTC) -> str:
        return f"({_shown(self.points(value))})"

    def receive(self, raw: bytes) -> bytes:
        (count,) = _COUNT.unpack_from(raw)
        if count <= 0 or len(raw) != _COUNT.size + 16 * count:
            raise ValueError('invalid number of points in external "polygon" value')
        return raw


@dataclass(frozen=True, slots=True)
class Path(Shape):
    """A way along places, open or closed."""

    spelling: ClassVar[str] = "path"
    oid: ClassVar[int] = 602
    array_oid: ClassVar[int] = 1019
    tag: ClassVar[int] = 181
    stem: ClassVar[str] = "path_"

    def parse(self, text: str, _: dt.tzinfo = dt.UTC) -> bytes:
        reader = _Text(self, text)
        count = reader.count()
        reader.skip()
        single = reader.has("(") and reader.is_last_bracket()
        if single:
            reader.take("(")
        found, is_open = reader.points(count, may_open=True)
        if single:
            reader.need(")")
            reader.skip()
        reader.end()
        return self.of_way(found, closed=not is_open)

    @staticmethod
    def way(value: bytes) -> tuple[tuple[Pair, ...], bool]:
        """The places of a value, and whether it is closed."""
        return Polygon.points(value[1:]), value[0] == 1

    @staticmethod
    def of_way(points: Sequence[Pair], *, closed: bool) -> bytes:
        """The value of these places."""
        return bytes([closed]) + Polygon.of_points(points)

    def show(self, value: bytes, _: dt.tzinfo = dt.UTC) -> str:
        points, closed = self.way(value)
        return f"({_shown(points)})" if closed else f"[{_shown(points)}]"

    def receive(self, raw: bytes) -> bytes:
        (count,) = _COUNT.unpack_from(raw, 1)
        if count <= 0 or len(raw) != 1 + _COUNT.size + 16 * count:
            raise ValueError('invalid number of points in external "path" value')
        return bytes([raw[0] != 0]) + raw[1:]


@dataclass(frozen=True, slots=True)
class Circle(Shape):
    """A centre and a radius."""

    spelling: ClassVar[str] = "circle"
    oid: ClassVar[int] = 718
    array_oid: ClassVar[int] = 719
    size: ClassVar[int] = 24
    tag: ClassVar[int] = 182
    stem: ClassVar[str] = "circle_"
    count: ClassVar[int] = 3

    def parse(self, text: str, _: dt.tzinfo = dt.UTC) -> bytes:
        reader = _Text(self, text)
        reader.skip()
        angled = depth = reader.take("<")
        if not angled and reader.has("("):
            behind = reader.at + 1
            while text[behind : behind + 1] in _BLANKS and behind < len(text):
                behind += 1
            if text[behind : behind + 1] == "(":
                depth, reader.at = True, behind
        centre = reader.pair()
        reader.take(",")
        radius = reader.number()
        if radius < 0:
            raise reader.wrong()
        if depth:
            if not reader.take(")") and not reader.take(">"):
                raise reader.wrong()
            reader.skip()
        reader.end()
        return self.of_floats(*centre, radius)

    def show(self, value: bytes, _: dt.tzinfo = dt.UTC) -> str:
        x, y, radius = self.floats(value)
        return f"<{_shown([(x, y)])},{format_double(radius)}>"

    def receive(self, raw: bytes) -> bytes:
        if self.floats(Shape.receive(self, raw))[2] < 0:
            raise ValueError('invalid radius in external "circle" value')
        return raw


Point.assignable = (Box,)
Box.assignable = (Polygon,)
Path.assignable = (Polygon,)
Polygon.assignable = (Path,)
TYPES = (Point, Lseg, Box, Line, Polygon, Path, Circle)
