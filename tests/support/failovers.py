"""Servers that stand by for each other, clients that reconnect, and what they must never see.

One server writes and one stands by; the writer is killed, and another standby is started. Clients
know both addresses, as libpq does. A violation is

    lost      a row that was acknowledged, and is not there
    back      a strict read that does not have what an earlier one had, or a write before it
    late      a client that no server answered for longer than `BACK_S`
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

import psycopg

from noonmark.clock import SYSTEM
from support.serve_process import command
from support.servers import free_ports

BACK_S = 10.0


@dataclass
class Pair:
    """Two places for servers on one location.

    Attributes:
        options: where it is.
        ports: of PostgreSQL's protocol, one a place.
        running: the process at each place.
    """

    options: tuple[str, ...]
    ports: list[int]
    log: IO[bytes]
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, place: int) -> None:
        """A standby, which writes as soon as nobody else does."""
        listen = ("--pg", f"127.0.0.1:{self.ports[place]}", "--http", "127.0.0.1:0")
        self.running[place] = subprocess.Popen(
            command(*self.options, *listen, "--standby"),
            stdout=subprocess.PIPE,
            stderr=self.log,
        )

    def await_ready(self, place: int) -> None:
        """Until the server at a place serves."""
        stdout = self.running[place].stdout
        assert stdout is not None
        line = stdout.readline()
        assert line.startswith(b"ready"), line

    def kill(self, place: int) -> None:
        """At once, without a word."""
        process = self.running.pop(place)
        process.send_signal(signal.SIGKILL)
        process.communicate()

    def connect(self) -> psycopg.Connection:
        """A connection to whoever answers, as libpq looks for one."""
        return psycopg.connect(
            host="127.0.0.1,127.0.0.1",
            port=",".join(map(str, self.ports)),
            user="me",
            dbname="noonmark",
            autocommit=True,
            connect_timeout=5,
        )


@contextmanager
def pair(*options: str) -> Iterator[Pair]:
    """Two places, of which the first writes."""
    with tempfile.TemporaryFile() as log:
        made = Pair(options, free_ports(2), log)
        try:
            made.start(0)
            made.await_ready(0)
            made.start(1)
            yield made
        finally:
            for place in list(made.running):
                made.kill(place)


@dataclass
class Client:
    """Writes one number after the other, reads after each, and reconnects."""

    pair: Pair
    who: int
    stopping: threading.Event
    wrong: list[str] = field(default_factory=list)
    acknowledged: int = 0
    sure: set[int] = field(default_factory=set)
    tried: int = 0
    waits_s: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Until it is told to stop."""
        silent_since = SYSTEM.monotonic()
        while not self.stopping.is_set():
            try:
                with self.pair.connect() as connection:
                    while not self.stopping.is_set():
                        self._step(connection)
                        waited_s = SYSTEM.monotonic() - silent_since
                        if waited_s > 1.0:
                            self.waits_s.append(waited_s)
                        silent_since = SYSTEM.monotonic()
            except psycopg.OperationalError:
                self.stopping.wait(0.05)

    def _step(self, connection: psycopg.Connection) -> None:
        # What was tried and not acknowledged may be there: the next number is a new one.
        self.tried += 1
        connection.execute("insert into told values (%s, %s)", (self.who, self.tried))
        self.acknowledged = self.tried
        self.sure.add(self.tried)
        row = connection.execute("select max(n) from told where who = %s", (self.who,)).fetchone()
        assert row is not None
        if row[0] != self.tried:
            self.wrong.append(f"back: client {self.who} wrote {self.tried} and read {row[0]}")


def fail_over(made: Pair, times: int, clients: int = 3) -> tuple[list[str], list[float]]:
    """Kill the writer so many times; returns violations, and how long clients waited."""
    with made.connect() as connection:
        connection.execute("create table told (who int, n int, primary key (who, n))")
    stopping = threading.Event()
    every = [Client(made, who, stopping) for who in range(clients)]
    threads = [threading.Thread(target=each.run) for each in every]
    for thread in threads:
        thread.start()
    try:
        for number in range(times):
            before = [each.acknowledged for each in every]
            stopping.wait(1.0)
            made.kill(number % 2)
            made.await_ready(1 - number % 2)
            made.start(number % 2)
            until = SYSTEM.monotonic() + BACK_S
            while SYSTEM.monotonic() < until and any(
                each.acknowledged <= old for each, old in zip(every, before, strict=True)
            ):
                stopping.wait(0.05)
    finally:
        stopping.wait(1.0)
        stopping.set()
        for thread in threads:
            thread.join()
    wrong = [each for client in every for each in client.wrong]
    waits_s = [each for client in every for each in client.waits_s]
    wrong += [f"late: a client waited {each:.1f} s" for each in waits_s if each > BACK_S]
    with made.connect() as connection:
        for client in every:
            there = {
                row[0]
                for row in connection.execute("select n from told where who = %s", (client.who,))
            }
            # Those that were tried and failed may be there or not.
            if lost := client.sure - there:
                wrong.append(f"lost: client {client.who}, {sorted(lost)[:5]}")
    return wrong, waits_s
