"""FROM POSTGRES as a source: see `noonmark.source.contract` for what each call promises.

Partition 0 is the log; an offset is the end of a commit record, so a transaction is never split.
What is bound, read from and confirmed is a `Position`: exact, and beyond every acknowledged commit.
Every row of the snapshot stands at `start_lsn`, where the slot began; the stream follows. What ends
a table for good (`Fate`) is bound too: partition k + 1 is table k, partition -1 the source as a
whole, and the offset says what happened. So such an error has a time, and is the same for all.

The snapshot is read under `Held`, which lives in the driver's process. When that process ends
before the snapshot is durable, another one is taken later, at c': tables with whole old rows take
back what the log says happened in between, so every offset has the same rows as before. A keyed
table cannot, as the log has no old rows of it: there the keys that were touched in between have,
from `start_lsn` on, the values that they had at c'; from c' on it is exact.

Where it runs: as the contract says; calls that wait for upstream do so in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
import psycopg
import pyarrow as pa

from noonmark.clock import Clock
from noonmark.errors import SourceBroken, SourceStalled
from noonmark.source.contract import (
    NO_OUTPUT,
    START,
    Frontier,
    Output,
    Split,
    error_batch,
    ranges,
)
from noonmark.source.impl.postgres import pgoutput
from noonmark.source.impl.postgres.builder import (
    WAL,
    Builder,
    Layout,
)
from noonmark.source.impl.postgres.describe import Fate, Table, explain
from noonmark.source.impl.postgres.keyed import KeyedDecoding, keyed_decoding
from noonmark.source.impl.postgres.position import Position, of_bound
from noonmark.source.impl.postgres.probe import WHOLE, Doom, look, probe
from noonmark.source.impl.postgres.session import connect, meaning
from noonmark.source.impl.postgres.snapshot import Held, pieces, read_piece, records
from noonmark.source.impl.postgres.stream import check_slot, messages
from noonmark.source.impl.upstream import Holding, Live, Numbered
from noonmark.tvc import Partition, known_partitions, partition_frontier

_ROWS_PER_PAGE = 50
_BYTES_PER_CHANGE = 100
_ADVANCE = """
select pg_replication_slot_advance(slot_name, %(lsn)s::pg_lsn) from pg_replication_slots
where slot_name = %(slot)s and confirmed_flush_lsn < %(lsn)s::pg_lsn and not active
"""


@dataclass
class Session(Live):
    """The driver's session, and the snapshot that it may hold."""

    held: Held | None = None
    connection: psycopg.Connection[tuple[Any, ...]] | None = None
    snapshot_is_durable: bool = False

    def session(self, url: str) -> psycopg.Connection[tuple[Any, ...]]:
        """The one session of the driver, made again when it was lost."""
        if self.connection is None or self.connection.closed:
            self.connection = connect(url)
        return self.connection

    def let_go(self) -> None:
        """Close the session and the snapshot."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        if self.held is not None:
            self.held.close()
            self.held = None


@dataclass(frozen=True)
class Postgres(Numbered, Holding):
    """See the module; made by `setup.create`.

    Attributes:
        url: libpq's connection string, with its password: never shown.
        publication: what is read.
        slot: the replication slot, which belongs to this source alone.
        start_lsn: where the slot began.
        system_id: which cluster it was made on.
        timeline: and which history of it.
        tables: what is read of the publication.
    """

    url: str = field(repr=False)
    publication: str
    slot: str
    start_lsn: int
    system_id: int
    timeline: int
    tables: tuple[Table, ...]
    _live: Session = field(default_factory=Session, init=False, repr=False, compare=False)

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """See `Source.outputs`: a keyed table is raw."""
        return tuple(
            Output(each.name, each.schema, each.key) if each.full else Output(each.name)
            for each in self.tables
        )

    @property
    def start(self) -> Position:
        """Where the slot began."""
        return of_bound(self.start_lsn + 1)

    def decoding(self, output: int) -> KeyedDecoding | None:
        """How the raw records of a keyed table become rows; None for a table that is typed."""
        table = self.tables[output]
        return None if table.full else keyed_decoding(table)

    @property
    def releases(self) -> str | None:
        """See `Source.releases`: the server may remove the log behind the slot."""
        return None

    # -- on the driver ----------------------------------------------------------------------

    def snapshot_frontier(self) -> Frontier:
        """See `HasSnapshot.snapshot_frontier`."""
        return partition_frontier({WAL: self.start.offset})

    async def latest(self, clock: Clock, known: Frontier = START) -> Frontier:
        """See `Source.latest`."""
        offsets = known_partitions(known)
        if known.is_empty() or WHOLE in offsets:
            return known
        slot = f"{self.slot[:30]}_{clock.fresh_id()}"
        return partition_frontier(await asyncio.to_thread(self._probe, offsets, slot))

    def _probe(self, known: dict[Partition, int], spare: str) -> dict[Partition, int]:
        with self._live.mutex:
            try:
                connection = self._live.session(self.url)
                found = look(connection, self, known)
                if found.doom is not None:
                    return {**known, WHOLE: int(found.doom)}
                if not found.released and not self._live.snapshot_is_durable:
                    self._hold(spare)
                return probe(connection, self, known)
            except psycopg.Error as error:
                raise SourceStalled(meaning(error).message) from error

    def _hold(self, spare: str) -> None:
        """Have a snapshot to read under, of the slot itself or of a spare one."""
        held = self._live.held
        if held is None or not held.is_alive():
            self._live.held = Held.with_slot(self.url, spare, temporary=True)

    def plan(self, lower: Frontier, upper: Frontier) -> list[Split]:
        """See `Source.plan`."""
        splits: list[Split] = []
        for partition, start, stop in ranges(lower, upper):
            if partition != WAL:
                splits += [Split(partition, start, stop)] if start == 0 else []
                continue
            held = self._live.held
            if start <= self.start_lsn:
                splits += self._plan_snapshot(held.name if held else "", stop)
            first = max(start, self.start.offset)
            rewound = held.position.lsn if held and start <= self.start_lsn else self.start_lsn
            if first < stop or rewound > self.start_lsn:
                weight = 1 + (stop - first) // _BYTES_PER_CHANGE
                splits.append(Split(WAL, start, stop, ("stream", rewound), weight))
        return splits

    def _plan_snapshot(self, name: str, stop: int) -> list[Split]:
        if stop <= self.start_lsn:
            return []
        splits = []
        end = self.start.offset
        for number, table in enumerate(self.tables):
            for first, last in pieces(table):
                pages = max(table.pages if last < 0 else last, first + 1) - first
                # No change of a key is read with its row: then the row needs no envelope.
                alone = int(stop == end)
                piece = ("table", number, first, last, name, alone)
                splits.append(Split(WAL, 0, end, piece, _ROWS_PER_PAGE * pages))
        return splits

    async def release(self, frontier: Frontier) -> None:
        """See `Source.release`: the slot moves, and the server may forget."""
        offset = known_partitions(frontier).get(WAL, 0)
        if offset >= self.start.offset:
            await asyncio.to_thread(self._release, of_bound(offset))

    def _release(self, position: Position) -> None:
        with self._live.mutex:
            self._live.snapshot_is_durable = True
            if self._live.held is not None:
                self._live.held.close()
                self._live.held = None
            try:
                values = {"slot": self.slot, "lsn": str(position)}
                self._live.session(self.url).execute(_ADVANCE, values)
            except psycopg.errors.ObjectInUse:
                return  # a reader is still on its way out: the next release goes as far, or farther
            except psycopg.Error as error:
                raise SourceStalled(meaning(error).message) from error

    # -- on executors -----------------------------------------------------------------------

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """See `Source.read`."""
        if split.partition != WAL:
            yield self._fate(split)
        elif split.piece[0] == "table":
            yield from self._read_table(*split.piece[1:])
        else:
            yield from self._read_stream(split, int(split.piece[1]))

    def _fate(self, split: Split) -> pa.RecordBatch:
        number = int(split.partition)
        if number == WHOLE:
            output, reason = NO_OUTPUT, Doom(split.upper).explain(self.slot, self.publication)
        else:
            output = number - 1
            reason = explain(self.tables[output], Fate(split.upper))
        row = (split.upper - 1, None, None, reason)
        return error_batch("number", number, [row], output)

    def _read_table(
        self, output: Any, first: Any, last: Any, name: Any, alone: Any
    ) -> Iterator[pa.RecordBatch]:
        if not name:
            raise SourceStalled("no snapshot is held; one will be taken")
        table = self.tables[output]
        is_typed = table.full or bool(alone)
        for fields in read_piece(self.url, table, first, last, name):
            yield from records(table, output, self.start_lsn, fields, is_typed=is_typed)

    def _read_stream(self, split: Split, rewound: int) -> Iterator[pa.RecordBatch]:
        lower = max(split.lower, self.start.offset)
        check_slot(self.url, self.slot, of_bound(lower))
        try:
            if rewound > self.start_lsn:
                builders = [Builder(t, at, sign=-1) for at, t in enumerate(self.tables) if t.full]
                replay = _Replay(builders, commit_below=rewound, offset=self.start_lsn)
                yield from replay.run(self._messages(self.start, of_bound(rewound + 1)))
            if lower < split.upper:
                builders = [Builder(table, at) for at, table in enumerate(self.tables)]
                replay = _Replay(builders, lower=lower, upper=split.upper)
                yield from replay.run(self._messages(of_bound(lower), of_bound(split.upper)))
        except SourceBroken as error:
            error.fields.setdefault("offset", lower)
            raise

    def _messages(self, start: Position, stop: Position) -> Iterator[pgoutput.Message]:
        return messages(self.url, self.slot, self.publication, (start, stop))

    # -- as plain data ----------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """Everything but the connection, for a catalog."""
        made: dict[str, Any] = msgspec.to_builtins(
            {name: self.__dict__[name] for name in self.__getstate__() if name != "url"}
        )
        return made

    @classmethod
    def from_plain(cls, url: str, plain: dict[str, Any]) -> Postgres:
        """The inverse of `to_plain`."""
        tables = msgspec.convert(plain["tables"], tuple[Table, ...])
        return cls(url, **{**plain, "tables": tables})


@dataclass
class _Replay:
    """Messages of the log to batches: those transactions that the bounds let through.

    `offset` stands in for that of each transaction when it is given: rewinding.
    """

    builders: list[Builder]
    lower: int = 0
    upper: int | None = None
    commit_below: int | None = None
    offset: int | None = None

    def run(self, stream: Iterator[pgoutput.Message]) -> Iterator[pa.RecordBatch]:
        by_oid = {builder.table.oid: builder for builder in self.builders}
        touched: set[int] = set()
        for message in stream:
            if isinstance(message, pgoutput.Change):
                if message.relation in by_oid:
                    by_oid[message.relation].add(message)
                    touched.add(message.relation)
            elif isinstance(message, pgoutput.Commit):
                for oid in touched:
                    yield from self._end(by_oid[oid], message)
                touched.clear()
            elif isinstance(message, pgoutput.Relation):
                if message.oid in by_oid:
                    builder = by_oid[message.oid]
                    builder.layout = Layout.of(builder.table, message)
            elif isinstance(message, pgoutput.Truncate):
                for oid in set(message.relations) & set(by_oid):
                    by_oid[oid].truncate()
                    touched.add(oid)
        for builder in self.builders:
            builder.discard()
            yield from builder.batches()

    def _end(self, builder: Builder, commit: pgoutput.Commit) -> Iterator[pa.RecordBatch]:
        if not self._wanted(commit):
            builder.discard()
            return
        builder.commit(commit.end_lsn if self.offset is None else self.offset)
        if builder.is_full:
            yield from builder.batches()

    def _wanted(self, commit: pgoutput.Commit) -> bool:
        if self.commit_below is not None and commit.commit_lsn >= self.commit_below:
            return False
        return commit.end_lsn >= self.lower and (self.upper is None or commit.end_lsn < self.upper)
