"""The examples of docs/reclocking.md, made by the product: what the page shows is what comes out.

Topics are bound at 1pm, 2pm, 3pm and 4pm (13 to 16 on the timeline).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from noonmark.clock import SYSTEM, Clock
from noonmark.ingest.ingestion import Ingestion, InPlaceEngine
from noonmark.oracle.memory import MemoryOracle
from noonmark.persist.client import Client, Options, open_location
from noonmark.rows.schema import Schema
from noonmark.source.contract import (
    START,
    Frontier,
    Output,
    PartitionKind,
    Split,
    points,
    ranges,
    record_schema,
)
from noonmark.tvc import Partition, partition_frontier
from support.ingest.world import History

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reclocking.md"
PM1 = 13


@dataclass
class Topic:
    """See `noonmark.source.contract.Source`: messages by partition; `ends` is what is there now."""

    name: str
    messages: dict[Partition, Sequence[str]]
    ends: dict[Partition, int] = field(default_factory=dict)
    partition_kind: PartitionKind = "name"
    offset_unit: int = 1
    latest_is_linearizable: bool = True
    releases: str | None = None

    @property
    def outputs(self) -> tuple[Output, ...]:
        return (Output(self.name, Schema.of(msg="text not null"), ("msg",)),)

    async def latest(self, clock: Clock, known: Frontier = START) -> Frontier:
        assert clock is not None
        return partition_frontier(self.ends).join(known)

    def plan(self, lower: Frontier, upper: Frontier) -> list[Split]:
        return [Split(*span) for span in ranges(lower, upper)]

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        offsets = list(range(split.lower, split.upper))
        texts = self.messages[split.partition][split.lower : split.upper]
        ones = pa.array([1] * len(offsets), pa.int64())
        columns = [*points("name", split.partition, offsets, 0), ones, pa.array(texts)]
        yield pa.RecordBatch.from_arrays(columns, schema=record_schema(self, 0))

    async def release(self, frontier: Frontier) -> None:
        assert not frontier.is_empty()


class Hours:
    """An oracle that says 1pm, 2pm, ..."""

    def __init__(self) -> None:
        self._next = PM1

    def write_ts(self) -> int:
        self._next += 1
        return self._next - 1

    def read_ts(self) -> int:
        return self._next - 1

    def apply_write(self, time: int) -> None:
        assert time < self._next

    def close(self) -> None:
        """Nothing to let go of."""


@pytest.fixture
def client() -> Iterator[Client]:
    with open_location("memory:reclocking-examples", options=Options(notify_host=None)) as opened:
        yield opened
        for entry in list(opened.state.names):
            opened.drop(entry).result()


def ingested(client: Client, topic: Topic, *ends: dict[Partition, int]) -> None:
    ingestion = Ingestion(client, Hours(), topic, topic.name, InPlaceEngine()).start()
    for reached in ends:
        topic.ends = reached
        ingestion.tick()


def hour(time: int) -> str:
    return f"{time - 12}pm"


def shown(client: Client, name: str) -> str:
    """The updates of a collection, as the page writes them."""
    history = History.of(client.create_or_load(name)[1])
    updates = [(row, history.start, count) for row, count in history.first.items()]
    lines = [
        (time, diff, row)
        for row, time, diff in [*updates, *history.updates]
        if not str(row[0]).startswith(("(", "["))  # a range of partitions nobody has seen yet
    ]
    return "".join(
        f"    ({', '.join(map(str, row))}, {hour(time)}, {diff:+d})\n"
        for time, diff, row in sorted(lines)
    )


def as_of(client: Client, name: str, time: int) -> list[Any]:
    _, read = client.create_or_load(name)
    return sorted(read.snapshot(time).result().counts().elements())


class Asked(MemoryOracle):
    """What a strict read would see of a collection, at the moment the oracle is told of a write."""

    def __init__(self, client: Client, name: str) -> None:
        super().__init__(SYSTEM)
        self._client, self._name = client, name
        self.seen: list[list[Any]] = []

    def apply_write(self, time: int) -> None:
        """Before it has happened: a reader may come between the commit and this."""
        read, at = self._client.create_or_load(self._name)[1], self.read_ts()
        if not read.upper.less_equal(at) and read.since.less_equal(at):
            self.seen.append(as_of(self._client, self._name, at))
        super().apply_write(time)


def test_no_read_comes_before_the_first_rows(client: Client) -> None:
    topic = Topic("first", {"P0": ["A"]}, {"P0": 1})
    oracle = Asked(client, "first")
    ingestion = Ingestion(client, oracle, topic, "first", InPlaceEngine()).start()
    oracle.apply_write(oracle.write_ts())  # somebody else's: after the collections began
    ingestion.tick()
    assert oracle.seen == [[("A",)]]


def test_topic_a_and_topic_b(client: Client) -> None:
    topic_a = Topic("topic_a", {"0": [f"m{n}" for n in range(6)]})
    topic_b = Topic("topic_b", {"0": [f"m{n}" for n in range(1000)]})
    ingested(client, topic_a, {"0": 1}, {"0": 3}, {"0": 6})
    ingested(client, topic_b, {"0": 100}, {"0": 250}, {"0": 1000})
    page = PAGE.read_text()
    for name in ("topic_a_remap", "topic_b_remap", "topic_a"):
        assert shown(client, name) in page, shown(client, name)
    assert shown(client, "topic_a").splitlines() == [
        "    (m0, 2pm, +1)",
        "    (m1, 3pm, +1)",
        "    (m2, 3pm, +1)",
        "    (m3, 4pm, +1)",
        "    (m4, 4pm, +1)",
        "    (m5, 4pm, +1)",
    ]
    assert as_of(client, "topic_b_remap", 15)[:1] == [('"0"', 250)]
    assert [len(as_of(client, "topic_a", t)) for t in (13, 14, 15, 16)] == [0, 1, 3, 6]
    assert [len(as_of(client, "topic_b", t)) for t in (13, 14, 15, 16)] == [0, 100, 250, 1000]


def test_two_partitions_and_h_is_missing(client: Client) -> None:
    topic = Topic("topic", {"part0": "abcd", "part1": "efgh"})
    topic.messages = {name: list(text) for name, text in topic.messages.items()}
    ingested(client, topic, {"part0": 3, "part1": 1}, {"part0": 4, "part1": 3})
    page = PAGE.read_text()
    for name in ("topic_remap", "topic"):
        assert shown(client, name) in page, shown(client, name)
    assert [row for (row,) in as_of(client, "topic", 14)] == list("abce")
    assert [row for (row,) in as_of(client, "topic", 15)] == list("abcdefg")
