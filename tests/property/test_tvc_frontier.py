"""The laws of ``noonmark.tvc.frontier``: a frontier is the set of times that it stands for."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.errors import UsageError
from noonmark.tvc import (
    EMPTY,
    Antichain,
    Interval,
    Partition,
    Partitioned,
    frontier_le,
    known_partitions,
    partition_frontier,
)

KNOWN = st.dictionaries(st.integers(0, 4) | st.sampled_from(["a", "b"]), st.integers(0, 3))


def members(frontier: Antichain[Any], universe: list[Any]) -> set[Any]:
    return {t for t in universe if any(f <= t for f in frontier.elements)}


def times(universe: list[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(universe), max_size=12)


def frontiers(universe: list[Any]) -> st.SearchStrategy[Antichain[Any]]:
    return times(universe).map(Antichain)


@settings(max_examples=50)
@given(data=st.data())
def test_canonical_law(universe: list[Any], data: st.DataObject) -> None:
    some, others = data.draw(times(universe)), data.draw(times(universe))
    f, g = Antichain(some), Antichain(others)
    same = {t for t in universe if any(x <= t for x in some)} == members(g, universe)
    assert (f == g) == same
    assert (hash(f) == hash(g)) or not same
    assert Antichain(reversed(some)).elements == f.elements
    assert all(a == b or not a <= b for a in f.elements for b in f.elements)


@settings(max_examples=50)
@given(data=st.data())
def test_membership(universe: list[Any], data: st.DataObject) -> None:
    f = data.draw(frontiers(universe))
    for t in universe:
        assert f.less_equal(t) == (t in members(f, universe))
        assert f.less_than(t) == any(x <= t and x != t for x in f.elements)


@settings(max_examples=50)
@given(data=st.data())
def test_meet_and_join_laws(universe: list[Any], data: st.DataObject) -> None:
    f, g = data.draw(frontiers(universe)), data.draw(frontiers(universe))
    in_f, in_g = members(f, universe), members(g, universe)
    assert members(f.meet(g), universe) == in_f | in_g
    assert members(f.join(g), universe) == in_f & in_g
    assert f.meet(g) == g.meet(f)
    assert f.join(g) == g.join(f)


@settings(max_examples=50)
@given(data=st.data())
def test_order_law(universe: list[Any], data: st.DataObject) -> None:
    f, g, h = (data.draw(frontiers(universe)) for _ in range(3))
    assert f.at_or_beyond(g) == (members(f, universe) <= members(g, universe))
    assert frontier_le(g, f) == f.at_or_beyond(g)
    assert EMPTY.at_or_beyond(f)
    assert f.at_or_beyond(EMPTY) == f.is_empty()
    assert h.at_or_beyond(f.join(g)) == (h.at_or_beyond(f) and h.at_or_beyond(g))
    assert f.meet(g).at_or_beyond(h) == (f.at_or_beyond(h) and g.at_or_beyond(h))


@settings(max_examples=50)
@given(data=st.data())
def test_advance_law(universe: list[Any], data: st.DataObject) -> None:
    f = data.draw(frontiers(universe))
    t, u = data.draw(st.sampled_from(universe)), data.draw(st.sampled_from(universe))
    inside = members(f, universe)

    def seen_by(time: Any) -> set[Any]:
        return set() if time is None else {s for s in inside if time <= s}

    assert seen_by(f.advance(t)) == seen_by(t)
    assert (f.advance(t) is None) == (not seen_by(t))
    assert (f.advance(t) == f.advance(u)) == (seen_by(t) == seen_by(u))


@settings(max_examples=50)
@given(data=st.data())
def test_frontiers_pickle(universe: list[Any], data: st.DataObject) -> None:
    f = data.draw(frontiers(universe))
    assert pickle.loads(pickle.dumps(f)) == f


@given(KNOWN, KNOWN)
def test_partition_frontiers_compare_by_partition(
    a: dict[Partition, int], b: dict[Partition, int]
) -> None:
    everywhere = {*a, *b}
    no_regression = all(a.get(p, 0) <= b.get(p, 0) for p in everywhere)
    assert frontier_le(partition_frontier(a), partition_frontier(b)) == no_regression
    largest = {p: max(a.get(p, 0), b.get(p, 0)) for p in everywhere}
    assert partition_frontier(a).join(partition_frontier(b)) == partition_frontier(largest)
    assert known_partitions(partition_frontier(a)) == {p: o for p, o in a.items() if o}


@given(KNOWN, KNOWN, st.integers(0, 6) | st.sampled_from(["a", "c"]), st.integers(0, 4))
def test_partition_frontiers_hold_known_and_unknown_partitions(
    a: dict[Partition, int], b: dict[Partition, int], partition: Partition, offset: int
) -> None:
    point = Partitioned.at(partition, offset)
    f, g = partition_frontier(a), partition_frontier(b)
    assert f.less_equal(point) == (a.get(partition, 0) <= offset)
    smallest = min(a.get(partition, 0), b.get(partition, 0))
    assert f.meet(g).less_equal(point) == (smallest <= offset)


@given(
    st.dictionaries(st.integers(0, 40), st.integers(1, 3), min_size=8),
    st.lists(st.integers(0, 41), min_size=2, max_size=2, unique=True),
    st.integers(0, 4),
)
def test_many_partitions_are_searched_as_few_are_scanned(
    known: dict[Partition, int], bounds: list[int], offset: int
) -> None:
    frontier = partition_frontier(known)
    times = [
        Partitioned.at(bounds[0], offset),
        Partitioned(Interval(min(bounds), max(bounds)), offset),
        Partitioned(Interval(None, bounds[0]), offset),
        *frontier.elements,
    ]
    for time in times:
        assert frontier.less_equal(time) == any(f <= time for f in frontier.elements)
        assert frontier.less_than(time) == any(f < time for f in frontier.elements)


def test_only_in_a_total_order() -> None:
    assert Antichain([5, 3, 4]).only() == 3
    assert EMPTY.only() is None
    with pytest.raises(UsageError, match="several times"):
        partition_frontier({1: 2}).only()


def test_a_frontier_is_immutable() -> None:
    frontier = Antichain.of(3)
    with pytest.raises(AttributeError, match="immutable"):
        frontier.elements = (4,)  # type: ignore[misc]
    with pytest.raises(AttributeError, match="immutable"):
        del frontier.elements
    assert frontier == Antichain([3])
    assert frontier != {3}
    assert repr(frontier) == "{3}"
