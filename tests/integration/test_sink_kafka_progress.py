"""Two sinks on one topic and one progress topic: what one does is nobody else's progress.

A transaction that another sink left open hides what is committed behind it; a sink that is opened
then waits, and sends nothing twice.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import Indeterminate
from noonmark.sink.envelope import Message
from noonmark.sink.kafka import Writer
from support.neighbour.kafka import KafkaServer


def messages(*words: str) -> Iterator[Message]:
    return (Message(word.encode(), word.encode(), at) for at, word in enumerate(words))


@contextmanager
def left_open(writer: Writer) -> Iterator[None]:
    """A transaction of a writer that hangs, or was killed, inside of it."""
    assert writer._producer is not None
    writer._producer.begin_transaction()
    writer._produce(writer._topic, b"open", b"open", None)
    writer._produce(writer._progress_topic, writer.id.encode(), b'{"frontier": 99}', None)
    writer._producer.flush(10)
    yield


def test_progress_behind_an_open_transaction_is_found(kafka_server: KafkaServer) -> None:
    name = SYSTEM.fresh_id()
    topic, progress = f"shared-{name}", f"shared-{name}-progress"

    def writer(who: str) -> Writer:
        return Writer(kafka_server.options, topic, progress, f"{name}-{who}")

    first, second = writer("first"), writer("second")
    assert first.open() is None
    assert second.open() is None
    first.write(messages("a"), 1)
    second.write(messages("b"), 7)
    with left_open(first):
        second.write(messages("c"), 8)
        again = writer("second")
        with pytest.raises(Indeterminate, match="another sink is open"):
            again.open()
        # Whoever left it open comes back, and ends it: it never happened.
        threading.Timer(1.0, lambda: frontiers.append(writer("first").open())).start()
        frontiers: list[int | None] = []
        assert again.open() == 8, "and not 7, nor nothing"
    again.write(messages("d"), 9)
    while not frontiers:
        threading.Event().wait(0.05)
    assert frontiers == [1]
    found = [record.value() for record in kafka_server.committed_records(topic)]
    assert found == [b"a", b"b", b"c", b"d"]
