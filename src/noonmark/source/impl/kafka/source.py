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

Who listens (`arrived`) has a consumer that stays (`tail`), and what this process reads then comes
from it; whatever is unusual is read as executors read it, by a consumer of its own.

Where it runs: as the contract says; calls that wait for brokers do so in the thread of its peer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Any

import pyarrow as pa
from confluent_kafka import TopicPartition

from noonmark.clock import SYSTEM, Clock
from noonmark.errors import SourceBroken, SourceStalled
from noonmark.peer import ANSWER_S
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
    ask_topic,
    commit,
    describe,
    described,
    ends,
    ends_of_all,
    errors,
    open_admin,
    open_consumer,
)
from noonmark.source.impl.kafka.partitions import WHOLE, fate
from noonmark.source.impl.kafka.records import BATCH_RECORDS, batch_of, batches
from noonmark.source.impl.kafka.tail import LostError, Tail
from noonmark.source.impl.upstream import Holding, Live, Numbered
from noonmark.tvc import Partition, known_partitions, partition_frontier

SPLIT_OFFSETS = 1 << 18
_DEAF_S = 1.0
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
    #: The partitions that the topic had when it was last described, and when it was asked for.
    known: tuple[int, ...] = ()
    described_s: float = float("-inf")
    tail: Tail | None = None
    #: Beside `mutex`, which is held while brokers are asked: for who listens, and who reads.
    hearing: threading.RLock = field(default_factory=threading.RLock, kw_only=True)
    #: Until then nobody listens: the last one who did could not.
    deaf_until_s: float = float("-inf")

    def let_go(self) -> None:
        """Close them."""
        if self.consumer is not None:
            self.consumer.close()
        self.admin = self.consumer = None
        self.hush()

    def hush(self, seconds: float = 0.0) -> None:
        """Listen no more, or not before so long."""
        with self.hearing:
            tail, self.tail = self.tail, None
            self.deaf_until_s = SYSTEM.monotonic() + seconds
            if tail is not None:
                tail.close()


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

    def __post_init__(self) -> None:
        self._live.peer.name = f'of topic "{self.topic}"'

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
        asking = partial(self._probe, self._own(known), ends_now)
        found = await self._live.peer.call(asking, seconds=ANSWER_S)
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
            offsets = self._offsets_of_it(ends_now)
        if offsets is None:
            return {**known, WHOLE: int(Doom.RECREATED)}
        found = dict(known)
        for partition, end in offsets.items():
            if end < known.get(partition, 0):
                found[fate(partition)] = int(Doom.WENT_BACK)
            elif fate(partition) not in known:
                found[partition] = end
        return found

    def _offsets_of_it(self, ends_now: Ends) -> dict[int, int] | None:
        """The ends of the topic's partitions; None where it is another topic now."""
        live = self._live
        if live.admin is None:
            live.admin = open_admin(self.options)
        # Both questions are on the way at once; mostly the partitions are what they were.
        asked_s, asked = SYSTEM.monotonic(), ask_topic(live.admin, self.topic)
        try:
            found = ends_now(live.admin, self.topic, live.known)
        except SourceStalled:
            found = {}  # perhaps it is not what it was
        topic = described(live.admin, asked)
        if topic.id != self.topic_id:
            return None
        live.described_s = asked_s
        if topic.partitions != tuple(sorted(found)):
            found = ends_now(live.admin, self.topic, topic.partitions)
            live.known = topic.partitions
        return found

    def arrived(self, known: Frontier, seconds: float) -> bool:
        """See `HasArrivals.arrived`."""
        places = self._places(known)
        live = self._live
        if not places or SYSTEM.monotonic() < live.deaf_until_s:
            threading.Event().wait(seconds)
            return False
        with live.hearing:
            if live.tail is not None and not live.tail.is_at(places):
                live.hush()
            try:
                if live.tail is None:
                    live.tail = Tail(self.options, self.group, self.topic, places)
                return live.tail.arrived(seconds)
            except (LostError, SourceStalled):
                live.hush(_DEAF_S)
                return False

    def hush(self) -> None:
        """See `HasArrivals.hush`."""
        self._live.hush()

    def _places(self, known: Frontier) -> dict[int, int]:
        """Where reading goes on in each partition that is read."""
        own, first = self._own(known), dict(self.start)
        if WHOLE in own:
            return {}
        # One of which nothing is bound is in no frontier.
        return {
            number: max(own.get(number, 0), first.get(number, 0))
            for number in self._live.known
            if fate(number) not in own
        }

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
        await self._live.peer.call(partial(self._release, offsets), seconds=ANSWER_S)

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
        heard = self._heard(split, number)
        if heard is not None:
            schema = record_schema(self, 0)
            for at in range(0, len(heard), BATCH_RECORDS):
                yield batch_of(split, heard[at : at + BATCH_RECORDS], schema)
            return
        self._require_it(open_admin(self.options), split)
        consumer = open_consumer(self.options, self.group)
        try:
            yield from self._read(consumer, split, number)
        finally:
            consumer.close()

    def _heard(self, split: Split, number: int) -> list[Any] | None:
        """The records of a split, if a consumer that stays has just these."""
        live = self._live
        with live.hearing:
            if live.tail is None:
                return None
            try:
                records = live.tail.take(number, split.lower, split.upper)
                heard_s = live.tail.heard_s
            except (LostError, SourceStalled):
                live.hush(_DEAF_S)
                return None
        with live.mutex:
            if heard_s >= live.described_s:
                asked_s = SYSTEM.monotonic()
                live.admin = live.admin or open_admin(self.options)
                self._require_it(live.admin, split)
                live.described_s = asked_s
        return records

    def _require_it(self, admin: Any, split: Split) -> None:
        """That the topic of that name is the one that the source was made on."""
        if describe(admin, self.topic).id != self.topic_id:
            reason = _explain(self.topic, WHOLE, Doom.RECREATED)
            raise SourceBroken(reason, offset=split.lower, ends=True)

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
