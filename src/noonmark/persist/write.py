"""Writing: `write`, `seal`, `allow_compaction`, and several of them as one.

All calls return futures and are linearized in call order (`queue`). A write whose future has
resolved is durable, sealed or not. A small batch travels in its log entry; a large one is sorted,
written as Parquet parts, and named by its entry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from noonmark.errors import Determinate, Indeterminate, NotBelowFrontier, StorageError
from noonmark.persist.codec import Codec, update_table
from noonmark.persist.log import command as c
from noonmark.persist.log.dependence import dependence
from noonmark.persist.log.refusals import format_frontier
from noonmark.persist.log.state import Frontier, Inline, State
from noonmark.persist.part import run
from noonmark.persist.part.part import Part
from noonmark.tvc import Antichain, Update

if TYPE_CHECKING:
    from noonmark.persist.client import Client

Updates: TypeAlias = pa.Table | Iterable[Update[Any, int]]


class WriteHandle:
    """The right to change one collection."""

    def __init__(self, client: Client, collection: int, codec: Codec) -> None:
        self._client = client
        self.collection = collection
        self.codec = codec

    def write(self, updates: Updates) -> Future[State]:
        """Durably add updates, at times at or beyond upper."""
        return self._client.atomic().write(self, updates).commit()

    def seal(self, upper: int | Frontier) -> Future[State]:
        """Durably declare every time not at or beyond `upper` complete."""
        return self._client.atomic().seal(self, upper).commit()

    def allow_compaction(self, since: int | Frontier) -> Future[State]:
        """Durably allow times before `since` to be compacted together, as far as holds permit."""
        return self._client.atomic().allow_compaction(self, since).commit()

    def compare_and_append(
        self, updates: Updates, lower: int | Frontier, upper: int | Frontier
    ) -> Future[State]:
        """Write `updates` and seal to `upper`, if upper is exactly `lower` when it is applied."""
        return self._client.atomic().append(self, updates, lower, upper).commit()


class MultiWriteHandle:
    """Operations on any number of collections, applied all or not at all.

    Collects until `commit`; the place in the order of calls is that of `commit`.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._commands: list[c.AnyCommand | Callable[[], Awaitable[c.AnyCommand]]] = []
        self._uppers: dict[int, Frontier] = {}
        #: The collections of updates that are stored before it is committed.
        self._stored: set[int] = set()

    def upper_of(self, collection: int) -> Frontier:
        """How far a collection is known after what was added so far."""
        return self._uppers.get(collection, self._client.state.collection(collection).upper)

    def write(self, handle: WriteHandle, updates: Updates) -> MultiWriteHandle:
        """Add updates to a collection."""
        self.add_updates(handle, updates)
        return self

    def seal(self, handle: WriteHandle, upper: int | Frontier) -> MultiWriteHandle:
        """Advance a collection's upper."""
        return self.add(c.Seal(handle.collection, as_frontier(upper)))

    def allow_compaction(self, handle: WriteHandle, since: int | Frontier) -> MultiWriteHandle:
        """Let a collection's since advance."""
        return self.add(c.AllowCompaction(handle.collection, as_frontier(since)))

    def append(
        self,
        handle: WriteHandle,
        updates: Updates | None,
        lower: int | Frontier,
        upper: int | Frontier,
        *,
        stored: Sequence[c.Append] = (),
    ) -> MultiWriteHandle:
        """Write and seal from exactly `lower` to `upper`.

        Args:
            handle: the collection.
            updates: what to write; None for nothing.
            lower: the upper that the collection must have.
            upper: the upper that it will have.
            stored: runs that were stored elsewhere (by Spark's executors), each as one batch.
        """
        lower, upper = as_frontier(lower), as_frontier(upper)
        self.add(c.Expect(handle.collection, lower))
        bounds = None if updates is None else self.add_updates(handle, updates)
        times = [bounds[1]] if bounds is not None else []
        for command in stored:
            self.add(command)
            times.append(command.time_max)
        time_max = max(times, default=None)
        if time_max is not None and upper.less_equal(time_max):
            raise NotBelowFrontier(
                f"an update at time {time_max} is not before {format_frontier(upper)}",
                detail="A batch for [lower, upper) has times at or beyond lower and before upper.",
                hint="Seal further, or leave that update for a later batch.",
                time=time_max,
                upper=upper,
            )
        return self.add(c.Seal(handle.collection, upper))

    def add(self, command: c.AnyCommand) -> MultiWriteHandle:
        """Add any command."""
        if isinstance(command, c.Seal):
            self._uppers[command.collection] = command.upper
        self._commands.append(command)
        return self

    def commit(self) -> Future[State]:
        """Queue everything as one operation."""
        commands, stored = self._commands, self._stored
        self._commands, self._uppers, self._stored = [], {}, set()
        if not any(callable(command) for command in commands):
            return self._client.submit(tuple(commands))  # type: ignore[arg-type]

        async def prepare() -> c.Transaction:
            return tuple([await x() if callable(x) else x for x in commands])

        known = [command for command in commands if not callable(command)]
        return self._client.submit(prepare, dependence(known, stored))

    async def decide(self, *, patient: bool = False) -> None:
        """Commit, and where the answer is lost find out what became of it; on any loop.

        For whoever alone writes these collections, one commit after the other: whether it happened
        is whether they are sealed as it says.

        Args:
            patient: whether to wait for storage as long as it takes: for who cannot go on without
                knowing.

        Raises:
            Determinate: it did not happen.
            Indeterminate: storage does not answer; only if it is not patient.
        """
        seals, client = dict(self._uppers), self._client
        try:
            await asyncio.wrap_future(self.commit())
        except Indeterminate as error:
            while not await _is_settled(client):
                if not patient:
                    raise
                await client.clock.sleep(client.config.retry_largest_s)
            state = client.state
            if not all(state.collections[ref].upper.at_or_beyond(at) for ref, at in seals.items()):
                raise Determinate(
                    "storage failed before it was written", detail=error.message
                ) from error

    def add_updates(self, handle: WriteHandle, updates: Updates) -> tuple[int, int] | None:
        """Like `write`; returns the first and the last time of the updates."""
        client, collection = self._client, handle.collection
        schema, schema_id = client.schema_of(collection)
        table = update_table(updates, handle.codec, schema)
        if not table.num_rows:
            return None
        self.add_table(collection, client.state.collection(collection).key, schema_id, table)
        times = table.column(run.TIME).to_numpy()
        return int(times.min()), int(times.max())

    def add_table(
        self, collection: int, key: tuple[str, ...], schema_id: int, table: pa.Table
    ) -> None:
        """Add updates to a collection, which may be made by a command before them."""
        client = self._client
        if table.nbytes <= client.config.inline_bytes_max:
            command = inline_append(collection, table, schema_id)
            if command.bytes <= client.config.inline_bytes_max:
                self._commands.append(command)
                return

        async def prepare() -> c.AnyCommand:
            parts = await client.parts.write(collection, key, schema_id, table)
            return append_command(collection, parts)

        self._commands.append(prepare)
        self._stored.add(collection)


async def _is_settled(client: Client) -> bool:
    try:
        await client.settle()
    except StorageError:
        return False
    return True


def as_frontier(time: int | Frontier) -> Frontier:
    """A time, or a frontier, as a frontier."""
    return time if isinstance(time, Antichain) else Antichain.of(time)


def inline_append(collection: int, table: pa.Table, schema_id: int) -> c.Append:
    """A small table of updates as a command that carries it."""
    times = table.column(run.TIME).to_numpy()
    data = bytes(table.combine_chunks().to_batches()[0].serialize())
    return c.Append(
        collection=collection,
        rows=table.num_rows,
        bytes=len(data),
        time_min=int(times.min()),
        time_max=int(times.max()),
        diff_sum=int(table.column(run.DIFF).to_numpy().sum()),
        inline=Inline(data, schema_id),
    )


def append_command(collection: int, parts: tuple[Part, ...]) -> c.Append:
    """Parts of one run as a command that names them."""
    return c.Append(
        collection=collection,
        rows=sum(part.rows for part in parts),
        bytes=sum(part.bytes for part in parts),
        time_min=min(part.time_min for part in parts),
        time_max=max(part.time_max for part in parts),
        diff_sum=sum(part.diff_sum for part in parts),
        parts=parts,
    )
