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
from typing import Any, Literal, TypeVar

from noonmark.clock import SYSTEM, Clock
from noonmark.errors import (
    BeforeSince,
    Fenced,
    LockHeld,
    NotYetComplete,
    ReadOnly,
    SchemaMismatch,
    StorageError,
    UsageError,
    WriterError,
)
from noonmark.persist import command as c
from noonmark.persist.cache import CachedBlob
from noonmark.persist.codec import Codec, RowCodec
from noonmark.persist.config import DEFAULT, Config
from noonmark.persist.gc import sweep_orphans
from noonmark.persist.hold import HoldHandle
from noonmark.persist.host_lock import HostLock
from noonmark.persist.impl.open import open_blob, open_consensus
from noonmark.persist.impl.probe import probe
from noonmark.persist.journal import Journal
from noonmark.persist.location import Blob, Consensus
from noonmark.persist.notify import Notifier, follow
from noonmark.persist.parts import PART_PREFIX, PartStore
from noonmark.persist.plan import Query
from noonmark.persist.queue import Prepare, WriteQueue
from noonmark.persist.read import Reader
from noonmark.persist.refusals import format_frontier
from noonmark.persist.retry import Retries
from noonmark.persist.runtime import Runtime
from noonmark.persist.snapshot import Listen, Snapshot
from noonmark.persist.state import Collection, Frontier, Lock, State, schema_to_wire
from noonmark.persist.upkeep import Upkeep
from noonmark.persist.write import MultiWriteHandle, WriteHandle, as_frontier
from noonmark.rows.schema import Column, Schema

T = TypeVar("T")

Mode = Literal["write", "notified", "polling", "independent"]

#: The lease of a lock whose holder the operating system watches: no clock ends it.
_FOREVER_MS = 2**62
_TAKE_ATTEMPTS = 100


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
        self.options = options
        self.config = options.config
        self.retries = Retries(runtime.clock, self.config)
        self.blob = CachedBlob(blob, self.config.cache_bytes_max, prefix=PART_PREFIX)
        self.consensus = consensus
        self.journal = Journal(self.blob, consensus, runtime.clock, self.config, self.retries)
        self.parts = PartStore(self.blob, runtime, self.config, self.retries)
        self.reader = Reader(runtime, self.journal, self.parts, self.config)
        self.holds: dict[str, HoldHandle] = {}
        self.upkeep = Upkeep(self)
        self.writable = options.mode == "write"
        self.lease_is_needed = True
        self.owner = f"{socket.gethostname()}/{os.getpid()}"
        self._queue: WriteQueue | None = None
        self._notifier: Notifier | None = None
        self._host_lock: HostLock | None = None
        self._background: list[asyncio.Task[Any]] = []
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
                await client._become_writer(blob)
            else:
                await client._become_reader()
            client.upkeep.start()
        except BaseException:
            await client._let_go()
            raise
        return client

    async def _become_writer(self, blob: Blob) -> None:
        self._take_host_lock(blob)
        address = ""
        if self.options.notify_host is not None:
            self._notifier = Notifier(self)
            address = await self._notifier.start(self.options.notify_host)
        epoch = await self._take_lock(address)
        self.parts.epoch = epoch
        self._queue = WriteQueue(self.runtime, self.journal, epoch)
        if self._notifier is not None:
            self._notifier.begin()
        sweep = sweep_orphans(self.blob, self.retries, self.journal.state)
        self._background.append(self.runtime.loop.create_task(sweep))

    def _take_host_lock(self, blob: Blob) -> None:
        """On local disk: ask the operating system who lives.

        A lock without an end belongs to the process that has the host lock. A lock with a lease was
        taken over from a process that kept the host lock, and then the lease alone decides.
        """
        folder = getattr(blob, "root", None)
        if folder is None:
            return
        self._host_lock = HostLock(str(folder), self.owner)
        if self._host_lock.acquire():
            self.lease_is_needed = False
            return
        lock = self.journal.state.lock
        if lock is not None and (
            not _ends_with_its_process(lock) or lock.reentrance_id == self.options.reentrance_id
        ):
            return
        holder = self._host_lock.holder()
        raise LockHeld(
            f'the location is being written by "{holder}"',
            detail=f"It has the file lock of {folder}"
            + (f"; the last epoch is {lock.epoch}." if lock else "."),
            hint="Stop that process, or open the location read-only.",
            holder=holder,
            epoch=self.journal.state.epoch,
        )

    async def _take_lock(self, address: str) -> int:
        for _ in range(_TAKE_ATTEMPTS):
            now_ms, old = self.now_ms(), self.journal.state.lock
            # Whoever held a lock that ends with its process had the host lock, which is ours now.
            orphaned = not self.lease_is_needed and old is not None and _ends_with_its_process(old)
            lock = Lock(
                epoch=self.journal.state.epoch + 1,
                reentrance_id=self.options.reentrance_id or self.clock.fresh_id(),
                holder=self.owner,
                taken_ms=now_ms,
                expires_ms=now_ms + self.config.lock_lease_ms
                if self.lease_is_needed
                else _FOREVER_MS,
                address=address,
            )
            try:
                (outcome,) = await self.journal.commit(lock.epoch, [(c.TakeLock(lock, orphaned),)])
            except Fenced:
                await self.journal.refresh()  # somebody else was quicker; ask again
                continue
            if outcome.error is not None:
                raise outcome.error
            return lock.epoch
        raise LockHeld("the write lock changes hands too fast to be taken", holder=None)

    async def _become_reader(self) -> None:
        notified = self.options.mode == "notified"
        task = self.runtime.loop.create_task(follow(self, notified=notified))
        self._background.append(task)

    # -- collections ------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The newest state that this process knows."""
        return self.journal.state

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

    def submit(self, transaction: c.Transaction | Prepare) -> Future[State]:
        """Queue a transaction: the one way in which this process changes collections."""
        return self.require_writer().submit(transaction)

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
        """The time by which leases are judged: never before that of the newest entry.

        A wall clock behind that of another process would otherwise give leases that have expired.
        """
        return max(self.clock.now_ms(), self.state.now_ms)

    def lease_end(self) -> int:
        """When a hold that is renewed now will expire."""
        return self.now_ms() + self.config.hold_lease_ms

    async def acquire(self, collection: int, frontier: Frontier | None = None) -> HoldHandle:
        """Take a hold at `frontier`, or at the current since; runs on the loop."""
        while True:
            state = self.journal.state
            at = state.collection(collection).since if frontier is None else frontier
            fresh = self.clock.fresh_id()
            try:
                await self.commit_hold(
                    c.Acquire(fresh, collection, at, self.lease_end(), state.seqno, self.owner)
                )
            except BeforeSince:
                if frontier is not None:
                    raise
                continue  # since moved on between looking and taking
            handle = self.holds[fresh] = HoldHandle(self, fresh, collection, at)
            return handle

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
            if self._queue is not None:
                await self._queue.drain()
                await self._release_lock()
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        """End the background work, close every connection, free the host lock."""
        if self._notifier is not None:
            await self._notifier.stop()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self.blob.close()
        await self.consensus.close()
        if self._host_lock is not None:
            self._host_lock.release()

    async def _release_lock(self) -> None:
        try:
            await self.journal.commit(self.parts.epoch, [(c.ReleaseLock(),)])
        except (WriterError, StorageError):
            return  # somebody else has it already, or finds out by the lease or the host lock

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class ReadHandle:
    """The right to read one collection."""

    def __init__(self, client: Client, collection: int, codec: Codec) -> None:
        self._client = client
        self.collection = collection
        self.codec = codec

    @property
    def since(self) -> Frontier:
        """The first readable times, as this process knows."""
        return self._client.state.collection(self.collection).since

    @property
    def upper(self) -> Frontier:
        """The first incomplete times, as this process knows."""
        return self._client.state.collection(self.collection).upper

    def snapshot(self, as_of: int, *, wait: bool = True, **query: Any) -> Future[Snapshot]:
        """The contents at `as_of`; waits until that time is complete.

        Args:
            as_of: the time.
            wait: False to get `NotYetComplete` instead of waiting.
            **query: `columns`, `where` and `keys`, as in `plan.Query`.
        """
        return self._client.runtime.submit(self._snapshot(Query(as_of, **query), wait))

    async def _snapshot(self, query: Query, wait: bool) -> Snapshot:
        client = self._client

        def complete(state: State) -> bool:
            return not state.collection(self.collection).upper.less_equal(query.as_of)

        if not wait and not complete(client.state):
            found = client.state.collection(self.collection)
            raise NotYetComplete(
                f'"{found.name}" is not complete at {query.as_of}',
                detail=f"Its upper is {format_frontier(found.upper)}.",
                hint="Read at an earlier time, or wait.",
                as_of=query.as_of,
                upper=found.upper,
            )
        await client.journal.wait_for(complete)
        return Snapshot(client, client.reader.plan(self.collection, query), self.codec)

    def listen(self, as_of: int, *, hold: bool | None = None) -> Listen:
        """Updates at times after `as_of`.

        Args:
            as_of: a readable time.
            hold: whether to take a hold, so that since cannot overtake the listener; by default
                yes, except for an independent reader, which cannot.
        """
        client = self._client
        return client.runtime.submit(self._listen(as_of, hold)).result()

    async def _listen(self, as_of: int, hold: bool | None) -> Listen:
        client = self._client
        listen = Listen(client, self.collection, self.codec, as_of)
        if hold is None:
            hold = client.options.mode != "independent"
        if hold:
            listen.hold = await client.acquire(self.collection, as_frontier(as_of))
        else:
            client.reader.plan(self.collection, Query(as_of))
        return listen


def _ends_with_its_process(lock: Lock) -> bool:
    return lock.expires_ms == _FOREVER_MS


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
