"""Ingestion: a source becomes definite collections on the timeline, tick by tick.

One tick, each step durable before the next depends on it:

    1  probe     ask the source for its upper
    2  mint      bind a fresh time to it: one append to the remap; a snapshot, which no restart
                 survives, is bound in step 4 instead
    3  read      one Spark job reads the offsets from the last durable upper to the binding, gives
                 every record its time through the remap, and stores the updates as parts
    4  commit    one transaction appends to every output and to the errors, and seals them all at
                 the remap's upper: a transaction upstream is never split
    5  release   what is durable everywhere is released upstream, and the remap compacted behind it

All progress is in persist. After a crash at any point the next tick finds the uppers as they are:
a binding without data is read now, through the same binding, so every record gets the same time;
data that is durable is below the resumption frontier and not read again. A tick with nothing new
runs no Spark job: its uppers move in one commit of the control plane.

Formats and envelopes are in the `Feed` of each output; undecodable records become rows of
``<source>_errors`` at their time. An output that cannot be followed any more puts its collection
into a definite error (`ingest_ends`), in the commit that completes the time of it. Under UPSERT
the job looks up what the touched keys had before.

Where it runs: driver; `ingest.task` on executors, `ingest.engine` brings it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec
import pyarrow as pa

from noonmark.errors import ConfigError
from noonmark.ingest.ends import Remedy, bound, create_again, end_commands, met
from noonmark.ingest.engine import Engine, InPlaceEngine, SparkEngine
from noonmark.ingest.feed import Feed, raw, typed
from noonmark.ingest.task import Destination, IngestTask, Row, unpacked
from noonmark.ingest.truncate import RetractTask, retract, truncations
from noonmark.oracle.contract import TimestampOracle
from noonmark.persist import task
from noonmark.persist.client import Client
from noonmark.persist.log import command as c
from noonmark.persist.log.state import Collection, Frontier
from noonmark.persist.part.part import Part
from noonmark.persist.read.handle import ReadHandle
from noonmark.persist.read.plan import Plan, Query
from noonmark.persist.write import Updates, append_command
from noonmark.remap import begin, compact, mint, offset_resumption, seal
from noonmark.remap.binding import Remap
from noonmark.remap.lookup import TimeTable
from noonmark.remap.rows import REMAP_SCHEMA, from_rows, to_rows
from noonmark.rows.schema import Schema
from noonmark.source.contract import (
    ERRORS_SCHEMA,
    NO_OUTPUT,
    START,
    HasSnapshot,
    Source,
    Split,
)
from noonmark.storage.description import CollectionDescription
from noonmark.storage.transaction import RETAIN_MS, Transaction, creation, own_capability
from noonmark.tvc import EMPTY, Antichain, Partitioned, Update

__all__ = [
    "Engine",
    "Feed",
    "InPlaceEngine",
    "Ingestion",
    "SparkEngine",
    "Target",
    "Tick",
    "raw",
    "typed",
]


@dataclass(frozen=True)
class Tick:
    """What one tick did: for people, for metrics and for tests."""

    time: int
    rows: int
    splits: int
    jobs: int
    released: Antichain[Partitioned]


@dataclass(frozen=True)
class Target:
    """One collection that a tick writes."""

    name: str
    collection: int
    read: ReadHandle


@dataclass
class Ingestion:
    """The ingestion of one source. Not thread-safe: one caller ticks it.

    Attributes:
        client: the writer of the location.
        oracle: gives the times of bindings.
        source: what is read.
        name: its remap is ``<name>_remap``, its errors are ``<name>_errors``.
        engine: runs the reading; asked only when there is something to read.
        retain_ms: how much history every collection of the source keeps.
        feeds: what becomes of the outputs; by default every output, which must then be typed.
        remap_name: the collection of its remap, where it is not ``<name>_remap``.
        errors_name: the collection of its errors, where it is not ``<name>_errors``.
        remedy: what to do about an output that cannot be followed any more, for its readers.
        on_bound: told the time at which something new is bound, before it is read.
        release_pause_s: ticks that follow each other within it do not each tell upstream.
    """

    client: Client
    oracle: TimestampOracle
    source: Source
    name: str
    engine: Engine
    retain_ms: int = RETAIN_MS
    feeds: tuple[Feed, ...] = ()
    remap_name: str = ""
    errors_name: str = ""
    remedy: Remedy = create_again
    on_bound: Callable[[int], None] | None = None
    release_pause_s: float = 0.0
    outputs: tuple[Target, ...] = field(init=False)
    errors: Target = field(init=False)
    remap_target: Target = field(init=False)
    remap: Remap[Partitioned] = field(init=False)
    _released_s: float = field(default=float("-inf"), init=False)

    def __post_init__(self) -> None:
        if not self.feeds:
            self.feeds = tuple(typed(self.source, at) for at in range(len(self.source.outputs)))
        if len({feed.output for feed in self.feeds}) < len(self.feeds):
            raise ConfigError("an output feeds one collection, and not two")

    def start(self) -> Self:
        """Bring its collections to life, or take them up: before anything else, once."""
        wanted = [(feed.collection, feed.schema, feed.key) for feed in self.feeds]
        # By key, because that is how UPSERT finds the error that a new value retracts.
        wanted.append((self.errors_name or f"{self.name}_errors", ERRORS_SCHEMA, ("key",)))
        wanted.append((self.remap_name or f"{self.name}_remap", REMAP_SCHEMA, ("partition",)))
        self._settle()
        self._create(wanted)
        targets = [
            Target(name, read.collection, read)
            for name, schema, key in wanted
            for read in (self.client.create_or_load(name, schema, key)[1],)
        ]
        *outputs, self.errors, self.remap_target = targets
        self.outputs = tuple(outputs)
        self._take_up()
        return self

    def _settle(self) -> None:
        """Know what became of commits whose answer was lost, before anything depends on it."""
        self.client.runtime.submit(self.client.settle()).result()

    def _take_up(self) -> None:
        """Know what is stored: at the start, and when the answer to a commit was lost."""
        loaded = self._load_remap()
        self.remap = compact(loaded, self._meet(loaded.upper))

    def _create(self, wanted: list[tuple[str, Schema, tuple[str, ...]]]) -> None:
        """Bring a new source's collections to life together, all from the same time on."""
        missing = [each for each in wanted if each[0] not in self.client.state.names]
        if missing:
            start = self.oracle.write_ts()
            self.client.submit(
                tuple(
                    creation(name, CollectionDescription(schema, key, "source"), start)
                    for name, schema, key in missing
                )
            ).result()

    def _load_remap(self) -> Remap[Partitioned]:
        """The remap as it is stored; a new source begins with its first binding."""
        read = self.remap_target.read
        since, upper = read.since, read.upper
        start, end = since.only(), upper.only()
        assert start is not None, "a remap is not closed while its source lives"
        if since == upper:
            minted = begin(START, start)
            self._append_remap(minted.updates, upper, minted.remap.upper)
            return minted.remap
        contents = read.snapshot(start).result().counts()
        updates = [Update(row, start, count) for row, count in contents.items()]
        if end is None or end > start + 1:
            updates += self.client.runtime.submit(_changes(read, start)).result()
        return from_rows(updates, since, upper)

    def _append_remap(self, updates: Sequence[Any], lower: Frontier, upper: Frontier) -> None:
        txn = Transaction(self.client)
        self._append(txn, self.remap_target, to_rows(updates), (lower, upper))
        txn.commit().result()

    def _append(
        self,
        txn: Transaction,
        target: Target,
        updates: Updates | None,
        between: tuple[Frontier, Frontier],
        *,
        stored: Sequence[c.Append] = (),
    ) -> None:
        """Write a collection from exactly one frontier to another, by its own capability."""
        lower, upper = between
        own = own_capability(self.client.state, target.collection, lower)
        txn.update_and_downgrade(own, updates, upper, stored=stored)

    # -- one tick ---------------------------------------------------------------------------

    def tick(self, *, asks: bool = True) -> Tick:
        """Bring every collection of the source up to now.

        Args:
            asks: whether upstream is asked for more; else the collections only move on in time.

        Raises:
            SourceStalled: upstream did not answer; nothing is lost, call again later. The same
                holds for every other error, as far as its cause goes away.
        """
        self._settle()
        if self.remap.upper != self.remap_target.read.upper:
            self._take_up()
        if self.is_finished:
            return Tick(self.oracle.read_ts(), 0, 0, 0, self.remap.latest)
        asks = asks or self.remap.latest == START
        probe = self._probe() if asks else self.remap.latest
        snapshot = self._snapshot(probe) if asks else None
        steps = []
        if snapshot is not None:
            steps.append(self._begin_with(snapshot))
            probe = self._probe()
        steps.append(self._advance(probe))
        if self.remap.latest.is_empty():
            self._finish()
        # What led to the last durable time is needed no more: memory does not grow with time.
        self.remap = compact(self.remap, self.resumption_frontier())
        released = offset_resumption(self.remap, self.remap.upper)
        times, splits, rows = zip(*steps, strict=True)
        now_s = self.client.clock.monotonic()
        if (asks and not any(splits)) or now_s - self._released_s >= self.release_pause_s:
            self.client.runtime.submit(self.source.release(released)).result()
            self._released_s = now_s
        jobs = sum(1 for each in splits if each)
        return Tick(times[-1], sum(rows), sum(splits), jobs, released)

    def _probe(self) -> Antichain[Partitioned]:
        latest = self.source.latest(self.client.clock, self.remap.latest)
        return self.client.runtime.submit(latest).result()

    def _snapshot(self, probe: Antichain[Partitioned]) -> Antichain[Partitioned] | None:
        """The snapshot that is still to be read, if there is one."""
        durable = offset_resumption(self.remap, self.resumption_frontier())
        if not isinstance(self.source, HasSnapshot) or durable != START:
            return None
        found = self.source.snapshot_frontier(self.client.clock, probe)
        return self.client.runtime.submit(found).result()

    def _begin_with(self, frontier: Antichain[Partitioned]) -> tuple[int, int, int]:
        """Read a snapshot, and make it and its binding durable in one commit."""
        time = self.oracle.write_ts()
        minted = mint(self.remap, frontier, time)
        lower, upper = self.remap.upper, minted.remap.upper
        splits = self.source.plan(START, frontier)
        try:
            written = self._read(splits, START, minted.remap)
        except BaseException:
            assert isinstance(self.source, HasSnapshot)
            self.client.runtime.submit(self.source.give_up_snapshot()).result()
            raise
        txn = Transaction(self.client)
        self._append(txn, self.remap_target, to_rows(minted.updates), (lower, upper))
        rows = self._append_outputs(txn, written, minted.remap, time)
        if self.remap.latest != START:
            # An earlier version has bound a snapshot that it could not store. Nobody has read what
            # was bound there, and nobody can from now on.
            for target in self.outputs:
                txn.add(c.AllowCompaction(target.collection, Antichain.of(time)))
        self._announce(time)
        txn.commit().result()
        self.remap = minted.remap
        self.oracle.apply_write(time)
        return time, len(splits), rows

    def _announce(self, time: int) -> None:
        """Before the first rows of a source can be read: no strict read is before them any more.

        Its collections began earlier, empty, and nobody means that: whoever comes between the
        commit and what is told to the oracle after it would be answered at such a time.
        """
        if any(target.read.since == target.read.upper for target in self.outputs):
            self.oracle.apply_write(time)

    def _advance(self, frontier: Antichain[Partitioned]) -> tuple[int, int, int]:
        """Bind a frontier and read up to it: the time, the splits and the updates."""
        time = self.oracle.write_ts()
        minted = mint(self.remap, frontier, time)
        txn = Transaction(self.client)
        lower, upper = self.remap.upper, minted.remap.upper
        self._append(txn, self.remap_target, to_rows(minted.updates), (lower, upper))
        idle = not minted.updates and self.resumption_frontier() == lower
        self._announce(time)
        if idle:
            # Nothing new and nothing owed: the binding and all uppers move in one commit.
            self._append_outputs(txn, [], minted.remap, time)
        txn.commit().result()
        self.remap = minted.remap
        if minted.updates and self.on_bound is not None:
            self.on_bound(time)
        splits, rows = (0, 0) if idle else self.catch_up(time)
        self.oracle.apply_write(time)
        return time, splits, rows

    @property
    def is_settled(self) -> bool:
        """Whether all that is bound is durable in every collection."""
        return self.resumption_frontier() == self.remap.upper

    def seal_at(
        self, txn: Transaction, time: int, frontier: Antichain[Partitioned] | None = None
    ) -> None:
        """Add to a transaction: every collection is complete at a time, at which nothing is new.

        For who writes to them what this ingestion has not read, in the same transaction, at that
        time; `frontier` is then how far upstream was read. When it is durable, the ingestion has to
        be taken up again.
        """
        assert self.is_settled, "what is bound is read first"
        reached = self.remap.latest if frontier is None else frontier
        minted = mint(self.remap, reached, time)
        lower, upper = self.remap.upper, minted.remap.upper
        self._append(txn, self.remap_target, to_rows(minted.updates), (lower, upper))
        self._append_outputs(txn, [], minted.remap, time)

    @property
    def is_finished(self) -> bool:
        """Whether upstream has ended and all of it is here: nothing will ever change again."""
        return self.remap.upper.is_empty()

    def _finish(self) -> None:
        """Upstream has ended: every collection of the source is complete for ever."""
        txn = Transaction(self.client)
        for target in (*self.outputs, self.errors, self.remap_target):
            self._append(txn, target, None, (target.read.upper, EMPTY))
        txn.commit().result()
        self.remap = seal(self.remap)

    def catch_up(self, time: int) -> tuple[int, int]:
        """Read what is bound and not durable yet, and seal everything at the remap's upper.

        Returns:
            How many splits were read, and how many updates they had.
        """
        lower = offset_resumption(self.remap, self.resumption_frontier())
        splits = self.source.plan(lower, self.remap.latest)
        written = self._read(splits, lower, self.remap) if splits else []
        txn = Transaction(self.client)
        rows = self._append_outputs(txn, written, self.remap, time)
        txn.commit().result()
        return len(splits), rows

    def _append_outputs(
        self, txn: Transaction, written: list[Row], remap: Remap[Partitioned], time: int
    ) -> int:
        """Add to a transaction what was read, the seals, and how much history is kept."""
        rows = 0
        # Before the seals: their times are not complete yet.
        for command in self._ends(written, remap):
            txn.add(command)
        for at, target in [*enumerate(self.outputs), (NO_OUTPUT, self.errors)]:
            stored, rest = _of_feed(written, at, target.collection)
            rows += sum(each.rows for each in stored) + (rest.num_rows if rest else 0)
            self._append(txn, target, rest, (target.read.upper, remap.upper), stored=stored)
        horizon = Antichain.of(max(0, time - self.retain_ms))
        for target in (*self.outputs, self.errors, self.remap_target):
            txn.let_history_go(target.collection, horizon)
        return rows

    def _ends(self, written: list[Row], remap: Remap[Partitioned]) -> list[c.SetError]:
        """What puts the collections of outputs that cannot be followed any more into error."""
        outputs = [feed.output for feed in self.feeds]
        ends = bound(self.source, remap) + met(written, outputs)
        if not ends:
            return []
        state = self.client.state
        found = [state.collection(target.collection) for target in self.outputs]
        by_output = dict(zip(outputs, found, strict=True))
        return end_commands(self.name, ends, by_output, self.remedy)

    def resumption_frontier(self) -> Frontier:
        """The meet of the uppers of every collection of the source, the remap among them."""
        return self._meet(self.remap.upper)

    def _meet(self, frontier: Frontier) -> Frontier:
        for target in (*self.outputs, self.errors):
            frontier = frontier.meet(target.read.upper)
        return frontier

    # -- the job ----------------------------------------------------------------------------

    def _read(
        self,
        splits: Sequence[Split],
        lower: Antichain[Partitioned],
        remap: Remap[Partitioned],
    ) -> list[Row]:
        upserts = [
            target for feed, target in zip(self.feeds, self.outputs, strict=True) if feed.is_upsert
        ]
        looked_up = [*upserts, self.errors] if upserts else []
        # While these plans live, no part that a task may look a key up in is deleted.
        plans = [self._plan_before(target) for target in looked_up]
        times = TimeTable.of(remap, lower)
        rows = self.engine.run(self.source, splits, self._task(times, bool(upserts)))
        del plans
        return [*rows, *self._retractions(rows)]

    def _retractions(self, rows: list[Row]) -> list[Row]:
        """What the truncations take away that the tasks have met."""
        targets = {NO_OUTPUT: self.errors, **dict(enumerate(self.outputs))}
        found = truncations(rows, [feed.collection for feed in self.feeds])
        # While these plans live, nothing that a task may read is deleted.
        plans = [self._plan_before(target) for target in targets.values() if found]
        retracted: list[Row] = []
        for each in found:
            small, slices = retract(
                each,
                rows,
                lambda feed: self._collection(targets[feed], True),
                self.client.config.part_rows_max,
            )
            retracted += small
            if slices:
                retracted += self.engine.retract(RetractTask(self._place, tuple(slices)))
        del plans
        return retracted

    @property
    def _place(self) -> task.TaskLocation:
        return task.TaskLocation(self.client.blob.url, self.client.config, self.client.parts.epoch)

    def _task(self, times: TimeTable, with_upserts: bool) -> IngestTask:
        destinations = tuple(
            Destination(feed, self._collection(target, feed.is_upsert), self._before(target))
            for feed, target in zip(self.feeds, self.outputs, strict=True)
        )
        return IngestTask(
            self._place,
            times,
            destinations,
            self._collection(self.errors, with_upserts),
            self._before(self.errors),
            self.source.offset_unit,
        )

    def _collection(self, target: Target, with_batches: bool) -> Collection:
        found = self.client.state.collection(target.collection)
        return found if with_batches else msgspec.structs.replace(found, batches=())

    def _before(self, target: Target) -> int:
        """The last time that is complete in a collection: what a tick finds there."""
        since, upper = target.read.since.only(), target.read.upper.only()
        assert since is not None, "a collection is not closed while its source lives"
        assert upper is not None, "a collection is not closed while its source lives"
        return max(since, upper - 1)

    def _plan_before(self, target: Target) -> Plan:
        query = Query(self._before(target), despite_error=True)
        return self.client.reader.plan(target.collection, query)


async def _changes(read: ReadHandle, after: int) -> list[Any]:
    """Every update after a time, up to upper."""
    listen = await read.open_listen(after, hold=False)
    step = await listen.next()
    return step.updates if step is not None else []


_PARTS = msgspec.msgpack.Decoder(Part)


def _of_feed(
    written: list[Row], at: int, collection: int
) -> tuple[list[c.Append], pa.Table | None]:
    """What all tasks wrote for one feed: runs that are stored, and a small rest."""
    mine = [row for row in written if row["feed"] == at]
    runs = [tuple(map(_PARTS.decode, row["parts"])) for row in mine if row["parts"]]
    rest = [unpacked(row["rest"]) for row in mine if row["rest"]]
    stored = [append_command(collection, parts) for parts in runs]
    return stored, pa.concat_tables(rest) if rest else None
