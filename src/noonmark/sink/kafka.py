"""Writing to Kafka exactly once: messages and progress are one transaction.

A sink has a transactional id of its own and a key in the progress topic. Each transaction holds the
messages of all times up to some frontier and a progress record that names it. `open` takes the id
over, which ends what an earlier writer left open and keeps it from committing ever again, and then
reads the last progress that was committed.

The progress topic is shared. While a transaction of another sink is open there, readers of
committed records see nothing behind its first record, though much of that may be committed. So the
search ends where the topic ended after the take-over, with all records counted, and waits until
what was open before that has ended: to stop earlier is to miss the newest progress, and send again.

Law (exactly once): the messages that committed transactions hold are those of the times below the
last committed progress, each once. A commit whose answer was lost is settled by `open`: either its
progress is there, or nothing of it is.
Law (consistent): a reader of committed records never sees a part of a transaction.
Law (fence): a writer that was fenced begins nothing more: topic, take-over, transaction or commit.
Its client may be in a call that nobody can end: the law holds when that comes back.

Where it runs: driver, in the thread of the sink's peer; `fence` in any.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import admin as kafka_admin

from noonmark.errors import Fenced, Indeterminate, NoonmarkError, Stopped
from noonmark.sink.envelope import Message
from noonmark.source.impl.kafka.client import (
    TIMEOUT_S,
    Options,
    beginnings,
    checked,
    ends,
    ends_of_all,
    open_admin,
    open_consumer,
    received,
)

# The client has no types for it.
_NewTopic: Any = vars(kafka_admin)["NewTopic"]

TIME_HEADER = "noonmark-timestamp"
_TRANSACTION_MS = 600_000
#: How often in a row nothing may come of what is asked for, a tenth of a second each.
_SILENT_MAX = 150
#: How long a transaction of another sink is waited for before the sink says that it waits.
_OPEN_LOOKS, _OPEN_LOOK_S = 20, 0.1
_QUIET = {"log_level": 0, "log.connection.close": False}


class Writer:
    """See the module. Not thread-safe."""

    def __init__(self, options: Options, topic: str, progress_topic: str, sink_id: str) -> None:
        self._options = options
        self._topic = topic
        self._progress_topic = progress_topic
        self.id = sink_id
        self._producer: Any = None
        self._fenced = threading.Event()

    def fence(self) -> None:
        """Let nothing more be begun; from any thread."""
        self._fenced.set()

    def _check(self) -> None:
        if self._fenced.is_set():
            raise Stopped("the sink was stopped")

    def open(self) -> int | None:
        """Become the writer; the frontier that is committed, None when nothing is.

        Raises:
            Indeterminate: brokers do not answer.
        """
        self._check()
        self.close()
        wanted = checked(self._options)
        with _errors():
            self._make_topics()
            self._check()
            self._producer = Producer(
                {
                    **_QUIET,
                    **wanted,
                    "transactional.id": self.id,
                    "transaction.timeout.ms": _TRANSACTION_MS,
                    "linger.ms": 5,
                }
            )
            self._producer.init_transactions(TIMEOUT_S)
            return self._progress()

    def write(self, messages: Iterable[Message], frontier: int) -> int:
        """Write messages and the frontier that they complete; how many there were.

        Raises:
            Indeterminate: it may or may not be written: `open` tells.
            Fenced: another writer has taken over.
        """
        with _errors():
            self._check()
            self._producer.begin_transaction()
            try:
                count = self._send(messages)
            except NoonmarkError:
                if not self._fenced.is_set():  # then whoever opens next ends it
                    self._producer.abort_transaction(TIMEOUT_S)
                raise
            progress = json.dumps({"frontier": frontier}).encode()
            self._produce(self._progress_topic, self.id.encode(), progress, None)
            self._check()
            self._producer.commit_transaction(TIMEOUT_S)
        return count

    def _send(self, messages: Iterable[Message]) -> int:
        count = 0
        for each in messages:
            headers = [(TIME_HEADER, str(each.time).encode())]
            self._produce(self._topic, each.key, each.value, headers)
            count += 1
        return count

    def close(self) -> None:
        """Let go; an open transaction is aborted by whoever opens next."""
        self._producer = None

    def _produce(self, topic: str, key: bytes | None, value: bytes | None, headers: Any) -> None:
        while True:
            self._check()
            try:
                self._producer.produce(topic, value, key, headers=headers)
            except BufferError:
                self._producer.poll(0.1)
            else:
                break
        self._producer.poll(0)

    def _make_topics(self) -> None:
        admin = open_admin(self._options)
        there = admin.list_topics(timeout=TIMEOUT_S).topics
        self._check()
        compacted = {"cleanup.policy": "compact"}
        wanted = [
            _NewTopic(name, 1, -1, config=config)
            for name, config in ((self._topic, {}), (self._progress_topic, compacted))
            if name not in there
        ]
        for made in (admin.create_topics(wanted) if wanted else {}).values():
            try:
                made.result(TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

    def _progress(self) -> int | None:
        admin, topic = open_admin(self._options), self._progress_topic
        end = ends_of_all(admin, topic, (0,))[0]
        for _ in range(_OPEN_LOOKS):
            if ends(admin, topic, (0,))[0] >= end:
                break
            threading.Event().wait(_OPEN_LOOK_S)
        else:
            raise Indeterminate(
                f'a transaction of another sink is open in "{topic}"',
                detail="The progress of this sink may lie behind it.",
                hint="It is waited for. A sink whose process died ends its own when it is started "
                "again, the brokers end it when its timeout has passed.",
            )
        start = beginnings(admin, topic, (0,))[0]
        if start >= end:
            return None
        consumer = open_consumer(self._options, f"{self.id}-progress")
        try:
            consumer.assign([TopicPartition(topic, 0, start)])
            return self._last(consumer)
        finally:
            consumer.close()

    def _last(self, consumer: Any) -> int | None:
        """The newest progress of this sink; the end of the partition ends the search."""
        found, silent = None, 0
        while silent < _SILENT_MAX:
            got = received(consumer)
            silent = 0 if got else silent + 1
            for each in got:
                error = each.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    return found
                if error is not None:
                    raise KafkaException(error)
                if each.key() == self.id.encode():
                    found = int(json.loads(each.value())["frontier"])
        raise Indeterminate("Kafka does not give the progress of the sink")


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        found = error.args[0]
        if found.code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH):
            raise Fenced("another process writes to this sink") from None
        raise Indeterminate(f"Kafka does not answer as it should: {found.str()}") from None
    except TimeoutError:
        raise Indeterminate("Kafka does not answer in time") from None
