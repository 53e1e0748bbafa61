"""Partitions of a Kafka source: incarnations of its topic never meet."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from noonmark.source.contract import START, shown_partition, shown_partitions
from noonmark.source.impl.kafka import Kafka
from noonmark.source.impl.kafka.partitions import WHOLE, at, fate, of
from noonmark.tvc import partition_frontier

numbers = st.integers(-(2**31) - 1, 2**31 - 1)
incarnations = st.integers(0, 2**20)


@given(numbers, incarnations, incarnations)
def test_a_number_is_found_in_its_incarnation_only(number: int, one: int, other: int) -> None:
    partition = at(number, one)
    assert of(partition, other) == (number if one == other else None)
    assert shown_partition(partition) == number
    assert shown_partitions(pa.array([partition], pa.int64())).to_pylist() == [number]
    assert of(number, 0) == number, "as it is stored since the first version"


@given(st.integers(0, 2**31 - 1), incarnations)
def test_fates_are_no_partitions(number: int, incarnation: int) -> None:
    assert fate(fate(number)) == number
    found = {at(each, incarnation) for each in (number, fate(number), WHOLE)}
    assert len(found) == 3


@given(st.dictionaries(st.integers(-5, 5), st.integers(1, 2), min_size=1), incarnations)
def test_a_source_sees_nothing_of_other_incarnations(bound: dict[int, int], later: int) -> None:
    first = Kafka((), "t", "id", "g")
    assert first == Kafka.from_plain((), {**_stored_before(first)})
    renewed = Kafka.from_plain((), {**first.to_plain(), "incarnation": later + 1})
    frontier = partition_frontier({at(number, 0): offset for number, offset in bound.items()})
    assert renewed.plan(START, frontier) == []
    assert renewed.ended(frontier) == {}
    assert not any(renewed.is_current(number) for number in bound)
    assert len(first.plan(START, frontier)) == len(bound)
    assert bool(first.ended(frontier)) == any(number < 0 for number in bound)


def _stored_before(source: Kafka) -> dict[str, object]:
    """As a location has it that was made before there were incarnations."""
    return {name: each for name, each in source.to_plain().items() if name != "incarnation"}
