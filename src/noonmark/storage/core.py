"""The rules of Storage, as coroutines of the persist loop; `storage.Storage` is the blocking front.

The four calls of the formalism, and what goes with them. A global id is bound once, to one
collection, for ever. Its frontiers then move one way:

    create                 since = upper = the initial frontier; nothing is readable yet
    update_and_downgrade   upper follows the meet of all write capabilities
    downgrade, drop        since follows the meet of all read capabilities, and never passes upper
    close                  since and upper become empty; what is left is the id, never used again

Every call is durable when it returns. Dropping or losing a capability releases its constraint and
moves nothing by itself: a collection whose last writer crashed is not closed by that, it waits
for `acquire_capabilities`.

A capability is valid at an instant of the call that exercises it: either its commit says so, or it
was looked up in the newest state after the call began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

import msgspec

from noonmark.errors import (
    BeforeSince,
    BelowUpper,
    CapabilityInvalid,
    NameTaken,
    UsageError,
)
from noonmark.persist.client import Client
from noonmark.persist.hold import NO_LEASE_MS
from noonmark.persist.log import command as c
from noonmark.persist.log.refusals import format_frontier
from noonmark.persist.log.state import Collection, Frontier, Hold, State, schema_to_wire
from noonmark.persist.write import Updates, as_frontier
from noonmark.storage.capability import Capability, ReadCapability, WriteCapability
from noonmark.storage.description import CollectionDescription, description_of
from noonmark.storage.subscription import AsyncSubscription
from noonmark.storage.transaction import Transaction, is_owned
from noonmark.tvc import EMPTY

K = TypeVar("K", ReadCapability, WriteCapability)

_CREATE_ATTEMPTS = 100


class AsyncStorage:
    """See the module. Every coroutine runs on the client's loop."""

    def __init__(self, client: Client, *, lease_ms: int | None = None) -> None:
        self.client = client
        self._lease_ms = client.config.hold_lease_ms if lease_ms is None else lease_ms

    # -- the four calls ---------------------------------------------------------------------

    async def create(
        self, id: str, description: CollectionDescription, frontier: int | Frontier = 0
    ) -> tuple[ReadCapability, WriteCapability]:
        """Bind `id` to a new collection; both capabilities are at the initial frontier.

        Raises:
            NameTaken: the id was used before, whether or not its collection still exists.
        """
        at = as_frontier(frontier)
        for _ in range(_CREATE_ATTEMPTS):
            ref = self.client.state.next_collection
            read = ReadCapability(id, at, self.client.clock.fresh_id())
            write = WriteCapability(id, at, self.client.clock.fresh_id())
            create = c.Create(
                name=id,
                key=description.key,
                schema=schema_to_wire(description.schema),
                frontier=at,
                annotation=description.annotation(),
                expected_id=ref,
            )
            # Since is bound by capabilities alone, so everything else is allowed from the start.
            allow = c.AllowCompaction(ref, EMPTY)
            holds = (self._acquire(read, ref), self._acquire(write, ref))
            try:
                await asyncio.wrap_future(self.client.submit((create, *holds, allow)))
            except NameTaken as error:
                raise NameTaken(
                    f'global id "{id}" was used before',
                    hint="A global id is never reused; choose a new one.",
                    id=id,
                ) from error
            except UsageError:
                if self.client.state.next_collection == ref:
                    raise
                continue  # another collection took that number meanwhile
            return read, write
        raise UsageError(f'"{id}" could not be created: others are created too fast')

    async def subscribe_at(
        self,
        capability: ReadCapability,
        *,
        snapshot: bool = True,
        filter: Any = None,
        projection: tuple[str, ...] | None = None,
    ) -> AsyncSubscription:
        """The contents at the capability's frontier once they are known, then every update.

        Args:
            capability: where to read from. The subscription takes a hold of its own, renewed while
                it lives, so this one may be downgraded or dropped at once.
            snapshot: False to begin with the updates after the frontier.
            filter: a pyarrow compute expression over the columns; rows for which it is not true
                are not sent.
            projection: the columns to send.
        """
        # Another process may have dropped it: what is known here is not enough.
        await self.client.journal.refresh()
        collection = await self._validate(capability)
        return await AsyncSubscription.open(
            self.client,
            collection,
            capability.frontier.only(),
            snapshot=snapshot,
            filter=filter,
            projection=projection,
        )

    async def update_and_downgrade(
        self, capability: WriteCapability, updates: Updates, new_frontier: int | Frontier
    ) -> WriteCapability:
        """Apply `updates` and downgrade the capability, as one.

        All times must be at or beyond the capability's frontier and not at or beyond the new one.
        """
        written = self.update_many([(capability, updates, new_frontier)])
        return (await asyncio.wrap_future(written))[0]

    def update_many(
        self, writes: Iterable[tuple[WriteCapability, Updates, int | Frontier]]
    ) -> Future[list[WriteCapability]]:
        """`update_and_downgrade` of several collections in one commit; a future.

        Does not wait, and may be called from any thread: its place in the order is that of the
        call. So the capabilities are judged when it is committed, by the future.
        """
        self.client.require_writer()
        txn, end_ms = Transaction(self.client), self._lease_end()
        after = []
        for capability, updates, frontier in writes:
            self._target(capability)
            after.append(txn.update_and_downgrade(capability, updates, frontier, expires_ms=end_ms))
        return _then(txn.commit(), after)

    async def acquire_capabilities(self, id: str) -> tuple[ReadCapability, WriteCapability]:
        """Capabilities at the current since and upper: best effort, and empty when closed.

        Raises:
            CapabilityInvalid: the system writes it (`transaction`); only reading is to be had.
        """
        while True:
            collection = self.client.state.collection(id)
            if is_owned(self.client.state, collection):
                raise CapabilityInvalid(
                    f'"{id}" is written by the system alone',
                    hint="Take the right to read it, with acquire_read.",
                    id=id,
                )
            read = ReadCapability(id, collection.since, self.client.clock.fresh_id())
            write = WriteCapability(id, collection.upper, self.client.clock.fresh_id())
            holds = (self._acquire(read, collection.id), self._acquire(write, collection.id))
            try:
                await asyncio.wrap_future(self.client.submit(holds))
            except (BelowUpper, UsageError):
                if self.client.state.collection(id) == collection:
                    raise
                continue  # a frontier moved between looking and taking
            return read, write

    async def acquire_read(self, id: str) -> ReadCapability:
        """The right to read at the current since: of any collection, whoever writes it."""
        while True:
            collection = self.client.state.collection(id)
            read = ReadCapability(id, collection.since, self.client.clock.fresh_id())
            try:
                await self._commit(self._acquire(read, collection.id))
            except BeforeSince:
                if self.client.state.collection(id) == collection:
                    raise
                continue  # since moved between looking and taking
            return read

    # -- what capabilities can do -----------------------------------------------------------

    async def clone(self, capability: K) -> K:
        """A second capability with the same rights, and a life of its own."""
        collection = await self._validate(capability)
        fresh = type(capability)(capability.id, capability.frontier, self.client.clock.fresh_id())
        # Changes nothing, and is refused unless the original is still there.
        original = c.Downgrade(capability.token, capability.frontier, 0, 0, capability.frontier)
        await self._commit(original, self._acquire(fresh, collection.id))
        return fresh

    async def downgrade(self, capability: K, frontier: int | Frontier) -> K:
        """Give up the times before `frontier`."""
        (downgraded,) = await self.apply([(capability, as_frontier(frontier))])
        return downgraded

    async def renew(self, capability: K) -> K:
        """Extend the lease."""
        return await self.downgrade(capability, capability.frontier)

    async def drop(self, *capabilities: Capability) -> None:
        """Give up capabilities; dropping one that has expired is no error."""
        while releases := [c.Release(x.token) for x in capabilities if await self._held(x)]:
            try:
                await self._commit(*releases)
            except CapabilityInvalid:
                continue  # one of them expired, or was dropped, between looking and dropping
            return

    async def apply(self, changes: Iterable[tuple[K, Frontier]]) -> list[K]:
        """Downgrade many capabilities in one commit: deferred actions, batched."""
        changes = list(changes)
        await self._commit(*(self._downgrade(each, frontier) for each, frontier in changes))
        return [each.at(frontier) for each, frontier in changes]

    async def close(self, id: str) -> None:
        """The end of a collection: both frontiers become empty, every capability is void."""
        ref = self.client.state.collection(id).id
        await asyncio.wrap_future(self.client.submit((c.Close(ref),)))

    # -- what is known ----------------------------------------------------------------------

    def description(self, id: str) -> CollectionDescription:
        """What `id` was bound to."""
        return description_of(self.client.state.collection(id))

    def frontiers(self) -> dict[str, tuple[Frontier, Frontier]]:
        """Since and upper of every collection."""
        collections = self.client.state.collections.values()
        return {each.name: (each.since, each.upper) for each in collections}

    def capabilities(self, id: str) -> list[Hold]:
        """Who holds what on a collection."""
        collection = self.client.state.collection(id)
        return [h for h in self.client.state.holds.values() if h.collection == collection.id]

    async def _validate(self, capability: Capability) -> Collection:
        """The capability's collection, if the capability is valid as stated."""
        return self._check(capability, await self._held(capability))

    def _check(self, capability: Capability, hold: Hold | None) -> Collection:
        if hold is None:
            raise CapabilityInvalid(
                f'the capability on "{capability.id}" is not valid',
                detail="It was dropped, or its lease ran out.",
                hint="Get new ones with acquire_capabilities; what it protected may be gone.",
                id=capability.id,
                token=capability.token,
            )
        collection = self.client.state.collection(hold.collection)
        if (hold.frontier, hold.writes, collection.name) != (
            capability.frontier,
            capability.writes,
            capability.id,
        ):
            raise CapabilityInvalid(
                f'the capability on "{capability.id}" is not valid as stated',
                detail=f'It is one to {"write" if hold.writes else "read"} "{collection.name}" at '
                f"{format_frontier(hold.frontier)}; one to "
                f'{"write" if capability.writes else "read"} "{capability.id}" at '
                f"{format_frontier(capability.frontier)} was stated.",
                hint="Use the capability that the last call returned.",
                id=capability.id,
                frontier=hold.frontier,
                stated=capability.frontier,
            )
        return collection

    def _target(self, capability: WriteCapability) -> Collection:
        """What the capability writes to; whether it is valid is for the commit to say.

        What a capability is a right to never changes. Where it is does: this process may have
        moved it in a commit that it knows nothing of yet.
        """
        hold = self.client.state.holds.get(capability.token)
        if hold is None:
            return self.client.state.collection(capability.id)
        return self._check(capability, msgspec.structs.replace(hold, frontier=capability.frontier))

    async def _held(self, capability: Capability) -> Hold | None:
        """What the capability stands for, wherever it is by now; None when it is void."""
        hold = self._known(capability)
        if hold is None or hold.frontier != capability.frontier:
            # This process may not have heard yet of what another one handed over.
            await self.client.journal.refresh()
            hold = self._known(capability)
        return hold

    def _known(self, capability: Capability) -> Hold | None:
        """The like, as far as this process knows."""
        hold = self.client.state.holds.get(capability.token)
        return None if hold is None or self.client.has_expired(hold) else hold

    async def _commit(self, *commands: c.Acquire | c.Downgrade | c.Release) -> None:
        """Commit changes of capabilities as one; a process that only reads may do so, too."""
        await self.client.commit_hold(*commands)

    def _acquire(self, capability: Capability, ref: int) -> c.Acquire:
        return c.Acquire(
            id=capability.token,
            collection=ref,
            frontier=capability.frontier,
            expires_ms=self._lease_end(),
            seqno=self.client.state.seqno,
            owner=self.client.owner,
            writes=capability.writes,
        )

    def _downgrade(self, capability: Capability, frontier: Frontier) -> c.Downgrade:
        return c.Downgrade(
            id=capability.token,
            frontier=frontier,
            expires_ms=self._lease_end(),
            seqno=self.client.state.seqno,
            stated=capability.frontier,
        )

    def _lease_end(self) -> int:
        if self._lease_ms >= NO_LEASE_MS:
            return NO_LEASE_MS
        return self.client.now_ms() + self._lease_ms


def _then(committed: Future[State], result: list[WriteCapability]) -> Future[list[WriteCapability]]:
    """A future of `result`, once `committed` has resolved."""
    chained: Future[list[WriteCapability]] = Future()
    chained.set_running_or_notify_cancel()

    def done(future: Future[State]) -> None:
        error = future.exception()
        if error is not None:
            chained.set_exception(error)
        else:
            chained.set_result(result)

    committed.add_done_callback(done)
    return chained
