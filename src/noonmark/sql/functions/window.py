"""Window functions: one value for a row from where it stands in its partition.

The meaning takes a `WindowRow`: the row's position in the sorted partition, its peers (the rows
equal by ORDER BY) and its frame. Aggregates over a frame are not here: they are `aggregate`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from noonmark.rows import types as t
from noonmark.sql.functions.errors import InvalidNth, InvalidNtile
from noonmark.sql.functions.function import Any_, Function


@dataclass(frozen=True, slots=True)
class WindowRow:
    """Where a row stands.

    Positions count from 0. ``argument(k, i)`` is the value of argument k at the row at position i.
    """

    position: int
    size: int
    peers_start: int  # position of the first row equal by ORDER BY
    peers_end: int  # one past the last
    group: int  # how many groups of peers stand before this one
    frame: Sequence[int]  # the positions of the rows in the frame, in order
    argument: Callable[[int, int], Any]

    def own(self, k: int) -> Any:
        """Argument k at this row."""
        return self.argument(k, self.position)


def _percent_rank(place: WindowRow) -> float:
    return 0.0 if place.size <= 1 else place.peers_start / (place.size - 1)


def _ntile(place: WindowRow) -> int | None:
    # The number of parts is asked once for a partition: of the first row that says one, which is
    # the first row of the first part.
    said = (at for at in range(place.position + 1) if place.argument(0, at) is not None)
    first = next(said, None)
    if first is None:
        return None
    buckets, position = place.argument(0, first), place.position - first
    if buckets <= 0:
        raise InvalidNtile("argument of ntile must be greater than zero")
    size, larger = divmod(place.size, buckets)
    edge = larger * (size + 1)
    if position < edge:
        return int(position // (size + 1)) + 1
    return int(larger + (position - edge) // size) + 1


class Neighbour:
    """lag and lead: the argument at the row so far away, else the default."""

    def __init__(self, sign: int) -> None:
        self.sign = sign

    def _at(self, place: WindowRow, distance: int | None, default: Any) -> Any:
        if distance is None:
            return None
        position = place.position + self.sign * distance
        return place.argument(0, position) if 0 <= position < place.size else default

    def one(self, place: WindowRow) -> Any:
        """lag(x)."""
        return self._at(place, 1, None)

    def two(self, place: WindowRow) -> Any:
        """lag(x, distance)."""
        return self._at(place, place.own(1), None)

    def three(self, place: WindowRow) -> Any:
        """lag(x, distance, default)."""
        return self._at(place, place.own(1), place.own(2))


def _nth(place: WindowRow, at: int) -> Any:
    inside = -len(place.frame) <= at < len(place.frame)
    return place.argument(0, place.frame[at]) if inside else None


def _nth_value(place: WindowRow) -> Any:
    at = place.own(1)
    if at is None:
        return None
    if at <= 0:
        raise InvalidNth("argument of nth_value must be greater than zero")
    return _nth(place, at - 1)


def _same_type(types: tuple[t.SqlType, ...]) -> t.SqlType:
    return types[0]


def _neighbours(name: str, sign: int) -> list[Function]:
    way, x = Neighbour(sign), Any_.ELEMENT
    return [
        Function(name, (x,), _same_type, way.one, gives_null=True),
        Function(name, (x, t.Integer), _same_type, way.two, gives_null=True),
        Function(name, (x, t.Integer, x), _same_type, way.three, gives_null=True),
    ]


TABLE = (
    Function("row_number", (), t.BigInt(), lambda place: place.position + 1),
    Function("rank", (), t.BigInt(), lambda place: place.peers_start + 1),
    Function("dense_rank", (), t.BigInt(), lambda place: place.group + 1),
    Function("percent_rank", (), t.Double(), _percent_rank),
    Function("cume_dist", (), t.Double(), lambda place: place.peers_end / place.size),
    Function("ntile", (t.Integer,), t.Integer(), _ntile, gives_null=True),
    *_neighbours("lag", -1),
    *_neighbours("lead", 1),
    Function("first_value", (Any_.ELEMENT,), _same_type, lambda p: _nth(p, 0), gives_null=True),
    Function("last_value", (Any_.ELEMENT,), _same_type, lambda p: _nth(p, -1), gives_null=True),
    Function("nth_value", (Any_.ELEMENT, t.Integer), _same_type, _nth_value, gives_null=True),
)
