"""Frontiers.

A frontier F is an antichain of times. It stands for the set {t : some f in F, f <= t}: the times
not yet complete. F is *at or beyond* G when F's set is inside G's. The empty frontier stands for
the empty set: complete for ever.

Law (canonical): frontiers are equal iff their sets are, whatever they were built from.
Law (meet): t is in meet(F, G) iff t is in F or t is in G.
Law (join): t is in join(F, G) iff t is in F and t is in G.
Law (order): "at or beyond" is a partial order, `EMPTY` is at or beyond all, meet and join are its
greatest lower and least upper bounds.
Law (less_than): F.less_than(t) iff some f in F has f <= t and f != t.
Law (advance): for every s in F, ``t <= s`` iff ``F.advance(t) <= s``; times that no s in F can
tell apart advance to the same time; a time that no s in F can see advances to None.

Why the join is exact: {t : a <= t and b <= t} is {t : join(a, b) <= t} when a join exists and
empty when none does (law of `order.join`), so pairwise joins make up the intersection.
Why advance is: let t' be the meet of all join(t, f). Each join is >= t, so t <= t'; and if t <= s
with f <= s, then t' <= join(t, f) <= s. Two times that the same s see have the same joins with F.

In a total order a frontier has at most one element, and the hot paths below are for that case. A
source may have thousands of partitions: where their intervals do not overlap, which is what
`partition_frontier` makes, a binary search finds the one element that can be at or before a time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Generic, cast, final

from noonmark.errors import UsageError
from noonmark.tvc import order
from noonmark.tvc.order import Bound, Partition, Partitioned, T

_MANY = 8
"""From so many elements on, a binary search pays."""


def _minimal(elements: tuple[T, ...]) -> tuple[T, ...]:
    """The elements that no other one precedes, once each, sorted."""
    if len(elements) < 2:
        return elements
    candidates = sorted(elements, key=order.sort_key)
    if order.disjoint_starts(candidates) is not None:
        return tuple(candidates)
    kept: list[T] = []
    # In this order nothing precedes an earlier element, so one pass finds the minimal ones.
    for element in candidates:
        if not any(smaller <= element for smaller in kept):
            kept.append(element)
    return tuple(kept)


@final
class Antichain(Generic[T]):
    """An immutable, hashable frontier: its minimal times, in canonical order."""

    __slots__ = ("_starts", "elements")

    elements: tuple[T, ...]
    # Only there for `_MANY` elements or more: see `order.disjoint_starts`.
    _starts: list[Bound] | None

    def __init__(self, elements: Iterable[T] = ()) -> None:
        kept = _minimal(tuple(elements))
        _set_elements(self, kept)
        if len(kept) >= _MANY:
            _set_starts(self, order.disjoint_starts(kept))

    @classmethod
    def of(cls, time: T) -> Antichain[T]:
        """The frontier of everything at or after one time."""
        made = cls.__new__(cls)
        _set_elements(made, (time,))
        return made

    def less_equal(self, time: T) -> bool:
        """Whether `time` is in the set: not yet complete."""
        candidates = self.elements
        if len(candidates) >= _MANY:
            candidates = self._near(time)
        for element in candidates:  # noqa: SIM110 - any() costs twice as much on hot paths
            if element <= time:
                return True
        return False

    def less_than(self, time: T) -> bool:
        """Whether `time` is in the set and not one of its minimal elements."""
        return self.less_equal(time) and time not in self.elements

    def at_or_beyond(self, other: Antichain[T]) -> bool:
        """Whether this set lies inside that of `other`: this frontier has progressed as far."""
        for element in self.elements:  # noqa: SIM110 - as above
            if not other.less_equal(element):
                return False
        return True

    def meet(self, other: Antichain[T]) -> Antichain[T]:
        """What is incomplete in one or the other."""
        if other.at_or_beyond(self):
            return self
        if self.at_or_beyond(other):
            return other
        return Antichain(self.elements + other.elements)

    def join(self, other: Antichain[T]) -> Antichain[T]:
        """What is incomplete in both."""
        if other.at_or_beyond(self):
            return other
        if self.at_or_beyond(other):
            return self
        joins = (order.join(a, b) for a in self.elements for b in other.elements)
        return Antichain(joined for joined in joins if joined is not None)

    def is_empty(self) -> bool:
        """Whether everything is complete, for ever."""
        return not self.elements

    def only(self) -> T | None:
        """The one time of a frontier in a total order; None when it is empty."""
        if len(self.elements) > 1:
            raise UsageError(
                "a frontier of several times has no single one",
                detail=f"It is {self!r}.",
                elements=self.elements,
            )
        return self.elements[0] if self.elements else None

    def advance(self, time: T) -> T | None:
        """The one time that stands for `time` in the eyes of all times in the set, or None."""
        if self.less_equal(time):
            return time
        if len(self.elements) == 1:
            return order.join(time, self.elements[0])
        joins = [order.join(time, element) for element in self.elements]
        visible = [joined for joined in joins if joined is not None]
        return reduce(order.meet, visible) if visible else None

    def _near(self, time: T) -> tuple[T, ...]:
        """The elements that can be at or before `time`."""
        if self._starts is None or not isinstance(time, Partitioned):
            return self.elements
        index = bisect_right(self._starts, time.interval.start())
        return self.elements[max(0, index - 1) : index]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a frontier is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a frontier is immutable: cannot delete {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Antichain):
            return NotImplemented
        return bool(self.elements == other.elements)

    def __hash__(self) -> int:
        return hash(self.elements)

    def __repr__(self) -> str:
        return "{" + ", ".join(map(repr, self.elements)) + "}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Antichain, (self.elements,))


# The slots' own setters: the one way past `__setattr__`, for construction only.
_set_elements = cast("Any", Antichain).elements.__set__
_set_starts = cast("Any", Antichain)._starts.__set__


EMPTY: Antichain[Any] = Antichain(())
"""Complete for ever: the frontier at or beyond all frontiers, of every order."""


def frontier_le(a: Antichain[T], b: Antichain[T]) -> bool:
    """``a <= b`` among frontiers: b is at or beyond a."""
    return b.at_or_beyond(a)


def partition_frontier(known: Mapping[Partition, int]) -> Antichain[Partitioned]:
    """The frontier of a source whose partitions may still grow in number.

    Law: the point (p, o) is in it iff ``known.get(p, 0) <= o``.
    Law: ``partition_frontier(b)`` is at or beyond ``partition_frontier(a)`` iff no partition has a
    smaller offset in b than in a. Equal points, equal frontiers.
    """
    return Antichain(order.partition_times(known))


def known_partitions(frontier: Antichain[Partitioned]) -> dict[Partition, int]:
    """The partitions that are complete below some offset, each with that offset.

    Law: it undoes `partition_frontier`, except that partitions at offset 0 are gone.
    """
    offsets: dict[Partition, int] = {}
    for time in frontier.elements:
        partition = time.interval.partition()
        if partition is not None and time.offset:
            offsets[partition] = time.offset
    return offsets
