"""Making a Kafka source: which topic, and where in it reading starts.

The start is fixed when the source is made: the first offsets that there are, those that were asked
for, or those of a timestamp. What lies before is never read, and retention may take it. A source
that is renewed reads a topic that was made again from its beginning, and the same topic from where
it began before, or from the first records that are still there.

Where it runs: driver.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from noonmark.clock import SYSTEM
from noonmark.errors import ConfigError, RefusedHere, SourceStalled
from noonmark.peer import ask
from noonmark.source.impl.kafka.client import (
    TIMEOUT_S,
    Options,
    at_timestamp,
    beginnings,
    describe,
    ends,
    errors,
    open_admin,
)
from noonmark.source.impl.kafka.source import Kafka

_TRIES, _PAUSE_S = 11, 0.2
_LOOK_S = 0.5
_NOT_LET_IN = (KafkaError._AUTHENTICATION, KafkaError._SSL)


@dataclass(frozen=True)
class StartFrom:
    """START OFFSET by partition (a list counts from partition 0), or START TIMESTAMP in ms.

    A negative timestamp is relative to now.
    """

    offsets: Mapping[int, int] = field(default_factory=dict)
    timestamp_ms: int | None = None


async def create(options: Options, topic: str, group: str, start: StartFrom | None = None) -> Kafka:
    """A source over a topic.

    Raises:
        ConfigError: the topic does not exist, or the start cannot be.
        SourceStalled: the brokers do not answer.
    """
    return await _answered(partial(_create, options, topic, group, start or StartFrom()))


async def renew(source: Kafka) -> Kafka:
    """The next incarnation of a source: whatever topic has its name now, read anew.

    Raises:
        ConfigError: there is no topic of that name.
        SourceStalled: the brokers do not answer.
    """
    return await _answered(partial(_renew, source))


async def _answered(asking: Callable[[], Kafka]) -> Kafka:
    for left in reversed(range(_TRIES)):
        began_s = SYSTEM.monotonic()
        try:
            return await ask("statement", "on Kafka", asking)
        except RefusedHere:
            raise
        except SourceStalled:  # a topic that was just made may have no leader yet
            if not left or SYSTEM.monotonic() - began_s >= TIMEOUT_S:  # or nobody answers
                raise
        await asyncio.sleep(_PAUSE_S)
    raise AssertionError("the last try returns or raises")


def _renew(source: Kafka) -> Kafka:
    admin = open_admin(source.options)
    _require(admin, source.topic)
    found = describe(admin, source.topic)
    first = beginnings(admin, source.topic, found.partitions)
    if found.id == source.topic_id:
        end, asked = ends(admin, source.topic, found.partitions), dict(source.start)
        first = {p: max(offset, min(asked.get(p, 0), end[p])) for p, offset in first.items()}
    start = tuple(sorted(first.items()))
    return replace(source, topic_id=found.id, start=start, incarnation=source.incarnation + 1)


def _create(options: Options, topic: str, group: str, start: StartFrom) -> Kafka:
    admin = open_admin(options)
    _require(admin, topic)
    found = describe(admin, topic)
    first = beginnings(admin, topic, found.partitions)
    if start.timestamp_ms is not None:
        end = ends(admin, topic, found.partitions)
        at = at_timestamp(admin, topic, found.partitions, start.timestamp_ms)
        first = {p: end[p] if offset < 0 else offset for p, offset in at.items()}
    for partition, offset in start.offsets.items():
        if partition not in first:
            raise ConfigError(f'topic "{topic}" has no partition {partition}')
        if offset < first[partition]:
            raise ConfigError(
                f"partition {partition} of topic {topic!r} begins at offset {first[partition]}",
                detail=f"START OFFSET {offset} is gone.",
            )
        first[partition] = offset
    return Kafka(options, topic, found.id, group, tuple(sorted(first.items())))


def _require(admin: AdminClient, topic: str) -> None:
    with errors():
        there = admin.list_topics(timeout=TIMEOUT_S).topics
    if topic not in there:
        raise ConfigError(f'topic "{topic}" does not exist')


async def validate(options: Options) -> None:
    """VALIDATE CONNECTION: whether brokers answer, and let us in.

    Raises:
        ConfigError: they do not.
    """
    try:
        await ask("statement", "on Kafka", partial(_ask, options))
    except RefusedHere:
        raise
    except SourceStalled as error:
        raise ConfigError(error.message) from error


def _ask(options: Options) -> None:
    """A client tries again for as long as it is let; who is not let in need not wait for that."""
    heard: list[Any] = []
    admin = open_admin(options, heard.append)
    for left in reversed(range(int(TIMEOUT_S / _LOOK_S))):
        try:
            with errors():
                found = admin.list_topics(timeout=_LOOK_S)
            admin.check(found.brokers.values())
            return
        except RefusedHere:
            raise
        except SourceStalled:
            admin.poll(0)
            why = [each.str() for each in heard if each.code() in _NOT_LET_IN]
            if why:
                raise ConfigError(f"Kafka does not let us in: {why[0]}") from None
            if not left:
                raise
