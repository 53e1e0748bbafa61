"""FROM POSTGRES as a source: see `noonmark.source.contract` for what each call promises.

Partition 0 is the log; an offset is the end of a commit record, so a transaction is never split.
What is bound, read from and confirmed is a `Position`: exact, and beyond every acknowledged commit.
Every row of the snapshot stands at the point c that it was taken at; the stream follows. What ends
a table for good (`Fate`) is bound too: partition k + 1 is table k, partition -1 the source as a
whole, and the offset says what happened. So such an error has a time, and is the same for all.

The snapshot is read under `Held`, which lives in the driver's process and dies with it. It is bound
in the commit that makes it durable, so one that was lost was never bound: another is taken, at a
later c, for all tables. A table that was rewritten (TRUNCATE, ALTER TABLE) has lost what it held at
c: then another snapshot is taken as well, under locks that make such statements wait while it is
read, and no longer.

Where it runs: as the contract says; calls that wait for upstream do so in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
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

    async def snapshot_frontier(self, clock: Clock, probe: Frontier) -> Frontier | None:
        """See `HasSnapshot.snapshot_frontier`: with what has ended meanwhile."""
        ended = {p: offset for p, offset in known_partitions(probe).items() if p != WAL}
        if WHOLE in ended:
            return None
        slot = f"{self.slot[:30]}_{clock.fresh_id()}"
        position = await asyncio.to_thread(self._hold, slot, self._following(ended))
        return partition_frontier({**ended, WAL: position.offset})

    def _following(self, ended: Mapping[Partition, int]) -> list[Table]:
        return [table for at, table in enumerate(self.tables) if at + 1 not in ended]

    def _hold(self, spare: str, tables: list[Table]) -> Position:
        """Have a snapshot to read under, of the slot itself or of a spare one."""
        with self._live.mutex:
            held = self._live.held
            if held is None or not held.is_alive():
                held = Held.with_slot(self.url, spare, temporary=True)
            elif not held.is_whole(self.url, tables):
                held.close()
                held = Held.locked(self.url, spare, tables)
            self._live.held = held
            return held.position

    async def give_up_snapshot(self) -> None:
        """See `HasSnapshot.give_up_snapshot`: nobody waits for locks of one that is not read."""
        with self._live.mutex:
            held = self._live.held
            if held is not None and held.locks is not None:
                held.close()
                self._live.held = None

    async def latest(self, clock: Clock, known: Frontier = START) -> Frontier:
        """See `Source.latest`."""
        del clock
        offsets = known_partitions(known)
        if known.is_empty() or WHOLE in offsets:
            return known
        return partition_frontier(await asyncio.to_thread(self._probe, offsets))

    def _probe(self, known: dict[Partition, int]) -> dict[Partition, int]:
        with self._live.mutex:
            try:
                connection = self._live.session(self.url)
                doom = look(connection, self, known)
                if doom is not None:
                    return {**known, WHOLE: int(doom)}
                return probe(connection, self, known)
            except psycopg.Error as error:
                raise SourceStalled(meaning(error).message) from error

    def plan(self, lower: Frontier, upper: Frontier) -> list[Split]:
        """See `Source.plan`."""
        splits: list[Split] = []
        found: list[Split] = []
        for partition, start, stop in ranges(lower, upper):
            if partition != WAL:
                splits += [Split(partition, start, stop)] if start == 0 else []
                continue
            if start == 0:
                found = self._plan_snapshot(known_partitions(upper))
                splits += found
            first = start or max((split.upper for split in found), default=stop)
            if first < stop:
                weight = 1 + (stop - first) // _BYTES_PER_CHANGE
                splits.append(Split(WAL, first, stop, ("stream",), weight))
        return splits

    def _plan_snapshot(self, upper: Mapping[Partition, int]) -> list[Split]:
        held, stop = self._live.held, upper[WAL]
        if held is None and WHOLE in upper:
            return []  # what was bound before the end cannot be had any more
        splits = []
        name, end = (held.name, held.position.offset) if held else ("", stop)
        for table in self._following(upper):
            number = self.tables.index(table)
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
        try:
            if split.partition != WAL:
                yield self._fate(split)
            elif split.piece[0] == "table":
                yield from self._read_table(split.upper, *split.piece[1:])
            else:
                yield from self._read_stream(split)
        except SourceBroken as error:
            error.fields["ends"] = True
            raise

    def ended(self, frontier: Frontier) -> dict[int, str]:
        """See `HasEnds.ended`."""
        found = known_partitions(frontier)
        return dict(self._end(int(p), offset) for p, offset in found.items() if p != WAL)

    def _end(self, number: int, offset: int) -> tuple[int, str]:
        """The output that a partition which is no log stands for, and what its offset says."""
        if number == WHOLE:
            return NO_OUTPUT, Doom(offset).explain(self.slot, self.publication)
        return number - 1, explain(self.tables[number - 1], Fate(offset))

    def _fate(self, split: Split) -> pa.RecordBatch:
        number = int(split.partition)
        output, reason = self._end(number, split.upper)
        row = (split.upper - 1, None, None, reason)
        return error_batch("number", number, [row], output, ends=True)

    def _read_table(  # noqa: PLR0917 - the fields of a piece
        self, upper: int, output: Any, first: Any, last: Any, name: Any, alone: Any
    ) -> Iterator[pa.RecordBatch]:
        if not name:
            raise SourceStalled("no snapshot is held; one will be taken")
        table = self.tables[output]
        is_typed = table.full or bool(alone)
        at = of_bound(upper).lsn
        try:
            for fields in read_piece(self.url, table, first, last, name):
                yield from records(table, output, at, fields, is_typed=is_typed)
        except SourceBroken as error:
            yield error_batch("number", WAL, [(at, None, None, error.message)], output, ends=True)

    def _read_stream(self, split: Split) -> Iterator[pa.RecordBatch]:
        span = of_bound(split.lower), of_bound(split.upper)
        check_slot(self.url, self.slot, span[0])
        builders = [Builder(table, at) for at, table in enumerate(self.tables)]
        try:
            stream = messages(self.url, self.slot, self.publication, span)
            yield from _Replay(builders, split.lower, split.upper).run(stream)
        except SourceBroken as error:
            error.fields.setdefault("offset", split.lower)
            raise

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
    """Messages of the log to batches: those of the transactions in [lower, upper)."""

    builders: list[Builder]
    lower: int
    upper: int

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
        if not self.lower <= commit.end_lsn < self.upper:
            builder.discard()
            return
        builder.commit(commit.end_lsn)
        if builder.is_full:
            yield from builder.batches()
