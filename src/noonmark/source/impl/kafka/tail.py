"""A consumer that stays: the records behind what is bound, as they come.

It is a short way to what `records` reads with a consumer of its own, and it is only taken where it
leads to the same. Whenever it cannot be sure (an error of any kind, offsets out of order, another
place than the one it is at, a partition that it does not follow, too much in hand, silence) it
says so, is let go of, and the long way is taken, which finds out what is the matter.

Law (range): the records of `take(partition, lower, upper)` are those of the law of `records`. It
answers only when `lower` is where it is, so nothing lies between two answers; and when a record at
`upper - 1` or beyond has come, or the end of the partition that lies there.
Law (topic): what `heard_s` says is when the last record was received. A topic that was described
later, under the id of the source, is the one that they are of.
Law (bounded): what nobody has taken yet is less than `HELD_MAX` records and `HELD_BYTES_MAX`,
beside the client's queue and what it gives at once.

It never joins the group: partitions are assigned, so nobody can take them away; a leader that moves
is followed by the client.

Where it runs: the driver. One thread at a time; `arrived` waits for as long as it is told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, Message, TopicPartition

from noonmark.clock import SYSTEM, Clock
from noonmark.source.impl.kafka.client import Options, errors, open_consumer, received

HELD_MAX, HELD_BYTES_MAX = 200_000, 64 << 20
#: A record that is bound can be read, so it comes soon, or something is wrong.
PATIENCE_S = 2.0
_POLL_S = 0.05
#: The brokers hold a fetch open for so long: an end without a record is heard of after that.
STAYING: Options = (
    ("fetch.wait.max.ms", "50"),
    ("queued.max.messages.kbytes", "16384"),
)


class LostError(Exception):
    """It cannot be sure of what it has."""


@dataclass
class _Followed:
    """One partition: where the next answer begins, what has come, and the last end that was met."""

    at: int
    held: list[Any] = field(default_factory=list)
    end: int = -1
    bytes: int = 0

    def add(self, records: list[Any]) -> None:
        """Records that have come; they lie behind all before them."""
        last = self.held[-1].offset() if self.held else self.at - 1
        if records[0].offset() <= last:
            raise LostError
        self.held += records
        self.bytes += sum(map(len, records))

    def reaches(self, upper: int) -> bool:
        """Whether all records below an offset are here."""
        return self.end >= upper or bool(self.held and self.held[-1].offset() >= upper - 1)

    def cut(self, upper: int) -> list[Any]:
        """Take all records below an offset."""
        offsets = np.fromiter(map(Message.offset, self.held), np.int64, len(self.held))
        count = int(np.searchsorted(offsets, upper))
        taken, self.held, self.at = self.held[:count], self.held[count:], upper
        self.bytes = sum(map(len, self.held))
        return taken


class Tail:
    """See the module."""

    def __init__(
        self, options: Options, group: str, topic: str, places: dict[int, int],
        clock: Clock = SYSTEM,
    ) -> None:  # fmt: skip
        self._topic = topic
        self._clock = clock
        self._partitions = {number: _Followed(offset) for number, offset in places.items()}
        self.heard_s = clock.monotonic()
        self._consumer = open_consumer(options, group, STAYING)
        with errors():
            self._consumer.assign([TopicPartition(topic, *place) for place in places.items()])

    def close(self) -> None:
        """Let go of it."""
        self._consumer.close()

    def is_at(self, places: dict[int, int]) -> bool:
        """Whether it follows just these partitions, each from that offset on."""
        return places == {number: each.at for number, each in self._partitions.items()}

    def arrived(self, seconds: float) -> bool:
        """Whether there are records; waits for the first one.

        Raises:
            LostError: see the module.
        """
        until_s = self._clock.monotonic() + seconds
        while not any(each.held for each in self._partitions.values()):
            left_s = until_s - self._clock.monotonic()
            self._receive(max(0.0, left_s))
            if left_s <= 0:
                break
        return any(each.held for each in self._partitions.values())

    def take(self, number: int, lower: int, upper: int) -> list[Any]:
        """The records of a partition between two offsets.

        Raises:
            LostError: see the module.
        """
        followed = self._partitions.get(number)
        if followed is None or followed.at != lower:
            raise LostError
        began_s = self._clock.monotonic()
        while not followed.reaches(upper):
            if self._clock.monotonic() - began_s > PATIENCE_S:
                raise LostError
            self._receive(_POLL_S)
        return followed.cut(upper)

    def _receive(self, seconds: float) -> None:
        """Take what has come, or wait for the first; it may be an end."""
        records = received(self._consumer, seconds)
        if any(map(Message.error, records)):
            for each in records:
                self._note(each)
            records = [each for each in records if each.error() is None]
        if not records:
            return
        for number, mine in _by_partition(records).items():
            self._partitions[number].add(mine)
        self.heard_s = self._clock.monotonic()
        followed = self._partitions.values()
        held, size = sum(len(each.held) for each in followed), sum(each.bytes for each in followed)
        if held >= HELD_MAX or size >= HELD_BYTES_MAX:
            raise LostError

    def _note(self, record: Any) -> None:
        """The end of a partition; every other error is one."""
        error = record.error()
        if error is None:
            return
        followed = self._partitions.get(record.partition())
        if error.code() != KafkaError._PARTITION_EOF or followed is None:
            raise LostError
        followed.end = max(followed.end, record.offset())


def _by_partition(records: list[Any]) -> dict[int, list[Any]]:
    numbers: list[int] = [each.partition() for each in records]
    if len(set(numbers)) == 1:
        return {numbers[0]: records}
    found: dict[int, list[Any]] = {}
    for number, record in zip(numbers, records, strict=True):
        found.setdefault(number, []).append(record)
    return found
