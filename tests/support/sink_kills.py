"""A server with a sink is killed again and again while money moves between accounts of a table.

Every transfer is one transaction here, so one time. Of what a reader of committed records sees:

- complete and once: each message of an account begins with the row that the last one ended with;
- consistent: after each kill, and after all messages of any one time, the total is the same;
- in order: times never go back, and the progress that was committed lies beyond all of them.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from noonmark.clock import SYSTEM
from noonmark.sink.kafka import TIME_HEADER
from support.ingest_world import Violation
from support.kafka import KafkaServer
from support.kills import Lines, running

ACCOUNTS, CENTS = 8, 100
_READY_S = 120
_LOOKS = 600

Serving = tuple[subprocess.Popen[bytes], Lines, psycopg.Connection[Any]]


@dataclass
class SinkKills:
    """One folder, one table, one topic."""

    folder: Path
    kafka: KafkaServer
    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    transfers: int = 0
    messages: int = 0
    times: int = 0

    def __post_init__(self) -> None:
        self.random = Random(f"sink kills/{self.seed}")
        self.topic = f"money-{SYSTEM.fresh_id()}"
        self.progress = f"{self.topic}-progress"
        with self._serving() as (_, _lines, session):
            session.execute("create table account (id int not null, cents int not null)")
            rows = ",".join(f"({number}, {CENTS})" for number in range(ACCOUNTS))
            session.execute(f"insert into account values {rows}".encode())
            session.execute(
                f"create connection k to kafka (broker '{self.kafka.bootstrap}')".encode()
            )
            session.execute(
                f"create sink s from account into kafka connection k (topic '{self.topic}', "
                f"progress topic '{self.progress}') key (id) format json envelope debezium".encode()
            )

    def round(self) -> None:
        """A server, some transfers, and its end a moment after the last of them.

        In every other round the sink has written by then: it is killed between two writes, and not
        before its first one.
        """
        with self._serving() as (child, lines, session):
            for _ in range(self.random.randrange(3, 60)):
                self._transfer(session)
            if self.faults["kill -9"] % 2:
                self._wait_for_more(lines)
                for _ in range(self.random.randrange(3, 60)):
                    self._transfer(session)
            lines.read(self.random.uniform(0.0, 0.05))
            child.kill()
            child.wait()
        self.faults["kill -9"] += 1
        self._check(self._records())

    def finish(self) -> None:
        """A last server brings the topic up to the table."""
        with self._serving() as (_, lines, session):
            wanted = dict(session.execute("select id, cents from account").fetchall())
            for _ in range(_LOOKS):
                found = self._check(self._records())
                if found == wanted:
                    return
                lines.read(0.1)
        raise Violation(f"the topic has {found}, and the table {wanted}")

    def _wait_for_more(self, lines: Lines) -> None:
        before = self.messages
        for _ in range(_LOOKS):
            if len(self._records()) > before:
                return
            lines.read(0.1)
        raise Violation("the sink writes nothing")

    def _transfer(self, session: psycopg.Connection[Any]) -> None:
        giver, taker = self.random.sample(range(ACCOUNTS), 2)
        cents = self.random.randrange(1, 30)
        with session.transaction():
            for account, change in ((giver, -cents), (taker, cents)):
                session.execute(
                    "update account set cents = cents + %s where id = %s", (change, account)
                )
        self.transfers += 1

    def _records(self) -> list[Any]:
        names = self.kafka.admin().list_topics(timeout=30).topics
        return self.kafka.committed_records(self.topic) if self.topic in names else []

    def _check(self, records: list[Any]) -> dict[int, int]:
        """What the messages make of the accounts, if they are as they should be."""
        known: dict[int, int] = {}
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
            marks = [
                json.loads(each.value())["frontier"]
                for each in self.kafka.committed_records(self.progress)
            ]
            if marks != sorted(marks) or marks[-1] <= times[-1]:
                raise Violation(f"progress {marks[-3:]}, but messages up to {times[-1]}")
        return known

    @contextmanager
    def _serving(self) -> Iterator[Serving]:
        with running("strict_server", self.folder) as (child, lines):
            port = lines.read(_READY_S)
            if port is None:
                raise Violation(f"a server did not start: status {child.poll()}")
            where = f"host=127.0.0.1 port={port} user=me dbname=noonmark"
            with closing(psycopg.connect(where, autocommit=True)) as session:
                yield child, lines, session


def _apply(known: dict[int, int], said: dict[str, Any]) -> None:
    before, after = said["before"], said["after"]
    number = (after or before)["id"]
    if (None if before is None else before["cents"]) != known.get(number):
        raise Violation(f"account {number} had {known.get(number)}, and a message says {before}")
    known[number] = after["cents"]
