"""The guarantees of reclocking and resumption, over generated histories of a partitioned source.

A history interleaves what happens upstream (records appended, several at one offset; partitions
added) with bindings at random moments. The oracle is the plain reading of the seed: a record's time
is that of the first probe that saw past its offset.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from noonmark.errors import (
    BeforeSince,
    FrontierRegression,
    InvalidValue,
    NotYetComplete,
    UsageError,
)
from noonmark.remap import (
    Binding,
    Remap,
    begin,
    compact,
    mint,
    offset_resumption,
    reclock,
    reclock_frontier,
    reclock_time,
    reclock_updates,
    seal,
    timestamp_resumption,
)
from noonmark.tvc import (
    EMPTY,
    Antichain,
    Partition,
    Partitioned,
    Product,
    Update,
    advance,
    consolidate,
    integrate,
    known_partitions,
    partition_frontier,
)
from support.house.counts import counted

LAWS = 11
HISTORIES = counted(1_000, 20_000)
some_histories = settings(max_examples=max(1, HISTORIES // LAWS), deadline=None)

PARTITIONS: tuple[Partition, ...] = (0, 1, 2, 4, "a", "b")


@dataclass
class History:
    """What a source held, what its probes saw, and the remap that was minted from them."""

    records: list[Update[str, Partitioned]] = field(default_factory=list)
    probes: list[tuple[int, dict[Partition, int]]] = field(default_factory=list)
    appended: list[Update[Partitioned, int]] = field(default_factory=list)
    remap: Remap[Partitioned] = field(init=False)

    def time_of(self, record: Update[str, Partitioned]) -> int | None:
        """The oracle."""
        partition = record.time.interval.partition()
        assert partition is not None
        seen = (t for t, known in self.probes if record.time.offset < known.get(partition, 0))
        return next(seen, None)

    def times(self) -> range:
        """[since, upper) of the remap."""
        start, end = self.remap.since.only(), self.remap.upper.only()
        assert start is not None
        assert end is not None
        return range(start, end)


@st.composite
def histories(draw: st.DrawFn) -> History:
    history = History()
    offsets: dict[Partition, int] = {}
    now = draw(st.integers(0, 3))
    history.probes.append((now, {}))
    history.appended, history.remap = begin(partition_frontier({}), now)
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.booleans()):
            partition = draw(st.sampled_from(PARTITIONS))
            offset = offsets.get(partition, 0)
            for n in range(draw(st.integers(0, 3))):
                name = f"{partition}/{offset}/{n}"
                history.records.append(Update(name, Partitioned.at(partition, offset), +1))
            # Offsets may have holes, as those of a compacted topic do.
            offsets[partition] = offset + draw(st.integers(1, 2))
        else:
            now += draw(st.integers(1, 3))
            history.probes.append((now, dict(offsets)))
            updates, history.remap = mint(history.remap, partition_frontier(offsets), now)
            history.appended += updates
    return history


@some_histories
@given(histories())
def test_every_record_gets_the_time_of_the_first_probe_that_saw_it(history: History) -> None:
    for record in history.records:
        time = history.time_of(record)
        expected = EMPTY if time is None else Antichain.of(time)
        assert reclock(record.time, history.remap.bindings) == expected
        assert reclock_time(record.time, history.remap) == time


@some_histories
@given(histories())
def test_reclocking_is_monotone(history: History) -> None:
    times = {Partitioned.at(p, o) for p in PARTITIONS for o in range(6)}
    bindings = history.remap.bindings
    reclocked = {time: reclock(time, bindings) for time in times}
    for a, b in product(times, times):
        if a <= b:
            assert reclocked[b].at_or_beyond(reclocked[a])


@some_histories
@given(histories())
def test_contents_are_what_the_frontier_has_complete_and_whole_transactions(
    history: History,
) -> None:
    reclocked = reclock_updates(history.records, history.remap.bindings)
    assert len({update.data for update in reclocked}) == len(reclocked)
    for t in history.times():
        contents = integrate(reclocked, t)
        frontier = history.remap.frontier_at(t)
        complete = [r for r in history.records if not frontier.less_equal(r.time)]
        assert contents == {record.data: 1 for record in complete}
        offsets = {record.time for record in complete}
        assert not [r for r in history.records if r.time in offsets and r.data not in contents]


@some_histories
@given(histories())
def test_the_remap_is_a_collection_that_gives_the_remap_back(history: History) -> None:
    remap = history.remap
    assert remap.updates() == history.appended
    assert Remap.from_updates(history.appended, remap.since, remap.upper) == remap
    for t in history.times():
        rows = integrate(history.appended, t)
        assert rows == dict.fromkeys(remap.frontier_at(t).elements, 1)
        known = [known for time, known in history.probes if time <= t][-1]
        assert known_partitions(remap.frontier_at(t)) == known


@some_histories
@given(histories(), st.data())
def test_a_time_once_given_stays(history: History, data: st.DataObject) -> None:
    """What was bound when a crash came has, after it, the time that it had before."""
    count = data.draw(st.integers(1, len(history.probes)))
    crash = history.probes[count - 1][0] + 1
    durable = [update for update in history.appended if update.time < crash]
    recovered = Remap.from_updates(durable, history.remap.since, Antichain.of(crash))
    for record in history.records:
        before = reclock_time(record.time, recovered)
        after = reclock_time(record.time, history.remap)
        assert before == after or (before is None and (after is None or after >= crash))


@some_histories
@given(histories(), st.data())
def test_resumption_gives_up_exactly_what_is_durable(history: History, data: st.DataObject) -> None:
    remap, start = history.remap, history.times()[0]
    uppers = data.draw(st.lists(st.integers(start + 1, history.times()[-1] + 1), max_size=3))
    resumption = timestamp_resumption([remap.upper, *map(Antichain.of, uppers)])
    end = resumption.only()
    assert end == min([*uppers, history.times()[-1] + 1])
    offsets = offset_resumption(remap, resumption)
    for record in history.records:
        time = history.time_of(record)
        assert (not offsets.less_equal(record.time)) == (time is not None and time < end)
    for earlier in range(start, end):
        assert offsets.at_or_beyond(offset_resumption(remap, Antichain.of(earlier)))


@some_histories
@given(histories(), st.data())
def test_ingestion_that_restarts_reads_nothing_twice_and_loses_nothing(
    history: History, data: st.DataObject
) -> None:
    end = data.draw(st.integers(history.times()[0], history.times()[-1] + 1))
    resumption = Antichain.of(end)
    everything = reclock_updates(history.records, history.remap.bindings)
    durable = [update for update in everything if update.time < end]
    kept = compact(history.remap, resumption)
    offsets = offset_resumption(kept, resumption)
    read_again = [record for record in history.records if offsets.less_equal(record.time)]
    rest = reclock_updates(read_again, kept.bindings)
    assert sorted(durable + rest) == sorted(everything)


@some_histories
@given(histories(), st.data())
def test_compaction_of_the_remap_is_that_of_any_collection(
    history: History, data: st.DataObject
) -> None:
    remap = history.remap
    end = data.draw(st.integers(history.times()[0], history.times()[-1] + 1))
    kept = compact(remap, Antichain.of(end))
    assert kept.since == Antichain.of(max(history.times()[0], end - 1))
    assert offset_resumption(kept, Antichain.of(end)) == offset_resumption(remap, Antichain.of(end))
    assert set(kept.updates()) == set(consolidate(advance(remap.updates(), kept.since)))
    assert Remap.from_updates(remap.updates(), kept.since, remap.upper) == kept
    assert kept.upper == remap.upper


@some_histories
@given(histories(), st.data())
def test_the_reclocked_upper_waits_for_what_was_not_read(
    history: History, data: st.DataObject
) -> None:
    read = {p: data.draw(st.integers(0, 6)) for p in PARTITIONS}
    upper = reclock_frontier(partition_frontier(read), history.remap.bindings, history.remap.upper)
    assert history.remap.upper.at_or_beyond(upper)
    for t in history.times():
        known = [known for time, known in history.probes if time <= t][-1]
        assert upper.less_equal(t) == any(read[p] < offset for p, offset in known.items())


@some_histories
@given(data=st.data())
def test_partial_order_to_partial_order(data: st.DataObject) -> None:
    grid = [Product(a, b) for a, b in product(range(4), range(3))]
    known = st.dictionaries(st.sampled_from(PARTITIONS), st.integers(0, 3))
    frontiers = known.map(partition_frontier)
    bindings = data.draw(st.lists(st.builds(Binding, st.sampled_from(grid), frontiers), max_size=6))
    records = [
        Update(f"{p}/{o}", Partitioned.at(p, o), data.draw(st.sampled_from([-1, 1, 2])))
        for p, o in product(PARTITIONS, range(3))
    ]
    reclocked = reclock_updates(records, bindings)
    for t in grid:
        frontier = partition_frontier({})
        for bound, complete in bindings:
            if bound <= t:
                frontier = frontier.join(complete)
        assert integrate(reclocked, t) == {
            record.data: record.diff for record in records if not frontier.less_equal(record.time)
        }
    for a, b in product(records, records):
        if a.time <= b.time:
            assert reclock(b.time, bindings).at_or_beyond(reclock(a.time, bindings))


def test_an_update_counts_once_where_its_times_join() -> None:
    past = Antichain.of(1)
    bindings = [Binding(Product(0, 1), past), Binding(Product(1, 0), past)]
    assert set(reclock_updates([Update("x", 0, +1)], bindings)) == {
        ("x", Product(0, 1), +1),
        ("x", Product(1, 0), +1),
        ("x", Product(1, 1), -1),
    }


@some_histories
@given(histories(), st.data())
def test_nothing_goes_back_on_either_axis(history: History, data: st.DataObject) -> None:
    remap = history.remap
    late = data.draw(st.integers(0, history.times()[-1]))
    with pytest.raises(FrontierRegression, match="already complete") as refused:
        mint(remap, remap.latest, late)
    assert refused.value.fields["axis"] == "time"
    known = known_partitions(remap.latest)
    assume(known)
    known[data.draw(st.sampled_from(sorted(known, key=str)))] -= 1
    with pytest.raises(FrontierRegression, match="went backwards") as refused:
        mint(remap, partition_frontier(known), history.times()[-1] + 1)
    assert refused.value.fields["axis"] == "source"


def test_an_idle_source_completes_times_without_updates() -> None:
    _, remap = begin(Antichain.of(0), 10)
    updates, idle = mint(remap, Antichain.of(0), 20)
    assert updates == []
    assert idle.bindings == remap.bindings
    assert idle.upper == Antichain.of(21)


def test_a_source_that_has_finished() -> None:
    _, remap = begin(Antichain.of(0), 10)
    updates, remap = mint(remap, EMPTY, 20)
    assert updates == [(0, 20, -1)]
    assert reclock_time(99, remap) == 20
    done = seal(remap)
    assert offset_resumption(done, EMPTY) == EMPTY
    assert compact(done, EMPTY) == Remap((Binding(20, EMPTY),), EMPTY)
    assert Remap.from_updates([], Antichain.of(20), EMPTY) == compact(done, EMPTY)
    with pytest.raises(FrontierRegression, match="went backwards"):
        mint(remap, Antichain.of(7), 30)


def test_a_source_that_has_written_nothing_resumes_where_it_began() -> None:
    _, remap = begin(Antichain.of(5), 10)
    assert offset_resumption(remap, Antichain.of(10)) == Antichain.of(5)
    assert compact(remap, Antichain.of(10)) == remap


def test_resumption_is_refused_where_the_remap_cannot_answer() -> None:
    _, remap = begin(Antichain.of(5), 10)
    with pytest.raises(BeforeSince, match="cannot say"):
        offset_resumption(remap, Antichain.of(9))
    with pytest.raises(NotYetComplete, match="belongs in the meet"):
        offset_resumption(remap, Antichain.of(12))
    with pytest.raises(UsageError, match="no uppers"):
        timestamp_resumption([])


@pytest.mark.parametrize(
    ("updates", "reason"),
    [
        ([Update(3, 10, +2)], "other than once"),
        ([Update(3, 10, -1)], "other than once"),
        ([Update(3, 10, +1), Update(5, 11, +1)], "no frontier"),
        ([Update(3, 10, +1), Update(3, 11, -1), Update(2, 11, +1)], "backwards"),
        ([Update(3, 11, +1)], "backwards"),
        ([Update(3, 10, +1), Update(3, 12, -1)], "not before upper"),
    ],
)
def test_what_is_no_remap_is_refused(updates: list[Update[int, int]], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        Remap.from_updates(updates, Antichain.of(10), Antichain.of(12))


def test_a_remap_is_certain_somewhere() -> None:
    with pytest.raises(InvalidValue, match="certain nowhere"):
        Remap.from_updates([], Antichain.of(10), Antichain.of(10))
    with pytest.raises(InvalidValue, match="begins with a binding"):
        Remap((), Antichain.of(10))
