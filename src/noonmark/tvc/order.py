"""Orders: what it takes to be a time.

A time belongs to a partial order, written with Python's own ``<=`` (as ``frozenset`` does, so
``a <= b`` and ``b <= a`` may both be false). Three orders serve the whole system:

- ``int``: the timeline (milliseconds), and the offsets of a source that is one sequence;
- `Product`: several times at once, compared coordinate by coordinate;
- `Partitioned`: (interval of partitions, offset), for a source whose partitions progress each on
  its own and may be added later.

Laws, for all times of one order:

- (order) ``<=`` is reflexive, antisymmetric and transitive; ``minimum(t) <= t`` (times and offsets
  are never negative).
- (meet) ``x <= meet(a, b)`` iff ``x <= a`` and ``x <= b``. It always exists.
- (join) ``join(a, b) <= x`` iff ``a <= x`` and ``b <= x``; None iff no such x exists.
- (sort) ``a <= b`` implies ``sort_key(a) <= sort_key(b)``; equal keys are equal times.

Partitions that are not known yet. A *point* is one offset of one partition. The time (I, o) stands
for the points of partitions in I at o or later, and ``a <= b`` iff the points of b are among those
of a: iff I(b) lies inside I(a) and o(a) <= o(b). So the minimum, (every partition, 0), stands for
all that can ever come, and "partition 7 is complete below 3, nothing is known of any other" is the
antichain

    { ([-inf, 7), 0), ([7, 8), 3), ([8, +inf), 0) }

which `partition_frontier({7: 3})` builds. Two disjoint intervals share no point, so such times have
no join. A partition that is known and empty and one that is not known say the same, nothing is
complete there, and so they are written the same: as part of a gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, Protocol, Self, TypeVar, cast, final

from noonmark.errors import InvalidValue


class Time(Protocol):
    """An element of a partial order; hashable. `int`, `Product` and `Partitioned` are times."""

    def __le__(self, other: Self, /) -> bool:
        """Whether this time is at or before `other`."""

    def __hash__(self) -> int: ...


T = TypeVar("T", bound=Time)

Partition = int | str
"""The id of one partition: a number (Kafka) or a name (files). Numbers sort before names."""

Bound = tuple[int] | tuple[int, Partition]

_NUMBER, _NAME = 0, 1
_BEFORE_ALL: Bound = (-1,)
_AFTER_ALL: Bound = (2,)


def _bound(partition: Partition) -> Bound:
    return (_NAME if isinstance(partition, str) else _NUMBER, partition)


def successor(partition: Partition) -> Partition:
    r"""The least id after `partition`, so that half-open intervals express every gap.

    >>> successor(7), successor("a")
    (8, 'a\x00')
    """
    return partition + "\0" if isinstance(partition, str) else partition + 1


@final
@dataclass(frozen=True, slots=True)
class Interval:
    """The partitions p with ``lower <= p < upper``; None is unbounded. Never empty."""

    lower: Partition | None
    upper: Partition | None

    def __post_init__(self) -> None:
        if self.start() >= self.end():
            raise InvalidValue(
                f"no partition lies between {self.lower!r} and {self.upper!r}",
                lower=self.lower,
                upper=self.upper,
            )

    @classmethod
    def singleton(cls, partition: Partition) -> Interval:
        """Exactly one partition."""
        return cls(partition, successor(partition))

    def covers(self, other: Interval) -> bool:
        """Whether every partition of `other` is one of this interval."""
        return self.start() <= other.start() and other.end() <= self.end()

    def partition(self) -> Partition | None:
        """The one partition of a singleton, else None."""
        if self.lower is not None and self.upper == successor(self.lower):
            return self.lower
        return None

    def intersection(self, other: Interval) -> Interval | None:
        """The partitions in both; None when there are none."""
        lower = self if self.start() >= other.start() else other
        upper = self if self.end() <= other.end() else other
        if lower.start() >= upper.end():
            return None
        return Interval(lower.lower, upper.upper)

    def hull(self, other: Interval) -> Interval:
        """The least interval that covers both."""
        lower = self if self.start() <= other.start() else other
        upper = self if self.end() >= other.end() else other
        return Interval(lower.lower, upper.upper)

    def sort_key(self) -> tuple[Any, ...]:
        """A wider interval sorts before those inside it: it is the smaller one in the order."""
        return (self.start(), _Descending(self.end()))

    def start(self) -> Bound:
        """Where it begins, as a key that sorts all bounds of all intervals."""
        return _BEFORE_ALL if self.lower is None else _bound(self.lower)

    def end(self) -> Bound:
        """Where it ends, likewise."""
        return _AFTER_ALL if self.upper is None else _bound(self.upper)


EVERY_PARTITION = Interval(None, None)


@final
@dataclass(frozen=True, slots=True)
class Partitioned:
    """A time of a partitioned source: an interval of partitions and an offset."""

    interval: Interval
    offset: int

    def __post_init__(self) -> None:
        if self.offset < 0:
            raise InvalidValue(f"offset {self.offset} is negative", offset=self.offset)

    @classmethod
    def at(cls, partition: Partition, offset: int) -> Partitioned:
        """The time of the record at `offset` of one partition."""
        return cls(Interval.singleton(partition), offset)

    def __le__(self, other: Partitioned) -> bool:
        return self.offset <= other.offset and self.interval.covers(other.interval)

    def __lt__(self, other: Partitioned) -> bool:
        return self != other and self <= other


@final
@dataclass(frozen=True, slots=True, init=False)
class Product:
    """Several times at once: ``a <= b`` iff every coordinate of a is ``<=`` that of b."""

    coordinates: tuple[Any, ...]

    def __init__(self, *coordinates: Time) -> None:
        object.__setattr__(self, "coordinates", coordinates)

    def __le__(self, other: Product) -> bool:
        return all(
            mine <= theirs for mine, theirs in zip(self.coordinates, other.coordinates, strict=True)
        )

    def __lt__(self, other: Product) -> bool:
        return self != other and self <= other

    def __repr__(self) -> str:
        return f"Product{self.coordinates!r}"


MINIMUM_PARTITIONED = Partitioned(EVERY_PARTITION, 0)


def minimum(like: T) -> T:
    """The least time of the order that `like` belongs to: times and offsets start at 0."""
    match like:
        case int():
            return cast("T", 0)
        case Partitioned():
            return cast("T", MINIMUM_PARTITIONED)
        case Product(coordinates=coordinates):
            return cast("T", Product(*map(minimum, coordinates)))
    raise _not_a_time(like)


def join(a: T, b: T) -> T | None:
    """The least time at or after both; None when no time is."""
    if isinstance(a, int):
        return a if b <= a else b
    match a, b:
        case Partitioned(), Partitioned():
            common = a.interval.intersection(b.interval)
            if common is None:
                return None
            return cast("T", Partitioned(common, max(a.offset, b.offset)))
        case Product(), Product():
            pairs = zip(a.coordinates, b.coordinates, strict=True)
            joined: list[Any] = [join(x, y) for x, y in pairs]
            return None if None in joined else cast("T", Product(*joined))
    raise _not_a_time(a)


def meet(a: T, b: T) -> T:
    """The greatest time at or before both."""
    if isinstance(a, int):
        return b if b <= a else a
    match a, b:
        case Partitioned(), Partitioned():
            both = a.interval.hull(b.interval)
            return cast("T", Partitioned(both, min(a.offset, b.offset)))
        case Product(), Product():
            pairs = zip(a.coordinates, b.coordinates, strict=True)
            return cast("T", Product(*(meet(x, y) for x, y in pairs)))
    raise _not_a_time(a)


def sort_key(time: Time) -> Any:
    """A key that sorts the times of one order totally, and agrees with ``<=``."""
    match time:
        case int():
            return time
        case Partitioned(interval=interval, offset=offset):
            return (*interval.sort_key(), offset)
        case Product(coordinates=coordinates):
            return tuple(map(sort_key, coordinates))
    raise _not_a_time(time)


def partition_times(known: Mapping[Partition, int]) -> list[Partitioned]:
    """Every partition that is complete below some offset, and every gap between them at offset 0.

    Law: of these times exactly one is ``<=`` the point (p, o) when ``known.get(p, 0) <= o``, and
    none otherwise.
    """
    times = []
    lower: Partition | None = None
    for partition in sorted((p for p, offset in known.items() if offset), key=_bound):
        if lower is None or _bound(lower) < _bound(partition):
            times.append(Partitioned(Interval(lower, partition), 0))
        times.append(Partitioned.at(partition, known[partition]))
        lower = successor(partition)
    return [*times, Partitioned(Interval(lower, None), 0)]


def disjoint_starts(times: Sequence[Time]) -> list[Bound] | None:
    """The starts of sorted `Partitioned` times whose intervals do not overlap, else None.

    Of such times at most one is ``<=`` a given time: the last that does not start after it.
    """
    starts: list[Bound] = []
    end = _BEFORE_ALL
    for time in times:
        if not isinstance(time, Partitioned) or time.interval.start() < end:
            return None
        starts.append(time.interval.start())
        end = time.interval.end()
    return starts


@total_ordering
class _Descending:
    """Wraps a bound so that it sorts the other way round."""

    __slots__ = ("bound",)

    def __init__(self, bound: Bound) -> None:
        self.bound = bound

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.bound == other.bound

    def __lt__(self, other: _Descending) -> bool:
        return other.bound < self.bound

    def __hash__(self) -> int:
        return hash(self.bound)


def _not_a_time(value: object) -> InvalidValue:
    return InvalidValue(f"{value!r} belongs to none of the orders: int, Product, Partitioned")
