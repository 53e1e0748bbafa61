"""The laws of ``noonmark.tvc.order``, over every time of every order."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.errors import InvalidValue
from noonmark.tvc import (
    EVERY_PARTITION,
    Interval,
    Partition,
    Partitioned,
    Product,
    join,
    meet,
    minimum,
    sort_key,
)
from noonmark.tvc.order import partition_times, successor

PARTITIONS = st.integers(-3, 6) | st.text("ab\0", max_size=2)


def test_order_law(universe: list[Any]) -> None:
    for a, b in product(universe, universe):
        assert (a <= b <= a) == (a == b)
        assert (a < b) == (a <= b and a != b)
        assert minimum(a) <= b
        if a <= b:
            assert all(a <= c for c in universe if b <= c)


def test_meet_law(universe: list[Any]) -> None:
    for a, b in product(universe, universe):
        lower = meet(a, b)
        assert lower in universe
        assert all((x <= lower) == (x <= a and x <= b) for x in universe)


def test_join_law(universe: list[Any]) -> None:
    for a, b in product(universe, universe):
        upper = join(a, b)
        bounds = [x for x in universe if a <= x and b <= x]
        if upper is None:
            assert not bounds
        else:
            assert upper in universe
            assert bounds == [x for x in universe if upper <= x]


def test_sort_law(universe: list[Any]) -> None:
    for a, b in product(universe, universe):
        assert (sort_key(a) == sort_key(b)) == (a == b)
        assert sort_key(a) <= sort_key(b) or not a <= b


def test_times_hash_and_pickle(universe: list[Any]) -> None:
    assert len(set(universe)) == len(universe)
    assert pickle.loads(pickle.dumps(universe)) == universe


@given(PARTITIONS, PARTITIONS)
def test_nothing_lies_between_a_partition_and_its_successor(a: Partition, b: Partition) -> None:
    one = Interval.singleton(a)
    assert one.partition() == a
    assert one.covers(Interval.singleton(b)) == (a == b)
    assert Interval(None, a).covers(Interval.singleton(b)) != Interval(a, None).covers(
        Interval.singleton(b)
    )
    assert Interval(a, None).intersection(Interval(None, successor(a))) == one
    assert EVERY_PARTITION.covers(one)
    assert EVERY_PARTITION.partition() is None


@given(st.dictionaries(PARTITIONS, st.integers(0, 4)), PARTITIONS, st.integers(0, 5))
def test_partition_times_split_the_points(
    known: dict[Partition, int], partition: Partition, offset: int
) -> None:
    times = partition_times(known)
    point = Partitioned.at(partition, offset)
    expected = 1 if known.get(partition, 0) <= offset else 0
    assert sum(time <= point for time in times) == expected


def test_numbers_come_before_names() -> None:
    assert Interval(5, "a").covers(Interval.singleton(6))
    assert not Interval(5, "a").covers(Interval.singleton("a"))


@pytest.mark.parametrize(("lower", "upper"), [(3, 3), (4, 3), ("a", "a"), ("b", "a"), ("a", 1)])
def test_an_interval_is_never_empty(lower: Partition, upper: Partition) -> None:
    with pytest.raises(InvalidValue, match="no partition lies between"):
        Interval(lower, upper)


def test_an_offset_is_never_negative() -> None:
    with pytest.raises(InvalidValue, match="negative"):
        Partitioned.at(0, -1)


@pytest.mark.parametrize("call", [minimum, sort_key, lambda x: join(x, x), lambda x: meet(x, x)])
def test_what_has_no_order_is_refused(call: Any) -> None:
    with pytest.raises(InvalidValue, match="none of the orders"):
        call("2pm")


def test_products_of_different_shape_do_not_compare() -> None:
    with pytest.raises(ValueError, match="shorter"):
        assert Product(1, 2) <= Product(1)
