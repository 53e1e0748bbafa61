"""`TimeTable` against `reclock_time`: every point of generated remaps, alone and in batches."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.errors import Unsupported
from noonmark.remap import Remap, begin, mint, reclock_time
from noonmark.remap.lookup import TimeTable
from noonmark.tvc import EMPTY, Antichain, Interval, Partition, Partitioned, partition_frontier

PARTITIONS: dict[str, list[Partition]] = {"number": [0, 1, 2, 7], "name": ["a", "b", "b/c"]}
OFFSETS_MAX = 12


@st.composite
def remaps(draw: st.DrawFn) -> tuple[list[Partition], Remap[Partitioned]]:
    partitions = PARTITIONS[draw(st.sampled_from(["number", "name"]))]
    offsets = dict.fromkeys(partitions, 0)
    start = {p: draw(st.integers(0, 3)) for p in partitions if draw(st.booleans())}
    offsets |= start
    now = draw(st.integers(0, 5))
    remap = begin(partition_frontier(start), now).remap
    for _ in range(draw(st.integers(0, 8))):
        now += draw(st.integers(1, 3))
        for p in draw(st.sets(st.sampled_from(partitions))):
            offsets[p] = min(OFFSETS_MAX, offsets[p] + draw(st.integers(0, 4)))
        remap = mint(remap, partition_frontier(offsets), now).remap
    if draw(st.booleans()):
        remap = mint(remap, EMPTY, now + 1).remap
    return partitions, remap


def points(partitions: list[Partition]) -> list[tuple[Partition, int]]:
    return [(p, o) for p in partitions for o in range(OFFSETS_MAX + 3)]


def batch_of(at: list[tuple[Partition, int]]) -> pa.RecordBatch:
    kind = pa.string() if isinstance(at[0][0], str) else pa.int64()
    columns = {
        "_partition": pa.array([p for p, _ in at], kind),
        "_offset": pa.array([o for _, o in at], pa.int64()),
        "row": pa.array(range(len(at))),
    }
    return pa.record_batch(columns)


@given(remaps(), st.randoms(use_true_random=False))
def test_a_table_agrees_with_the_reference(case, random) -> None:  # type: ignore[no-untyped-def]
    partitions, remap = case
    at = points(partitions)
    random.shuffle(at)
    expected = [reclock_time(Partitioned.at(p, o), remap) for p, o in at]
    table = pickle.loads(pickle.dumps(TimeTable.of(remap)))
    for (partition, offset), time in zip(at, expected, strict=True):
        assert table.times(partition, np.array([offset])).tolist() == [-1 if time is None else time]
    assigned = table.assign(batch_of(at))
    bound = {row: time for row, time in enumerate(expected) if time is not None}
    found = zip(
        assigned.column("row").to_pylist(), assigned.column("_time").to_pylist(), strict=True
    )
    assert dict(found) == bound


@given(remaps(), st.data())
def test_a_table_from_a_frontier_on_agrees_there(case, data) -> None:  # type: ignore[no-untyped-def]
    partitions, remap = case
    lower = data.draw(st.sampled_from([b.frontier for b in remap.bindings]))
    whole, part = TimeTable.of(remap), TimeTable.of(remap, lower)
    for partition, offset in points(partitions):
        if lower.less_equal(Partitioned.at(partition, offset)):
            at = np.array([offset])
            assert part.times(partition, at).tolist() == whole.times(partition, at).tolist()


def test_a_partition_that_appears_later_has_a_staircase_of_its_own() -> None:
    remap = begin(partition_frontier({0: 2}), 10).remap
    remap = mint(remap, partition_frontier({0: 2, 1: 5}), 20).remap
    table = TimeTable.of(remap)
    assert table.times(1, np.arange(6)).tolist() == [20] * 5 + [-1]
    assert table.times(0, np.arange(3)).tolist() == [10, 10, -1]
    assert table.times(2, np.arange(1)).tolist() == [-1]


def test_a_frontier_over_many_partitions_is_refused() -> None:
    wide = Antichain([Partitioned(Interval(None, 5), 3), Partitioned(Interval(5, None), 0)])
    with pytest.raises(Unsupported, match="many partitions"):
        TimeTable.of(begin(wide, 1).remap)


def test_an_empty_batch_stays_empty() -> None:
    table = TimeTable.of(begin(partition_frontier({0: 2}), 10).remap)
    empty = batch_of([(0, 0)]).slice(0, 0)
    assert table.assign(empty).schema.names == ["_partition", "_offset", "row", "_time"]
