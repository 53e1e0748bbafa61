"""FROM KAFKA as a source: see `noonmark.source.contract` for what each call promises.

Partitions and offsets are Kafka's own. `latest` is the last stable offset of each partition, so a
transaction is bound once it has ended; aborted records, control records and what compaction took
are offsets without a record. Partitions that were added are bound when they are first seen, from
their offset 0.

What upstream has acknowledged may lie beyond that: records behind a transaction of somebody else
that is open, and a transaction whose commit was answered a moment before its partitions heard of
it. `acknowledged` is the high watermark, which has every record that was acknowledged with
acks=all; whoever must see them waits until so much is bound.

What ends it is bound too, so that it has a time, under a partition of its own (`partitions`):

- another topic under the same name (`Doom.RECREATED`): the id of the topic is not the one that the
  source was made on; nothing of it is read;
- a partition that ends before what was bound (`Doom.WENT_BACK`): brokers lost acknowledged records.

A topic that is to be read anew is another incarnation of it, and a source of its own, whose
partitions lie beside the others (`setup.renew`).

Records that retention removed before they were read are an error at the first offset that is lost;
what is still there is read.

Where it runs: as the contract says; calls that wait for brokers do so in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import pyarrow as pa
from confluent_kafka import TopicPartition

from noonmark.clock import Clock
from noonmark.errors import SourceBroken
from noonmark.source.contract import (
    NO_OUTPUT,
    START,
    Frontier,
    Output,
    Split,
    error_batch,
    ranges,
    record_schema,
)
from noonmark.source.impl.kafka import partitions
from noonmark.source.impl.kafka.client import (
    TIMEOUT_S,
    Options,
    commit,
    describe,
    ends,
    ends_of_all,
    errors,
    open_admin,
    open_consumer,
)
from noonmark.source.impl.kafka.partitions import WHOLE, fate
from noonmark.source.impl.kafka.records import batches
from noonmark.source.impl.upstream import Holding, Live, Numbered
from noonmark.tvc import Partition, known_partitions, partition_frontier

SPLIT_OFFSETS = 1 << 18
#: How the ends of a topic's partitions are asked for.
Ends = Callable[[Any, str, tuple[int, ...]], dict[int, int]]


class Doom(IntEnum):
    """What ends a source or a partition for good. The numbers are stored: they never change."""

    RECREATED = 1
    WENT_BACK = 2


@dataclass
class Clients(Live):
    """The driver's clients, and what the group has committed."""

    admin: Any = None
    consumer: Any = None
    committed: dict[int, int] = field(default_factory=dict)

    def let_go(self) -> None:
        """Close them."""
        if self.consumer is not None:
            self.consumer.close()
        self.admin = self.consumer = None


@dataclass(frozen=True)
class Kafka(Numbered, Holding):
    """See the module; made by `setup.create`.

    Attributes:
        options: librdkafka's, with secrets: never shown.
        topic: its name.
        topic_id: which topic of that name.
        group: the consumer group that the resumption frontier is committed to.
        start: the first offset to read of each partition that there was at the start.
        incarnation: how often the topic was read anew before.
    """

    options: Options = field(repr=False)
    topic: str
    topic_id: str
    group: str
    start: tuple[tuple[int, int], ...] = ()
    incarnation: int = 0
    _live: Clients = field(default_factory=Clients, init=False, repr=False, compare=False)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """See `Source.outputs`: one, raw."""
        return (Output(self.topic, metadata=("timestamp", "headers")),)

    @property
    def releases(self) -> str | None:
        """See `Source.releases`."""
        return "Kafka keeps records as its retention says; the group's offsets show how far we are."

    # -- on the driver ----------------------------------------------------------------------

    async def latest(self, clock: Clock, known: Frontier = START) -> Frontier:
        """See `Source.latest`."""
        del clock
        return await self._ask(known, ends)

    async def acknowledged(self, known: Frontier) -> Frontier:
        """See `HasAcknowledged.acknowledged`."""
        return await self._ask(known, ends_of_all)

    async def _ask(self, known: Frontier, ends_now: Ends) -> Frontier:
        offsets = known_partitions(known)
        if known.is_empty() or WHOLE in self._own(known):
            return known
        found = await asyncio.to_thread(self._probe, self._own(known), ends_now)
        for number, offset in found.items():
            offsets[partitions.at(number, self.incarnation)] = offset
        return partition_frontier(offsets)

    def _own(self, frontier: Frontier) -> dict[int, int]:
        """The offsets of this incarnation, by the numbers of its partitions."""
        found = {
            partitions.of(partition, self.incarnation): offset
            for partition, offset in known_partitions(frontier).items()
        }
        return {number: offset for number, offset in found.items() if number is not None}

    def is_current(self, partition: Partition) -> bool:
        """See `HasIncarnations.is_current`."""
        number = partitions.of(partition, self.incarnation)
        return number is not None and number >= 0

    def _probe(self, known: dict[int, int], ends_now: Ends) -> dict[int, int]:
        with self._live.mutex:
            if self._live.admin is None:
                self._live.admin = open_admin(self.options)
            topic = describe(self._live.admin, self.topic)
            if topic.id != self.topic_id:
                return {**known, WHOLE: int(Doom.RECREATED)}
            found = dict(known)
            for partition, end in ends_now(self._live.admin, self.topic, topic.partitions).items():
                if end < known.get(partition, 0):
                    found[fate(partition)] = int(Doom.WENT_BACK)
                elif fate(partition) not in known:
                    found[partition] = end
            return found

    def plan(self, lower: Frontier, upper: Frontier) -> list[Split]:
        """See `Source.plan`."""
        splits = []
        first = dict(self.start)
        for partition, start, stop in ranges(lower, upper):
            number = partitions.of(partition, self.incarnation)
            if number is None:
                continue  # what was before is read, or given up
            if number < 0:
                splits += [Split(partition, 0, stop)] if start == 0 else []
                continue
            for at in range(max(start, first.get(number, 0)), stop, SPLIT_OFFSETS):
                end = min(at + SPLIT_OFFSETS, stop)
                splits.append(Split(partition, at, end, weight=end - at))
        return splits

    async def release(self, frontier: Frontier) -> None:
        """See `Source.release`: the consumer group's offsets follow."""
        offsets = {number: o for number, o in self._own(frontier).items() if number >= 0}
        await asyncio.to_thread(self._release, offsets)

    def _release(self, offsets: dict[int, int]) -> None:
        with self._live.mutex:
            new = {p: o for p, o in offsets.items() if self._live.committed.get(p) != o}
            if not new:
                return
            if self._live.consumer is None:
                self._live.consumer = open_consumer(self.options, self.group)
            commit(self._live.consumer, self.topic, new)
            self._live.committed.update(new)

    def ended(self, frontier: Frontier) -> dict[int, str]:
        """See `HasEnds.ended`."""
        found = {number: o for number, o in self._own(frontier).items() if number < 0}
        if not found:
            return {}
        first = max(found)  # the source as a whole, if it is among them
        return {NO_OUTPUT: _explain(self.topic, first, Doom(found[first]))}

    # -- on executors -----------------------------------------------------------------------

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """See `Source.read`."""
        number = partitions.of(split.partition, self.incarnation)
        assert number is not None, "a split is of the source that planned it"
        if number < 0:
            raise SourceBroken(_explain(self.topic, number, Doom(split.upper)), ends=True)
        admin = open_admin(self.options)
        if describe(admin, self.topic).id != self.topic_id:
            reason = _explain(self.topic, WHOLE, Doom.RECREATED)
            raise SourceBroken(reason, offset=split.lower, ends=True)
        del admin
        consumer = open_consumer(self.options, self.group)
        try:
            yield from self._read(consumer, split, number)
        finally:
            consumer.close()

    def _read(self, consumer: Any, split: Split, number: int) -> Iterator[pa.RecordBatch]:
        where = TopicPartition(self.topic, number, split.lower)
        with errors():
            low, _ = consumer.get_watermark_offsets(where, timeout=TIMEOUT_S)
        if low > split.lower:
            gone = min(low, split.upper)
            reason = (
                f"offsets {split.lower} to {gone - 1} of partition {number} were removed"
                " before they were read: retention overtook the source"
            )
            yield error_batch("number", split.partition, [(split.lower, None, None, reason)], 0)
            where.offset = gone
        if where.offset >= split.upper:
            return
        with errors():
            consumer.assign([where])
        yield from batches(consumer, split, record_schema(self, 0))

    # -- as plain data ----------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """Everything but the options, for a catalog."""
        return {
            "topic": self.topic,
            "topic_id": self.topic_id,
            "group": self.group,
            "start": [list(each) for each in self.start],
            "incarnation": self.incarnation,
        }

    @classmethod
    def from_plain(cls, options: Options, plain: dict[str, Any]) -> Kafka:
        """The inverse of `to_plain`."""
        start = tuple((int(partition), int(offset)) for partition, offset in plain["start"])
        what = plain["topic"], plain["topic_id"], plain["group"], start
        return cls(options, *what, int(plain.get("incarnation", 0)))


def _explain(topic: str, partition: int, doom: Doom) -> str:
    if doom == Doom.RECREATED:
        return f'topic "{topic}" was deleted and made again: it is another topic'
    number = fate(partition)
    return f"partition {number} of topic {topic!r} lost records that it had: it ends before them"
