"""A client of a storage location: the seed's `RuntimeClient`.

One process opens a location to write, or any number of processes open it to read, in three forms:

    writer        holds the write lock; its epoch fences whoever held it before
    notified      reads; the writer tells it of every commit; may take holds
    polling       reads; looks for commits itself; may take holds
    independent   reads; writes nothing whatsoever, so it cannot affect the writer in any way

A `Client` lives on one `Runtime`. Every method may be called from any thread; those that do
something durable return futures, linearized in call order.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from noonmark.clock import SYSTEM, Clock
from noonmark.errors import (
    BeforeSince,
    ReadOnly,
    SchemaMismatch,
    StorageError,
    UsageError,
    WriterError,
)
from noonmark.persist.cache import CachedBlob
from noonmark.persist.codec import Codec, RowCodec
from noonmark.persist.config import DEFAULT, Config
from noonmark.persist.hold import HoldHandle, LocalHolds
from noonmark.persist.impl.open import open_blob, open_consensus
from noonmark.persist.impl.probe import probe
from noonmark.persist.location import Blob, Consensus
from noonmark.persist.log import command as c
from noonmark.persist.log.dependence import Dependence
from noonmark.persist.log.host_lock import HostLock
from noonmark.persist.log.journal import Journal
from noonmark.persist.log.queue import Prepare, WriteQueue
from noonmark.persist.log.state import Collection, Frontier, Hold, State, schema_to_wire
from noonmark.persist.log.writer_lock import WriterLock
from noonmark.persist.notify import Notifier, follow
from noonmark.persist.part.store import PART_PREFIX, PartStore
from noonmark.persist.question import Answerer, NotAnswered, ask
from noonmark.persist.read.handle import ReadHandle
from noonmark.persist.read.updates import Reader
from noonmark.persist.retry import Retries
from noonmark.persist.runtime import Runtime
from noonmark.persist.upkeep.gc import sweep_orphans
from noonmark.persist.upkeep.loop import Upkeep
from noonmark.persist.write import MultiWriteHandle, WriteHandle, as_frontier
from noonmark.rows.schema import Column, Schema
from noonmark.supervise import Supervisor, Task

T = TypeVar("T")

Mode = Literal["write", "notified", "polling", "independent"]


@dataclass(frozen=True)
class Options:
    """How a location is opened.

    Attributes:
        mode: see the module.
        reentrance_id: a process that opens with the id of the lock's holder takes the lock over at
            once and fences the holder; without one, the holder must have stopped or its lease run
            out.
        notify_host: where a writer listens for readers that want notifications; None for nowhere.
    """

    mode: Mode = "write"
    reentrance_id: str | None = None
    notify_host: str | None = "127.0.0.1"
    config: Config = DEFAULT


def open_location(
    url: str | os.PathLike[str],
    *,
    consensus: str | None = None,
    options: Options = Options(),  # noqa: B008 - frozen
    clock: Clock = SYSTEM,
) -> Client:
    """Open a location by URL, on a runtime of its own; the log is beside the blobs by default."""
    blob = open_blob(url)
    log = open_consensus(consensus if consensus is not None else url)
    runtime = Runtime.start(clock)
    try:
        return runtime.submit(Client.start(runtime, blob, log, options)).result()
    except BaseException:
        runtime.stop()
        raise


class Client:
    """See the module."""

    def __init__(
        self, runtime: Runtime, blob: Blob, consensus: Consensus, options: Options
    ) -> None:
        self.runtime = runtime
        self.clock = runtime.clock
        self.supervisor = Supervisor(runtime.clock)
        self.options = options
        self.config = options.config
        self.retries = Retries(runtime.clock, self.config)
        self.blob = CachedBlob(blob, self.config.cache_bytes_max, prefix=PART_PREFIX)
        self.consensus = consensus
        self.journal = Journal(self.blob, consensus, runtime.clock, self.config, self.retries)
        self.parts = PartStore(self.blob, runtime, self.config, self.retries)
        self.reader = Reader(runtime, self.journal, self.parts, self.config)
        self.holds: dict[str, HoldHandle] = {}
        self.local_holds = LocalHolds()
        self.upkeep = Upkeep(self)
        self.writable = options.mode == "write"
        self.owner = f"{socket.gethostname()}/{os.getpid()}"
        folder: str | None = getattr(blob, "root", None)
        #: Where the operating system watches who writes: in a folder, and nowhere else.
        self.host_lock = None if folder is None else HostLock(folder, self.owner)
        self._queue: WriteQueue | None = None
        self._notifier: Notifier | None = None
        self.lock: WriterLock | None = None
        self._background: list[Task] = []
        #: Answers what readers ask a writer (`question`).
        self.answerer: Answerer | None = None
        self._stopped = False

    @classmethod
    async def start(
        cls, runtime: Runtime, blob: Blob, consensus: Consensus, options: Options
    ) -> Client:
        """Open; runs on the runtime's loop."""
        client = cls(runtime, blob, consensus, options)
        try:
            await client.journal.load()
            if client.writable:
                # After loading: a location that is too new for us is not touched at all.
                await client.retries.run("probe", lambda: probe(blob, client.clock))
                await client._become_writer()
            else:
                await client._become_reader()
            client.upkeep.start()
        except BaseException:
            await client._let_go()
            raise
        return client

    async def _become_writer(self) -> None:
        lock = self.lock = WriterLock(
            self.journal,
            self.host_lock,
            owner=self.owner,
            reentrance_id=self.options.reentrance_id,
            lease_ms=self.config.lock_lease_ms,
            now_ms=self.now_ms,
        )
        lock.ask_host()
        address = ""
        if self.options.notify_host is not None:
            self._notifier = Notifier(self)
            address = await self._notifier.start(self.options.notify_host)
        epoch = await lock.take(address)
        self.parts.epoch = epoch
        self._queue = WriteQueue(self.runtime, self.journal, epoch, self.supervisor)
        if self._notifier is not None:
            self._notifier.begin()
        sweep = partial(sweep_orphans, self.blob, self.retries, self.journal.state)
        self._background.append(self.supervisor.task("sweep", "", sweep, ends=(StorageError,)))

    async def _become_reader(self) -> None:
        notified = self.options.mode == "notified"
        task = self.supervisor.task("follower", "", partial(follow, self, notified=notified))
        self._background.append(task)

    # -- collections ------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The newest state that this process knows."""
        return self.journal.state

    async def ask(self, question: bytes) -> bytes:
        """What the writer answers to a reader (`question`); runs on the loop.

        Raises:
            NotAnswered: it cannot be asked now.
        """
        try:
            return await ask(self, question)
        except NotAnswered:
            before = self.state.lock
            await self.journal.refresh()
            if self.state.lock == before:
                raise
        return await ask(self, question)  # there is another writer

    def schema_of(self, collection: int) -> tuple[Schema, int]:
        """The newest schema of a collection, and its id."""
        found = self.state.collection(collection)
        return found.schema, len(found.schemas) - 1

    def create_or_load(
        self,
        name: str,
        schema: Schema | Codec | None = None,
        key: tuple[str, ...] = (),
        *,
        frontier: int = 0,
    ) -> tuple[WriteHandle, ReadHandle]:
        """The collection of that name, made if there is none and a schema is given.

        Raises:
            SchemaMismatch: it exists with another schema or key.
            UnknownCollection: it does not exist and no schema was given.
        """
        codec = RowCodec(schema) if isinstance(schema, Schema) else schema
        if name not in self.state.names and codec is not None and self.writable:
            create = c.Create(name, key, schema_to_wire(codec.schema), as_frontier(frontier))
            self.runtime.submit(self.settle()).result()  # it may have been made already
            if name not in self.state.names:
                self.submit((create,)).result()
        found = self.state.collection(name)
        if codec is None:
            codec = RowCodec(found.schema)
        _check_same(found, codec.schema, key)
        return WriteHandle(self, found.id, codec), ReadHandle(self, found.id, codec)

    def evolve(self, name: str, columns: tuple[Column, ...]) -> Future[State]:
        """Add nullable columns at the end of a collection's schema; old rows read as NULL."""
        found = self.state.collection(name)
        wire = schema_to_wire(found.schema.extend(columns))
        return self.submit((c.Evolve(found.id, wire),))

    def drop(self, name: str) -> Future[State]:
        """Remove a collection. Its id is never used again."""
        return self.submit((c.Drop(self.state.collection(name).id),))

    def atomic(self) -> MultiWriteHandle:
        """Collect operations on any number of collections, to commit as one."""
        return MultiWriteHandle(self)

    def compact(self, name: str) -> Future[None]:
        """Rewrite a collection as one run, now."""
        self.require_writer()
        return self.runtime.submit(self.upkeep.compact(self.state.collection(name).id))

    def submit(
        self, transaction: c.Transaction | Prepare, own: Dependence | None = None
    ) -> Future[State]:
        """Queue a transaction: the one way in which this process changes collections."""
        return self.require_writer().submit(transaction, own)

    async def settle(self) -> None:
        """Return when every commit of this process is decided, and known; see `queue`.

        Raises:
            StorageError: storage does not answer, and so that cannot be known yet.
        """
        if self._queue is not None and self._queue.in_doubt:
            await self._queue.settle()

    def require_writer(self) -> WriteQueue:
        """The queue of writes; `ReadOnly` when this client only reads."""
        if self._queue is None:
            raise ReadOnly(
                "this client only reads",
                detail=f"The location was opened in mode {self.options.mode!r}.",
                hint='Open it with mode "write".',
                mode=self.options.mode,
            )
        return self._queue

    # -- holds ------------------------------------------------------------------------------

    def now_ms(self) -> int:
        """The time from which leases run: never before that of the newest entry (`journal`).

        A wall clock behind that of another process would otherwise give leases that have expired.
        """
        return self.journal.now_ms()

    def has_expired(self, hold: Hold) -> bool:
        """Whether a lease has run out: by the writer's clock, wherever this is asked."""
        return hold.expires_ms <= (self.now_ms() if self.writable else self.state.now_ms)

    def lease_end(self) -> int:
        """When a hold that is renewed now will expire."""
        return self.now_ms() + self.config.hold_lease_ms

    async def acquire(self, collection: int, frontier: Frontier | None = None) -> HoldHandle:
        """Take a hold at `frontier`, or at the current since; runs on the loop."""
        fresh = self.clock.fresh_id()
        handle = await self._take_hold(fresh, collection, frontier)
        self.holds[fresh] = handle
        return handle

    async def _take_hold(self, id: str, collection: int, frontier: Frontier | None) -> HoldHandle:
        while True:
            state = self.journal.state
            at = state.collection(collection).since if frontier is None else frontier
            expires_ms = self.lease_end()
            # A read that is under way may have planned before, and needs what was there then.
            planned = self.reader.oldest_plan(collection)
            seqno = state.seqno if planned is None else min(planned, state.seqno)
            try:
                await self.commit_hold(c.Acquire(id, collection, at, expires_ms, seqno, self.owner))
            except BeforeSince:
                if frontier is not None:
                    raise
                continue  # since moved on between looking and taking
            return HoldHandle(self, id, collection, at)

    async def commit_hold(self, *commands: c.Acquire | c.Downgrade | c.Release) -> None:
        """Commit changes of holds as one: through the queue, or as a reader's own entry."""
        if self._queue is not None:
            await asyncio.wrap_future(self._queue.submit(commands))
            return
        if self.options.mode == "independent":
            raise ReadOnly(
                "an independent reader takes no holds",
                detail="It writes nothing whatsoever, and a hold is an entry of the log.",
                hint='Open the location in mode "polling" or "notified".',
                mode=self.options.mode,
            )
        (outcome,) = await self.journal.commit(0, [commands])
        if outcome.error is not None:
            raise outcome.error

    # -- life -------------------------------------------------------------------------------

    def iterate(self, tables: AsyncIterator[T]) -> Iterator[T]:
        """An asynchronous iterator of the loop, for another thread."""
        if self.runtime.on_loop():
            raise UsageError("use `async for` on the persist loop")
        while (table := self.runtime.submit(_next(tables)).result()) is not None:
            yield table

    def status(self) -> dict[str, Any]:
        """What this client is and what it went through: for people and for metrics."""
        return {
            "mode": self.options.mode,
            "epoch": self.parts.epoch,
            "seqno": self.state.seqno,
            "commits": self._queue.committed if self._queue else 0,
            "compactions": self.upkeep.compactions,
            "retries": dict(self.retries.counts),
            "last_error": str(self.retries.last_error) if self.retries.last_error else None,
        }

    @property
    def trouble(self) -> str | None:
        """Why this client commits nothing any more, although nobody stopped it."""
        refusal = None if self._queue is None or self._stopped else self._queue.refusal
        return None if refusal is None else refusal.message

    def stop(self) -> None:
        """Finish what is queued, refuse what is new, release the lock; from another thread."""
        if self._stopped:
            return
        try:
            self.runtime.submit(self.close()).result()
        finally:
            self.runtime.stop()

    async def close(self) -> None:
        """Like `stop`, on the loop, and without ending the runtime."""
        if self._stopped:
            return
        self._stopped = True
        try:
            await self.upkeep.stop()
            for handle in list(self.holds.values()):
                with contextlib.suppress(WriterError, StorageError):  # its lease ends it instead
                    await handle.release()
            if self._queue is not None and self.lock is not None:
                await self._queue.drain()
                await self.lock.release()
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        """End the background work, close every connection, free the host lock."""
        if self._notifier is not None:
            await self._notifier.stop()
        await asyncio.gather(*(task.stop() for task in self._background))
        await self.journal.head.stop()
        await self.blob.close()
        await self.consensus.close()
        if self.lock is not None:
            self.lock.let_go_of_host()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _check_same(found: Collection, schema: Schema, key: tuple[str, ...]) -> None:
    if found.schema.columns[: len(schema.columns)] != schema.columns or (key and key != found.key):
        raise SchemaMismatch(
            f'collection "{found.name}" exists with another schema or key',
            detail=f"It has {found.schema} with key ({', '.join(found.key)}); "
            f"{schema} with key ({', '.join(key)}) was asked for.",
            hint="Open it without a schema, or evolve it.",
            collection=found.name,
        )


async def _next(tables: AsyncIterator[T]) -> T | None:
    return await anext(tables, None)
