"""The topic of a sink from a table of accounts between which money moves, as its readers see it.

Every transfer is one transaction here, so one time. Of what a reader of committed records sees:

- complete and once: each message of an account begins with the row that the last one ended with; so
  a snapshot that is sent again is seen, too;
- consistent: after all messages of any one time, the total is the same;
- in order: times never go back, and the progress that was committed lies beyond all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from noonmark.sink.kafka import TIME_HEADER
from noonmark.source.impl.kafka.client import ends, ends_of_all
from support.ingest.world import Violation
from support.neighbour.kafka import KafkaServer

ACCOUNTS, CENTS = 8, 100
_LOOKS, _LOOK_S = 600, 0.1


@dataclass
class SinkTopic:
    """One topic, and the topic of the progress of its sink, which may be that of others too."""

    kafka: KafkaServer
    topic: str
    progress: str
    sink: str = ""
    messages: int = 0
    times: int = 0

    def records(self) -> list[Any]:
        """The committed ones."""
        return self._of(self.topic)

    def _of(self, topic: str) -> list[Any]:
        names = self.kafka.admin().list_topics(timeout=30).topics
        return self.kafka.committed_records(topic) if topic in names else []

    def sinks(self) -> set[str]:
        """All sinks that have progress."""
        return {each.key().decode() for each in self._of(self.progress)}

    def has_open(self) -> bool:
        """Whether a transaction is open in the topic of progress."""
        admin = self.kafka.admin()
        partitions = (admin, self.progress, (0,))
        return ends(*partitions)[0] < ends_of_all(*partitions)[0]

    def check(self) -> dict[int, int]:
        """What the messages make of the accounts, if they are as they should be."""
        known: dict[int, int] = {}
        records = self.records()
        times = [int(dict(each.headers())[TIME_HEADER]) for each in records]
        if times != sorted(times):
            raise Violation("the times of messages go back")
        pairs = zip(times, records, strict=True)
        for time, group in groupby(pairs, key=lambda each: each[0]):
            for _, record in group:
                _apply(known, json.loads(record.value()))
            if sum(known.values()) != ACCOUNTS * CENTS:
                raise Violation(f"the total at {time} is {sum(known.values())}")
        self.messages, self.times = len(records), len(set(times))
        if times:
            self._check_progress(times[-1])
        return known

    def _check_progress(self, last: int) -> None:
        # Asked before the marks are read: what is open of another sink hides the newest ones, also
        # if it ends meanwhile. What is opened from now on lies behind the mark of those messages.
        hidden = self.has_open()
        marks = [
            json.loads(each.value())["frontier"]
            for each in self.kafka.committed_records(self.progress)
            if each.key().decode() == self.sink or not self.sink
        ]
        is_behind = not hidden and marks[-1] <= last
        if marks != sorted(marks) or is_behind:
            raise Violation(f"progress {marks[-3:]}, but messages up to {last}")

    def wait_for_more(self, wait: Callable[[float], object]) -> None:
        """Return when there are more messages than at the last look."""
        before = self.messages
        for _ in range(_LOOKS):
            if len(self.records()) > before:
                return
            wait(_LOOK_S)
        raise Violation(f"the sink into {self.topic} writes nothing")

    def wait_for(self, wanted: dict[int, int], wait: Callable[[float], object]) -> None:
        """Return when the topic says what the table has."""
        for _ in range(_LOOKS):
            found = self.check()
            if found == wanted:
                return
            wait(_LOOK_S)
        raise Violation(f"{self.topic} has {found}, and the table {wanted}")


def _apply(known: dict[int, int], said: dict[str, Any]) -> None:
    before, after = said["before"], said["after"]
    number = (after or before)["id"]
    if (None if before is None else before["cents"]) != known.get(number):
        raise Violation(f"account {number} had {known.get(number)}, and a message says {before}")
    known[number] = after["cents"]
