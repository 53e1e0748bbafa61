"""A sink that ends at any point, and begins again, sends every change once (`noonmark.sink.run`).

What is committed is a list here; that Kafka's transactions are such a list is shown by
`tests/integration/test_sink_kafka.py` and `test_sink_kafka_kill.py`.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.errors import Indeterminate
from noonmark.persist.client import Options
from noonmark.rows.schema import Schema
from noonmark.sink.encode import JsonEncoding
from noonmark.sink.envelope import Envelope, Message
from noonmark.sink.kafka import Writer
from noonmark.sink.run import Sink
from noonmark.tvc import Update

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
        if frontier > TIMES:
            self.stop()
        return len(made)

    def close(self) -> None:
        pass


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


def _drive(client: Any, envelope: Envelope, topic: Topic, writer: Committed) -> None:
    """One life of the sink: until it fails, or all is sent, or nothing more comes."""
    if topic.frontier == TIMES + 1:
        return
    sink = Sink(client, "v", envelope, cast(Writer, writer), SYSTEM)
    sink.prepare()
    writer.stop = sink.stop
    stopper = threading.Timer(0.3 if writer.fails_after > 0 else 10, sink.stop)
    stopper.start()
    try:
        sink.run()
    except Indeterminate:
        pass
    finally:
        stopper.cancel()
        sink.close()
