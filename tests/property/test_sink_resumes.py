"""A sink that ends at any point, and begins again, sends every change once (`noonmark.sink.run`).

What is committed is a list here; that Kafka's transactions are such a list is shown by
`tests/integration/test_sink_kafka.py` and `test_sink_kafka_kill.py`.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.errors import DefiniteError, Indeterminate
from noonmark.persist.client import Options
from noonmark.persist.log import command as c
from noonmark.persist.log.definite import Failure
from noonmark.rows.schema import Schema
from noonmark.sink.encode import JsonEncoding
from noonmark.sink.envelope import Envelope, Message
from noonmark.sink.kafka import Writer
from noonmark.sink.run import Sink
from noonmark.tvc import Update

FAILURE = Failure("55000", "column x was dropped")
ROWS = Schema.of(id="bigint not null", v="text")
TIMES = 12


@dataclass
class Topic:
    """What is committed: messages, and the frontier that they complete."""

    messages: list[Message] = field(default_factory=list)
    frontier: int | None = None


@dataclass
class Committed:
    """A writer to a topic that fails once, before a commit or after it."""

    topic: Topic
    fails_after: int
    loses_answer: bool
    stop: Callable[[], None] = lambda: None
    id: str = "sink"
    until: int = TIMES
    is_fenced: bool = False

    def open(self) -> int | None:
        return self.topic.frontier

    def write(self, messages: Iterable[Message], frontier: int) -> int:
        made = list(messages)
        self.fails_after -= 1
        if self.fails_after == 0 and not self.loses_answer:
            raise Indeterminate("not committed")
        self.topic.messages += made
        self.topic.frontier = frontier
        if self.fails_after == 0:
            raise Indeterminate("committed, and nobody was told")
        if frontier > self.until:
            self.stop()
        return len(made)

    def fence(self) -> None:
        self.is_fenced = True

    def close(self) -> None:
        assert self.is_fenced


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["UPSERT", "DEBEZIUM"])
def test_every_change_is_sent_once(tmp_path: Path, seed: int, kind: Any) -> None:
    chance = random.Random(seed)
    topic = Topic()
    envelope = Envelope(kind, ROWS, ("id",), JsonEncoding(ROWS, ("id",)))
    expected = 0
    with persist.open(tmp_path, options=Options(notify_host=None)) as client:
        handle = client.create_or_load("v", ROWS)[0]
        present: dict[int, tuple[int, str]] = {}
        for time in range(TIMES + 1):
            updates = []
            for key in chance.sample(range(4), chance.randrange(3) or time // TIMES):
                if old := present.pop(key, None):
                    updates.append(Update(old, time, -1))
                if not old or chance.random() < 0.6:
                    present[key] = (key, f"{key} at {time}")
                    updates.append(Update(present[key], time, 1))
                expected += time > 0
            handle.compare_and_append(updates, time, time + 1).result()
            if time == 0:
                expected += len(present)
                _drive(client, envelope, topic, Committed(topic, 2, chance.random() < 0.5))
        for fails_after in (2, 3, 2, 3, -1):
            writer = Committed(topic, fails_after, chance.random() < 0.5)
            _drive(client, envelope, topic, writer)
    assert topic.frontier == TIMES + 1
    assert len(topic.messages) == expected
    assert len(set(topic.messages)) == expected


def _drive(
    client: Any,
    envelope: Envelope,
    topic: Topic,
    writer: Committed,
    told: list[Any] | None = None,
) -> None:
    """One life of the sink: until it fails, or all is sent, or what it reads is in error."""
    if topic.frontier == TIMES + 1:
        return
    sink = Sink(client, "v", envelope, cast(Writer, writer), SYSTEM)
    sink.prepare()
    writer.stop = sink.stop
    told = [] if told is None else told

    def hear(error: DefiniteError | None) -> None:
        told.append(error)
        if error is not None:
            sink.stop()

    sink.on_error = hear
    stopper = threading.Timer(0.3 if writer.fails_after > 0 else 10, sink.stop)
    stopper.start()
    try:
        sink.run()
    except DefiniteError as error:
        told.append(error)
    except Indeterminate:
        pass
    finally:
        stopper.cancel()
        assert sink.leave().result(5) is None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["UPSERT", "DEBEZIUM"])
def test_over_errors_every_change_is_sent_once(tmp_path: Path, seed: int, kind: Any) -> None:
    """The collection is in error over [3, 6) and [8, 10), and the sink ends at any point."""
    chance = random.Random(f"errors/{seed}")
    topic, told = Topic(), list[Any]()
    envelope = Envelope(kind, ROWS, ("id",), JsonEncoding(ROWS, ("id",)))
    errors = {3: FAILURE, 6: None, 8: FAILURE, 10: None}
    present: dict[int, tuple[int, str]] = {}
    with persist.open(tmp_path, options=Options(notify_host=None)) as client:
        handle = client.create_or_load("v", ROWS)[0]
        for time in range(TIMES + 1):
            updates = []
            for key in {*chance.sample(range(4), chance.randrange(3)), time % 4}:
                if old := present.pop(key, None):
                    updates.append(Update(old, time, -1))
                if not old or chance.random() < 0.6:
                    present[key] = (key, f"{key} at {time}")
                    updates.append(Update(present[key], time, 1))
            txn = client.atomic()
            if time in errors:
                txn.add(c.SetError(handle.collection, time, errors[time]))
            txn.append(handle, updates, time, time + 1).commit().result()
            if time in (0, 1, 4, 7, 9, 11):
                fails_after = -1 if time in (4, 9) else chance.choice([1, 2, -1])
                writer = Committed(topic, fails_after, chance.random() < 0.5, until=time)
                _drive(client, envelope, topic, writer, told)
            if errors.get(max(at for at in (0, *errors) if at <= time)):
                assert (topic.frontier or 0) <= max(at for at in errors if at <= time)
        _drive(client, envelope, topic, Committed(topic, -1, False), told)
    assert topic.frontier == TIMES + 1
    assert {getattr(each, "message", None) for each in told} == {None, FAILURE.message}
    assert _applied(topic.messages, kind) == dict(present.values())


def _applied(messages: list[Message], kind: str) -> dict[int, str]:
    """What the messages make, each of which follows on what the ones before it made."""
    found: dict[int, str] = {}
    for each in messages:
        key, said = json.loads(each.key or b"")["id"], json.loads(each.value or b"null")
        if kind == "DEBEZIUM":
            before, said = said["before"], said["after"]
            assert (before and before["v"]) == found.get(key), "one was lost, or sent twice"
        if said is None:
            assert found.pop(key, None) is not None or kind == "UPSERT"
        else:
            assert found.get(key) != said["v"], "it was sent twice"
            found[key] = said["v"]
    return found
