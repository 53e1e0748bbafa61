"""FROM POSTGRES as a source: see `noonmark.source.contract` for what each call promises.

Partition 0 is the log; an offset is the end of a commit record, so a transaction is never split.
What is bound, read from and confirmed is a `Position`: exact, and beyond every acknowledged commit.
Every row of the snapshot stands at the point c that it was taken at; the stream follows. What ends
a table for good (`Fate`), or the source as a whole (`Doom`), is bound too (`partitions`), and the
offset says what happened. So such an error has a time, and is the same for all.

The snapshot is read under `Held`, which lives in the driver's process and dies with it. It is bound
in the commit that makes it durable, so one that was lost was never bound: another is taken, at a
later c, for all tables. A table that was rewritten (TRUNCATE, ALTER TABLE) has lost what it held at
c: then another snapshot is taken as well, under locks that make such statements wait while it is
read, and no longer.

A table that was read later than the others, under a snapshot of its own at c (`restage`), joins the
stream at one binding: with it, all that the log has of the table after c stands at the first offset
of that binding, or where it is. Until then the slot is not released beyond c.

Where it runs: as the contract says; calls that wait for upstream do so in the thread of its peer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import msgspec
import psycopg
import pyarrow as pa

from noonmark.clock import Clock
from noonmark.errors import SourceBroken, SourceStalled
from noonmark.peer import ANSWER_S
from noonmark.source.contract import (
    NO_OUTPUT,
    PARTITION,
    START,
    Frontier,
    Output,
    Split,
    error_batch,
    ranges,
)
from noonmark.source.impl.postgres import partitions, pgoutput
from noonmark.source.impl.postgres.builder import (
    WAL,
    Builder,
    Layout,
)
from noonmark.source.impl.postgres.describe import Fate, Table, explain
from noonmark.source.impl.postgres.keyed import KeyedDecoding, keyed_decoding
from noonmark.source.impl.postgres.position import Position, of_bound
from noonmark.source.impl.postgres.probe import Doom, look, probe
from noonmark.source.impl.postgres.session import SqlSession, connect, meaning, patient
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
    connection: SqlSession | None = None
    #: Who reads tables that will need the log from there on.
    keeping: set[object] = field(default_factory=set)
    #: Of each output, the columns that upstream has and that are not read, as of the last probe.
    added: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def session(self, url: str) -> SqlSession:
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
        generation: how many slots it had before this one.
    """

    url: str = field(repr=False)
    publication: str
    slot: str
    start_lsn: int
    system_id: int
    timeline: int
    tables: tuple[Table, ...]
    generation: int = 0
    _live: Session = field(default_factory=Session, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._live.peer.name = f'of publication "{self.publication}"'

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """See `Source.outputs`: a keyed table is raw."""
        return tuple(
            Output(each.name, each.schema, each.key) if each.full else Output(each.name)
            for each in self.tables
        )

    @property
    def log(self) -> int:
        """The partition of the log."""
        return partitions.log(self.generation)

    def is_current(self, partition: Partition) -> bool:
        """See `HasIncarnations.is_current`: what is not the log are fates of tables."""
        return partition == self.log

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
        ended = {p: offset for p, offset in known_partitions(probe).items() if p != self.log}
        if self.generation or partitions.whole(self.generation) in ended:
            return None
        slot = f"{self.slot[:30]}_{clock.fresh_id()}"
        taking = partial(self._hold, slot, self._following(ended))
        position = await self._live.peer.call(taking)
        return partition_frontier({**ended, self.log: position.offset})

    def _following(self, ended: Mapping[Partition, int]) -> list[Table]:
        """The tables of the first snapshot that have not ended."""
        return [
            table
            for at, table in enumerate(self.tables)
            if table.from_lsn is None and not table.retired and partitions.fate(at) not in ended
        ]

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
        await self._live.peer.call(self._give_up, seconds=ANSWER_S)

    def _give_up(self) -> None:
        with self._live.mutex:
            held = self._live.held
            if held is not None and held.locks is not None:
                held.close()
                self._live.held = None

    async def latest(self, clock: Clock, known: Frontier = START) -> Frontier:
        """See `Source.latest`."""
        del clock
        offsets = known_partitions(known)
        if known.is_empty() or partitions.whole(self.generation) in offsets:
            return known
        asking = partial(self._probe, offsets)
        return partition_frontier(await self._live.peer.call(asking, seconds=ANSWER_S))

    def _probe(self, known: dict[Partition, int]) -> dict[Partition, int]:
        with self._live.mutex:
            try:
                connection = self._live.session(self.url)
                doom = look(connection, self, known)
                if doom is not None:
                    return {**known, partitions.whole(self.generation): int(doom)}
                found = probe(connection, self, known)
                if found.offsets.keys() - known - {self.log}:
                    # What seems to have ended tables may have ended the source a moment ago.
                    doom = look(connection, self, known)
                if doom is not None:
                    return {**known, partitions.whole(self.generation): int(doom)}
                self._live.added = found.added
                return found.offsets
            except psycopg.Error as error:
                raise SourceStalled(meaning(error).message) from error

    def news(self) -> dict[int, str]:
        """See `HasNews.news`: columns that were added upstream."""
        return {
            output: f"columns of table {self.tables[output].full_name} that are not read: "
            + ", ".join(names)
            for output, names in self._live.added.items()
        }

    def plan(self, lower: Frontier, upper: Frontier) -> list[Split]:
        """See `Source.plan`."""
        splits: list[Split] = []
        before, after = known_partitions(lower), known_partitions(upper)
        for partition, start, stop in ranges(lower, upper):
            if partition == self.log:
                splits += self._plan_log(start, stop, before, after)
            elif partition == partitions.whole(self.generation) or self._is_fate(partition):
                splits += [Split(partition, start, stop)] if start == 0 else []
        for output, table in enumerate(self.tables):
            here = partitions.joined(output)
            if table.from_lsn is not None and not table.retired and here in after.keys() - before:
                start, stop = before.get(self.log, 0), after[self.log]
                weight = 1 + max(0, stop - table.from_lsn) // _BYTES_PER_CHANGE
                splits.append(Split(here, 0, 1, ("join", output, start, stop), weight))
        return splits

    def _is_fate(self, partition: Partition) -> bool:
        output = partitions.fated(int(partition))
        return output is not None and not self.tables[output].retired

    def _plan_log(
        self, start: int, stop: int, before: Mapping[Partition, int], after: Mapping[Partition, int]
    ) -> list[Split]:
        """The splits of a range of the log, for the tables that were in the stream before it."""
        splits = []
        first = start
        if start == 0:
            splits = [] if self.generation else self._plan_snapshot(after)
            first = max((split.upper for split in splits), default=stop)
        outputs = [
            output
            for output, table in enumerate(self.tables)
            if not table.retired and (table.from_lsn is None or partitions.joined(output) in before)
        ]
        if outputs and first < stop:
            weight = 1 + (stop - first) // _BYTES_PER_CHANGE
            splits.append(Split(self.log, first, stop, ("stream", *outputs), weight))
        return splits

    def _plan_snapshot(self, upper: Mapping[Partition, int]) -> list[Split]:
        held, stop = self._live.held, upper[self.log]
        if held is None and partitions.whole(self.generation) in upper:
            return []  # what was bound before the end cannot be had any more
        splits = []
        name, end = (held.name, held.position.offset) if held else ("", stop)
        for table in self._following(upper):
            # No change of a key is read with its row: then the row needs no envelope.
            output = self.tables.index(table)
            splits += self.table_splits(output, name, end, alone=stop == end)
        return splits

    def table_splits(self, output: int, name: str, end: int, *, alone: bool = True) -> list[Split]:
        """The pieces of a table under the snapshot of that name."""
        table, splits = self.tables[output], []
        for first, last in pieces(table):
            pages = max(table.pages if last < 0 else last, first + 1) - first
            piece = ("table", output, first, last, name, int(alone))
            splits.append(Split(self.log, 0, end, piece, _ROWS_PER_PAGE * pages))
        return splits

    async def release(self, frontier: Frontier) -> None:
        """See `Source.release`: the slot moves, and the server may forget."""
        known = known_partitions(frontier)
        waiting = [
            table.from_lsn + 1
            for output, table in enumerate(self.tables)
            if table.from_lsn is not None
            and not table.retired
            and partitions.joined(output) not in known
        ]
        offset = min([known.get(self.log, 0), *waiting])
        if offset >= self.start.offset:
            await self._live.peer.call(partial(self._release, of_bound(offset)))

    @asynccontextmanager
    async def keeping_log(self) -> AsyncIterator[None]:
        """Release nothing for the length of a block: a table is being read that will join."""
        keeping = object()
        self._live.keeping.add(keeping)
        try:
            # A release that has begun comes to its end before the block begins.
            await self._live.peer.call(lambda: None, seconds=ANSWER_S)
            yield
        finally:
            self._live.keeping.discard(keeping)

    def _release(self, position: Position) -> None:
        with self._live.mutex:
            if self._live.held is not None:
                self._live.held.close()
                self._live.held = None
            if self._live.keeping:
                return
            try:
                values = {"slot": self.slot, "lsn": str(position)}
                with patient(self._live.session(self.url)) as session:
                    session.execute(_ADVANCE, values)
            except psycopg.errors.ObjectInUse:
                return  # a reader is still on its way out: the next release goes as far, or farther
            except psycopg.Error as error:
                raise SourceStalled(meaning(error).message) from error

    # -- on executors -----------------------------------------------------------------------

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """See `Source.read`."""
        try:
            yield from self._read(split)
        except SourceBroken as error:
            error.fields["ends"] = True
            raise

    def _read(self, split: Split) -> Iterator[pa.RecordBatch]:
        kind, *rest = split.piece or ("fate",)
        if kind == "fate":
            yield self._fate(split)
        elif kind == "join":
            yield from self._read_join(*map(int, rest))
        elif kind == "table":
            yield from self._stamped(self._read_table(split.upper, *rest), self.log)
        else:
            yield from self._stamped(self._read_stream(split, [*map(int, rest)]), self.log)

    @staticmethod
    def _stamped(batches: Iterator[pa.RecordBatch], partition: int) -> Iterator[pa.RecordBatch]:
        """Records are made as those of partition `WAL`: as those of another one."""
        for batch in batches:
            if partition == WAL:
                yield batch
            else:
                place = batch.schema.get_field_index(PARTITION)
                made = pa.repeat(pa.scalar(partition, pa.int64()), batch.num_rows)
                yield batch.set_column(place, batch.schema.field(place), made)

    def ended(self, frontier: Frontier) -> dict[int, str]:
        """See `HasEnds.ended`."""
        found = known_partitions(frontier)
        ends = (self._end(int(partition), offset) for partition, offset in found.items())
        return dict(end for end in ends if end is not None)

    def _end(self, partition: int, offset: int) -> tuple[int, str] | None:
        """The output that a partition stands for, and what its offset says; None for the others."""
        if partition == partitions.whole(self.generation):
            return NO_OUTPUT, Doom(offset).explain(self.slot, self.publication)
        output = partitions.fated(partition)
        return None if output is None else (output, explain(self.tables[output], Fate(offset)))

    def _fate(self, split: Split) -> pa.RecordBatch:
        end = self._end(int(split.partition), split.upper)
        assert end is not None, "only what ends an output is a split of its own"
        row = (split.upper - 1, None, None, end[1])
        return error_batch("number", split.partition, [row], end[0], ends=True)

    def _read_table(  # noqa: PLR0917 - the fields of a piece
        self, upper: int, output: Any, first: Any, last: Any, name: Any, alone: Any
    ) -> Iterator[pa.RecordBatch]:
        if not name:
            raise SourceStalled("no snapshot is held; one will be taken")
        table, at = self.tables[output], of_bound(upper).lsn
        is_typed = table.full or bool(alone)
        for fields in read_piece(self.url, table, first, last, name):
            yield from records(table, output, at, fields, is_typed=is_typed)

    def _read_stream(self, split: Split, outputs: list[int]) -> Iterator[pa.RecordBatch]:
        builders = [Builder(self.tables[at], at) for at in outputs]
        span = of_bound(split.lower), of_bound(split.upper)
        try:
            check_slot(self.url, self.slot, span[0])
            stream = messages(self.url, self.slot, self.publication, span)
            yield from _Replay(builders, split.lower, split.upper).run(stream)
        except SourceBroken as error:
            error.fields.setdefault("offset", split.lower)
            raise

    def _read_join(self, output: int, lower: int, upper: int) -> Iterator[pa.RecordBatch]:
        """All that the log has of a table after its own snapshot, up to the offset `upper`.

        What lies before `lower` has no binding to come: it stands at `lower`. Where nothing has,
        because nobody wrote to the log, it stands where the table joins.
        """
        table = self.tables[output]
        assert table.from_lsn is not None, "who joins has a snapshot of its own"
        start = of_bound(table.from_lsn + 1)
        if lower < upper:
            replay = _Replay([Builder(table, output)], start.offset, upper, offset_min=lower)
            partition = self.log
        else:
            replay = _Replay([Builder(table, output)], start.offset, upper, offset=0)
            partition = partitions.joined(output)
        try:
            check_slot(self.url, self.slot, start)
            if start.offset < upper:
                span = start, of_bound(upper)
                read = replay.run(messages(self.url, self.slot, self.publication, span))
                yield from self._stamped(read, partition)
        except SourceBroken as error:
            error.fields.setdefault("offset", 0)
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
    """Messages of the log to batches: those of the transactions in [lower, upper).

    A transaction before `offset_min` stands there; with `offset`, all of them do. A table may have
    several builders: one that is read once more is two outputs until its relation is switched.
    """

    builders: list[Builder]
    lower: int
    upper: int
    offset_min: int = 0
    offset: int | None = None

    def run(self, stream: Iterator[pgoutput.Message]) -> Iterator[pa.RecordBatch]:
        by_oid: dict[int, list[Builder]] = {}
        for builder in self.builders:
            by_oid.setdefault(builder.table.oid, []).append(builder)
        touched: dict[int, list[Builder]] = {}
        for message in stream:
            if isinstance(message, pgoutput.Change):
                if (found := by_oid.get(message.relation)) is not None:
                    touched[message.relation] = found
                    for builder in found:
                        builder.add(message)
            elif isinstance(message, pgoutput.Commit):
                for builder in [each for found in touched.values() for each in found]:
                    yield from self._end(builder, message)
                touched.clear()
            elif isinstance(message, pgoutput.Relation):
                for builder in by_oid.get(message.oid, ()):
                    builder.layout = Layout.of(builder.table, message)
            elif isinstance(message, pgoutput.Truncate):
                for oid in set(message.relations) & set(by_oid):
                    touched[oid] = by_oid[oid]
                    for builder in by_oid[oid]:
                        builder.truncate()
        for builder in self.builders:
            builder.discard()
            yield from builder.batches()

    def _end(self, builder: Builder, commit: pgoutput.Commit) -> Iterator[pa.RecordBatch]:
        if not self.lower <= commit.end_lsn < self.upper:
            builder.discard()
            return
        at = commit.end_lsn if self.offset is None else self.offset
        builder.commit(max(at, self.offset_min))
        if builder.is_full:
            yield from builder.batches()
