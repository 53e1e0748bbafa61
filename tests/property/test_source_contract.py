"""The laws of `noonmark.source.contract`, on every source.

A new source is one function in `SOURCES`: it makes the source in a folder, and grows its upstream.
"""

from __future__ import annotations

import asyncio
import itertools
import pickle
from collections import Counter as Multiset
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import InvalidValue
from noonmark.rows.schema import Schema
from noonmark.source import START, Frontier, Output, Source, Split, record_schema
from noonmark.source.contract import NO_OUTPUT, batch_output, error_batch, is_error, ranges
from noonmark.source.impl.auction import Auction
from noonmark.source.impl.counter import Counter
from noonmark.source.impl.file_forms import Parquet
from noonmark.source.impl.files import Files, of_lines
from noonmark.source.impl.key_value import KeyValue
from noonmark.source.impl.tpch import Tpch
from noonmark.tvc import EMPTY, Partitioned, partition_frontier

NOON = 1_700_000_000_000


class Hands:
    def __init__(self) -> None:
        self.now = NOON

    def fresh_id(self) -> str:
        return SYSTEM.fresh_id()

    def now_ms(self) -> int:
        return self.now


def files(folder: Path) -> tuple[Source, Callable[[int], None]]:
    def grow(step: int) -> None:
        for name in range(step % 3 + 1):
            with (folder / f"{name}.txt").open("ab") as file:
                file.write(b"line of step %d\n" % step * (step + 1) + b"half")

    return of_lines(str(folder / "*.txt")), grow


def parquet(folder: Path) -> tuple[Source, Callable[[int], None]]:
    def grow(step: int) -> None:
        rows = pa.table({"a": list(range(step * 5))})
        pq.write_table(rows, folder / f"{step}.parquet", row_group_size=3)

    return Files(str(folder), Parquet(Schema.of(a="bigint"))), grow


def generator(source: Source) -> Callable[[Path], tuple[Source, Callable[[int], None]]]:
    return lambda _: (source, lambda _: None)


SOURCES: dict[str, Callable[[Path], tuple[Source, Callable[[int], None]]]] = {
    "counter": generator(Counter(start_ms=NOON, max_cardinality=3)),
    "key_value": generator(
        KeyValue(start_ms=NOON, keys=30, partitions=3, snapshot_rounds=2, batch_keys=4)
    ),
    "auction": generator(Auction(start_ms=NOON, keep=2, steps_per_tick=9)),
    "tpch": generator(Tpch(start_ms=NOON, scale_factor=0.0001, orders_per_tick=3)),
    "files": files,
    "parquet": parquet,
}


def postgres(request: pytest.FixtureRequest) -> tuple[Source, Callable[[int], None]]:
    upstream = request.getfixturevalue("upstream")
    upstream.run(
        "create table whole (id int, word text)",
        "alter table whole replica identity full",
        "create table keyed (word text, id int primary key)",
        "insert into whole select i, 'w' from generate_series(1, 99) i",
        "insert into keyed select 'w', i from generate_series(1, 99) i",
    )

    def grow(step: int) -> None:
        upstream.run(
            f"insert into whole values ({step}, 'new')",
            f"update whole set word = 'step {step}' where id % 7 = {step}",
            f"update keyed set word = 'step {step}' where id % 7 = {step}",
            f"delete from keyed where id = {step + 50}",
        )

    return upstream.source(), grow


def kafka(request: pytest.FixtureRequest) -> tuple[Source, Callable[[int], None]]:
    from noonmark.source.impl.kafka import create

    server = request.getfixturevalue("kafka_server")
    topic = f"contract-{SYSTEM.fresh_id()}"
    server.make_topic(topic, 3)

    def grow(step: int) -> None:
        records = [{"value": b"%d" % at, "partition": at % 3} for at in range(step * 5)]
        server.send(topic, records)

    return asyncio.run(create(server.options, topic, topic)), grow


#: Sources over a real server, which may write to its log by itself.
SERVED = {"postgres": postgres, "kafka": kafka}


@pytest.fixture(params=[*SOURCES, *SERVED])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Source, list[Frontier]]:
    """A source, and what it said at six moments."""
    if request.param in SERVED:
        source, grow = SERVED[request.param](request)
    else:
        source, grow = SOURCES[request.param](tmp_path)
    clock, known, seen = Hands(), START, [START]
    for step in range(6):
        grow(step)
        known = asyncio.run(source.latest(clock, known))  # type: ignore[arg-type]
        seen.append(known)
        clock.now += 1000
    return source, seen


def read(source: Source, splits: list[Split]) -> Multiset[Any]:
    """Records as values, with their diffs summed if they have any."""
    found: Multiset[Any] = Multiset()
    for split in splits:
        for batch in source.read(split):
            assert not is_error(batch)
            assert batch.schema.equals(record_schema(source, batch_output(batch)))
            assert set(batch.column("_partition").to_pylist()) <= {split.partition}
            for row in batch.to_pylist():
                assert split.lower <= row["_offset"] < split.upper
                diff = row.pop("_diff", 1)
                found[tuple(row.values())] += diff
    return Multiset({row: diff for row, diff in found.items() if diff})


def total(parts: list[Multiset[Any]]) -> Multiset[Any]:
    whole: Multiset[Any] = Multiset()
    for part in parts:
        whole.update(part)
    return Multiset({row: diff for row, diff in whole.items() if diff})


def test_latest_never_goes_back(history: tuple[Source, list[Frontier]]) -> None:
    _, seen = history
    assert all(b.at_or_beyond(a) for a, b in itertools.pairwise(seen))
    assert seen[-1] != START


def test_latest_is_the_same_again(history: tuple[Source, list[Frontier]]) -> None:
    source, seen = history
    clock = Hands()
    clock.now += 5000
    again = asyncio.run(source.latest(clock, seen[-1]))  # type: ignore[arg-type]
    if again != seen[-1]:
        assert source.outputs[0].name == "keyed", "only a database's log grows by itself"
        assert again.at_or_beyond(seen[-1])
        assert not read(source, source.plan(seen[-1], again))


def test_splits_cover_what_lies_between_two_frontiers(
    history: tuple[Source, list[Frontier]],
) -> None:
    source, seen = history
    whole = read(source, source.plan(START, seen[-1]))
    steps = [read(source, source.plan(a, b)) for a, b in itertools.pairwise(seen)]
    assert total(steps) == whole
    assert whole
    for (a, b), part in zip(itertools.pairwise(seen), steps, strict=True):
        for partition, offset, *_ in part:
            time = Partitioned.at(partition, offset)
            assert a.less_equal(time)
            assert not b.less_equal(time)


def test_the_same_split_has_the_same_records(history: tuple[Source, list[Frontier]]) -> None:
    source, seen = history
    splits = source.plan(START, seen[-1])
    again = pickle.loads(pickle.dumps(source))
    assert again == source
    assert read(again, pickle.loads(pickle.dumps(splits))) == read(source, splits)


def test_planning_asks_nobody(history: tuple[Source, list[Frontier]]) -> None:
    source, seen = history
    assert source.plan(seen[2], seen[4]) == source.plan(seen[2], seen[4])
    assert source.plan(seen[-1], seen[-1]) == []


def test_a_source_says_whether_upstream_may_forget(
    history: tuple[Source, list[Frontier]],
) -> None:
    source, seen = history
    assert source.releases is None or source.releases.endswith(".")
    before = read(source, source.plan(START, seen[-1]))
    asyncio.run(source.release(seen[-1]))
    if source.releases is not None:  # what it cannot forget it still has
        assert read(source, source.plan(START, seen[-1])) == before


def test_outputs_have_the_key_that_they_name(history: tuple[Source, list[Frontier]]) -> None:
    source, _ = history
    for output in source.outputs:
        if output.schema is not None:
            assert set(output.key) <= set(output.schema.names)
    assert record_schema(source, NO_OUTPUT).names[-2:] == ["_reason", "_ends"]


def test_ranges_between_frontiers() -> None:
    a, b = partition_frontier({0: 3, 1: 5}), partition_frontier({0: 3, 1: 9, 2: 1})
    assert ranges(a, b) == [(1, 5, 9), (2, 0, 1)]
    assert ranges(a, EMPTY, {0: 4}) == [(0, 3, 4)]
    assert ranges(EMPTY, EMPTY, {0: 4}) == []


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidValue, match="no range"):
        Split(0, 3, 3)
    with pytest.raises(InvalidValue, match="no record has"):
        Output("x", metadata=("colour",))


def test_an_error_batch_is_known_by_its_schema() -> None:
    batch = error_batch("number", 4, [(1, None, b"x", "why"), (2, "(1)", None, "not")], output=2)
    assert is_error(batch)
    assert batch_output(batch) == 2
    assert batch.column("_offset").to_pylist() == [1, 2]
    assert is_error(error_batch("name", "a", []))
