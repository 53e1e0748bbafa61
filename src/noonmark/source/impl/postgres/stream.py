"""Reading a slot: the messages of the log from one position to another, and not one more.

The stream starts at `start` and ends when the server says that it has sent everything up to `stop`:
by a transaction that lies beyond, or by a keepalive. Nothing is confirmed to the server meanwhile,
so the slot stays where it is and the same range can be read again; only `Source.release` moves it.

A slot serves one reader at a time. Whoever finds it taken waits a little: the session of a task
that has just ended, or was given up, is on its way out.

Law (range): the transactions whose commit record lies between `start` and `stop` are yielded whole,
in order of commit; others may follow, whole, and are the caller's to leave out. No record straddles
either position, and the log is on disk up to `stop` (`position`): there is no third kind, and the
server gets there by itself.

Where it runs: executors.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGconn

from noonmark.clock import SYSTEM, Clock
from noonmark.errors import SourceBroken, SourceError, SourceStalled
from noonmark.source.impl.postgres import pgoutput
from noonmark.source.impl.postgres.position import Position
from noonmark.source.impl.postgres.session import (
    SILENT_S,
    answered,
    identifier,
    literal,
    lsn_text,
    of_result,
    ready,
    replication,
    session,
)

#: Where the payload of a message begins: behind its kind and three positions and times.
_PAYLOAD = 1 + Struct("!qqq").size
_KEEPALIVE, _KEEPALIVE_KIND = Struct("!qqB"), 0x6B
_STATUS = Struct("!cqqqqB")
#: How long to wait for a slot that somebody reads.
_TAKEN_S = 10.0
#: How long leaving a stream may take, while the server is still sending.
_LEAVE_S = 1.0
_POLL_S = 0.05
#: How often to say that we are here while there is always more: the server ends a session that it
#: has not heard of for `wal_sender_timeout`, a minute.
_STATUS_S = 5.0
_IN_USE = "55006"


def messages(
    url: str,
    slot: str,
    publication: str,
    span: tuple[Position, Position],
    clock: Clock = SYSTEM,
) -> Iterator[pgoutput.Message]:
    """The messages between the positions (start, stop); see the module."""
    start, stop = span
    with _started(url, slot, publication, start, clock) as connection:
        yield from _Reader(connection, stop, clock).read()


@contextmanager
def _started(
    url: str, slot: str, publication: str, start: Position, clock: Clock
) -> Iterator[PGconn]:
    options = f"proto_version '1', publication_names {literal(identifier(publication))}"
    text = f"START_REPLICATION SLOT {identifier(slot)} LOGICAL {start} ({options})"
    deadline = clock.monotonic() + _TAKEN_S
    while True:
        connection = replication(url)
        try:
            result = answered(connection, text)
            if result.status == pq.ExecStatus.COPY_BOTH:
                yield connection
                _end(connection, clock)
                return
            state = result.error_field(pq.DiagnosticField.SQLSTATE)
            if state != _IN_USE.encode() or clock.monotonic() > deadline:
                raise of_result(result)
        finally:
            connection.finish()
        threading.Event().wait(_POLL_S)


def _end(connection: PGconn, clock: Clock) -> None:
    """Leave the stream in order, so that the slot is free once the session is closed."""
    deadline = clock.monotonic() + _LEAVE_S
    try:
        connection.put_copy_end()
        connection.flush()
        while clock.monotonic() < deadline:
            count, _ = connection.get_copy_data(1)
            if count < 0:
                break
            if count == 0 and ready(connection, _POLL_S):
                connection.consume_input()
    except psycopg.Error:
        return  # it is over either way: what was read was read


class _Reader:
    """One pass over a stream that has been started."""

    def __init__(self, connection: PGconn, stop: Position, clock: Clock) -> None:
        self._connection = connection
        self._stop = stop.lsn
        self._clock = clock
        self._heard = self._told = clock.monotonic()
        self._done = False

    def read(self) -> Iterator[pgoutput.Message]:
        self._status(ask=True)
        in_transaction = False
        while not self._done:
            data = self._receive()
            if data is None:
                continue
            self._heard = self._clock.monotonic()
            if self._heard - self._told > _STATUS_S:
                self._status()
            if data[0] == _KEEPALIVE_KIND:
                sent, _, wants_answer = _KEEPALIVE.unpack_from(data, 1)
                if wants_answer:
                    self._status()
                self._done = sent >= self._stop and not in_transaction
                continue
            message = pgoutput.parse(data[_PAYLOAD:])
            if isinstance(message, pgoutput.Begin):
                in_transaction = True
                self._done = message.commit_lsn >= self._stop
            elif isinstance(message, pgoutput.Commit):
                in_transaction = False
                self._done = message.end_lsn >= self._stop
            if message is not None:
                yield message

    def _receive(self) -> bytes | None:
        """The next message; None when there was none for a moment."""
        try:
            count, data = self._connection.get_copy_data(1)
            if count > 0:
                return bytes(data)
            if count < 0:
                raise self._ended()
            self._wait()
        except psycopg.Error as error:
            raise SourceStalled(f"PostgreSQL ended the stream: {error}") from None
        return None

    def _wait(self) -> None:
        if ready(self._connection, _POLL_S):
            self._connection.consume_input()
            return
        now = self._clock.monotonic()
        if now - self._heard > SILENT_S:
            raise SourceStalled("PostgreSQL sends nothing, and does not say that it is done")
        self._status(ask=True)

    def _status(self, ask: bool = False) -> None:
        """Say that we are here. Position 0 confirms nothing."""
        self._told = self._clock.monotonic()
        self._connection.put_copy_data(_STATUS.pack(b"r", 0, 0, 0, 0, ask))
        self._connection.flush()

    def _ended(self) -> SourceError:
        result: Any = self._connection.get_result()
        if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
            return of_result(result)
        return SourceStalled("PostgreSQL ended the stream")


def check_slot(url: str, slot: str, start: Position) -> None:
    """Refuse a slot that has moved beyond `start`: the server would skip what lies between."""
    with session(url) as connection:
        row = connection.execute(
            "select confirmed_flush_lsn - '0/0'::pg_lsn, wal_status from pg_replication_slots"
            " where slot_name = %s and database = current_database()",
            (slot,),
        ).fetchone()
    if row is None:
        raise SourceBroken(f'replication slot "{slot}" was dropped upstream')
    if row[1] == "lost":
        raise SourceBroken(f'replication slot "{slot}" has lost its part of the log')
    if row[0] is None or row[0] > start.lsn:
        shown = "nowhere" if row[0] is None else lsn_text(int(row[0]))
        raise SourceBroken(
            f'replication slot "{slot}" stands at {shown}: the changes from {start} on are gone'
        )
