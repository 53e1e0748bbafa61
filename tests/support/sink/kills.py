"""A server with sinks is killed again and again while money moves between accounts of a table.

What has to hold of each topic is said in `support.sink.topic`.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from noonmark.clock import SYSTEM
from support.ingest.world import Violation
from support.kill.kills import Lines, running
from support.neighbour.kafka import KafkaServer
from support.sink.topic import ACCOUNTS, CENTS, SinkTopic

_READY_S = 120


@dataclass(frozen=True)
class Serving:
    """A server process, and a session on it."""

    child: subprocess.Popen[bytes]
    lines: Lines
    session: psycopg.Connection[Any]

    def kill(self) -> None:
        """At once."""
        self.child.kill()
        self.child.wait()

    def hold(self) -> None:
        """Have the next transaction of a sink stay open (`support.sink.server`)."""
        assert self.child.stdin is not None
        self.child.stdin.write(b"hold\n")
        self.child.stdin.flush()


@dataclass
class Bank:
    """A location with a table of accounts, and topics that it is written to."""

    folder: Path
    topics: list[SinkTopic]
    random: Random
    transfers: int = 0

    def create(self) -> None:
        """The table and its sinks, which have all written."""
        bootstrap = self.topics[0].kafka.bootstrap
        with self.serving() as at:
            at.session.execute("create table account (id int not null, cents int not null)")
            rows = ",".join(f"({number}, {CENTS})" for number in range(ACCOUNTS))
            at.session.execute(f"insert into account values {rows}".encode())
            at.session.execute(f"create connection k to kafka (broker '{bootstrap}')".encode())
            for number, each in enumerate(self.topics):
                before = each.sinks()
                at.session.execute(
                    f"create sink s{number} from account into kafka connection k "
                    f"(topic '{each.topic}', progress topic '{each.progress}') "
                    "key (id) format json envelope debezium".encode()
                )
                each.wait_for_more(at.lines.read)
                (each.sink,) = each.sinks() - before
                each.check()

    @contextmanager
    def serving(self) -> Iterator[Serving]:
        """A server, killed in the end."""
        with running("sink.server", self.folder) as (child, lines):
            port = lines.read(_READY_S)
            if port is None:
                raise Violation(f"a server did not start: status {child.poll()}")
            where = f"host=127.0.0.1 port={port} user=me dbname=noonmark"
            with closing(psycopg.connect(where, autocommit=True)) as session:
                yield Serving(child, lines, session)

    def transfer(self, at: Serving, count: int) -> None:
        """Money moves so often, each time in one transaction."""
        for _ in range(count):
            giver, taker = self.random.sample(range(ACCOUNTS), 2)
            cents = self.random.randrange(1, 30)
            with at.session.transaction():
                for account, change in ((giver, -cents), (taker, cents)):
                    at.session.execute(
                        "update account set cents = cents + %s where id = %s", (change, account)
                    )
        self.transfers += count

    def check(self) -> None:
        """Every topic, as it is now."""
        for each in self.topics:
            each.check()

    def finish(self, at: Serving) -> None:
        """Every topic comes up to the table."""
        wanted = dict(at.session.execute("select id, cents from account").fetchall())
        for each in self.topics:
            each.wait_for(wanted, at.lines.read)


@dataclass
class SinkKills:
    """One folder, one table, one topic."""

    folder: Path
    kafka: KafkaServer
    seed: int
    faults: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = Random(f"sink kills/{self.seed}")
        name = f"money-{SYSTEM.fresh_id()}"
        self.topic = SinkTopic(self.kafka, name, f"{name}-progress")
        self.bank = Bank(self.folder, [self.topic], self.random)
        self.bank.create()

    def round(self) -> None:
        """A server, some transfers, and its end a moment after the last of them.

        In every other round the sink has written by then: it is killed between two writes, and not
        before its first one.
        """
        with self.bank.serving() as at:
            self.bank.transfer(at, self.random.randrange(3, 60))
            if self.faults["kill -9"] % 2:
                self.topic.wait_for_more(at.lines.read)
                self.bank.transfer(at, self.random.randrange(3, 60))
            at.lines.read(self.random.uniform(0.0, 0.05))
            at.kill()
        self.faults["kill -9"] += 1
        self.bank.check()

    def finish(self) -> None:
        """A last server brings the topic up to the table."""
        with self.bank.serving() as at:
            self.bank.finish(at)
