"""A sink at work: snapshot once, then every step of the collection, as transactions.

    nothing committed   the contents at the newest complete time, then what follows
    frontier f          what happened at f and later

From its first breath a sink holds the history that it may still need: before it knows how far Kafka
is, all that there is; then what lies before the committed frontier. The hold has no lease: it is
the sink's, not the process's, so that a sink that was stopped, killed or paused for however long
finds what it has yet to send. It goes with the commit that drops the sink.

At a definite error of the collection the topic stays as it was before it; `on_error` is told. When
the error is retracted, what happened meanwhile follows in one transaction, and all that is after.

A time without changes costs no transaction; once in a while the frontier alone is written, so that
history is not kept for nothing.

Kafka is called by the sink's peer: `leave` lets go of whoever waits for it. What the peer goes on
with then, a writer that was fenced, commits nothing more than the transaction that it was already
committing; whether that came to be, the next `open` of this sink tells, as after a crash.

Where it runs: a thread of its own; `Sink.prepare` on persist's loop; the writer in its peer's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from noonmark.clock import Clock
from noonmark.errors import DefiniteError, Stopped
from noonmark.peer import Peer
from noonmark.persist.client import Client
from noonmark.persist.hold import HoldHandle
from noonmark.persist.read.snapshot import Listen, Snapshot, Step
from noonmark.rows.arrow import from_table
from noonmark.rows.identity import hashable
from noonmark.rows.schema import Schema
from noonmark.sink.envelope import Envelope
from noonmark.sink.kafka import Writer
from noonmark.sink.keys import Keys
from noonmark.storage.transaction import take_up_read
from noonmark.tvc import Antichain

PROGRESS_S = 5.0
_LOOK_S = 0.1


def hold_id(sink_id: str) -> str:
    """The hold of a sink on what it reads."""
    return f"sink/{sink_id}"


@dataclass
class Sink:
    """One collection into one topic."""

    client: Client
    collection: str
    envelope: Envelope
    writer: Writer
    clock: Clock
    peer: Peer = field(default_factory=lambda: Peer("sink"))
    on_error: Callable[[DefiniteError | None], None] = lambda _: None
    messages: int = 0
    frontier: int | None = None
    _hold: HoldHandle | None = None
    _listen: Listen | None = None
    _stopping: bool = False
    _told: float = field(default=0.0)
    _keys: Keys = field(default_factory=Keys)

    def prepare(self) -> None:
        """Hold what history is needed, or all that there is; blocks shortly."""
        number = self.client.state.collection(self.collection).id
        taking = take_up_read(self.client, hold_id(self.writer.id), number)
        self._hold = self.client.runtime.submit(taking).result()

    def run(self) -> None:
        """Write until `stop`, or until something fails: then call it again.

        Raises:
            Indeterminate: Kafka failed.
            Fenced: another process writes to this sink.
            UniqueViolation: the key does not tell rows apart.
        """
        self.frontier, self._keys = self.peer.wait(self.writer.open), Keys()
        if self.frontier is None:
            self._snapshot()
        elif self.envelope.kind == "UPSERT":
            self._know_keys(self.frontier - 1)
        if self.frontier is None or self._stopping:
            return
        read = self.client.create_or_load(self.collection)[1]
        self._listen = self.client.runtime.submit(
            read.open_listen(self.frontier - 1, hold=False, over_errors=True)
        ).result()
        self._told = self.clock.monotonic()
        while not self._stopping:
            step = self._next(self._listen)
            upper = None if step is None else step.progress.only()
            if step is None or upper is None:
                return
            due = self.clock.monotonic() - self._told >= PROGRESS_S
            if step.table.num_rows or due:
                self._write(self._updates(step.table), upper)

    def _next(self, listen: Listen) -> Step | None:
        """The next step; one that there is only after an error is waited for."""
        failed = False
        while not self._stopping:
            try:
                step = self.client.runtime.submit(listen.next()).result()
            except DefiniteError as error:
                failed = True
                self.on_error(error)
                self.client.runtime.submit(self.clock.sleep(_LOOK_S)).result()
                continue
            if failed:
                self.on_error(None)
            return step
        return None

    def stop(self) -> None:
        """End after the transaction that is under way; from any thread."""
        self._stopping = True
        if self._listen is not None:
            self._listen.cancel()

    def leave(self) -> Future[Any]:
        """Let go of Kafka, whether it answers or not; the hold on history stays.

        The future is done when the writer is closed.
        """
        self.writer.fence()
        return self.peer.leave(self.writer.close)

    def _snapshot(self) -> None:
        read = self.client.create_or_load(self.collection)[1]
        upper = read.upper.only()
        since = read.since.only()
        if upper is None or since is None:
            raise Stopped(f'"{self.collection}" has ended')
        time = max(since, upper - 1)
        found = self._soon(read.snapshot(time))
        if found is None:
            return
        self.on_error(None)
        rows = (
            (row, time, diff)
            for table in found.tables()
            for row, diff in _rows(table, self.envelope.schema)
        )
        self._write(rows, time + 1)

    def _know_keys(self, time: int) -> None:
        """Which keys have a row in the topic: those that had one in the collection at that time."""
        read = self.client.create_or_load(self.collection)[1]
        names = self.envelope.key
        found = self._soon(read.snapshot(time, columns=list(names)))
        columns = Schema(tuple(self.envelope.schema[name] for name in names))
        tables = () if found is None else found.tables()
        of = self.envelope.key_bytes
        self._keys = Keys.of(
            (of(key), diff) for table in tables for key, diff in _rows(table, columns)
        )

    def _soon(self, wanted: Future[Snapshot]) -> Snapshot | None:
        """What comes, unless the sink is stopped first: a time may take long to be complete."""
        while not self._stopping:
            try:
                return wanted.result(_LOOK_S)
            except TimeoutError:
                continue
        wanted.cancel()
        return None

    def _write(self, updates: Iterator[tuple[Any, int, int]], upper: int) -> None:
        messages = self.envelope.messages(updates, self._keys)
        self.messages += self.peer.wait(partial(self.writer.write, messages, upper))
        self.frontier = upper
        self._told = self.clock.monotonic()
        if self._hold is not None:
            held = Antichain.of(upper - 1)
            self.client.runtime.submit(self._hold.downgrade_soon(held)).result()

    def _updates(self, table: pa.Table) -> Iterator[tuple[Any, int, int]]:
        times = table.column("_time").to_pylist()
        return (
            (row, time, diff)
            for time, (row, diff) in zip(times, _rows(table, self.envelope.schema), strict=True)
        )


def _rows(table: pa.Table, schema: Schema) -> Iterator[tuple[Any, int]]:
    rows = from_table(table.select(list(schema.names)), schema)
    diffs = table.column("_diff").to_pylist()
    return zip(map(hashable, rows), diffs, strict=True)
