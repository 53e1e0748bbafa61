"""One commit in the terms of Storage: what tables, ingestion, views and the catalog write through.

Every collection of the system has one owner: the committer of tables, one ingestion, the views that
share an arrangement, the catalog. The owner's right to write is the collection's *own* write
capability. It has no lease, and its token follows from the number of the collection: the next
process finds it, and a collection that is renamed keeps it. The commit that makes a collection
takes it where that commit knows its number, and otherwise the first write does; so a location whose
collections were made without one goes on.

    update_and_downgrade   updates at or beyond the capability's frontier and before the new one;
                           upper follows
    update                 updates alone: upper stays, whoever downgrades later completes them

Horizons. Whoever keeps a length of history lets go of what is older than a clock says. The clock
may step back, and the length may be raised: then the horizon is behind what was let go already,
and what was let go stays so. `let_history_go` and `move_read` are the one place for this rule; a
frontier that somebody states himself (`downgrade` of a capability) is refused when it goes back.

Law (one commit): what is added is applied all or not at all, with everything beside it.
Law (owner): no upper passes the own capability: neither a seal nor another capability moves a
collection that the system writes. A writer that counts on an older frontier is refused with
`CapabilityInvalid`, and nothing of its commit happens.

Where it runs: driver; the control plane alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from noonmark.errors import BeforeSince, BelowUpper, CapabilityInvalid, NotBelowFrontier
from noonmark.persist.client import Client
from noonmark.persist.codec import RowCodec
from noonmark.persist.hold import NO_LEASE_MS, HoldHandle
from noonmark.persist.log import command as c
from noonmark.persist.log.refusals import format_frontier
from noonmark.persist.log.state import Collection, Frontier, State, schema_to_wire
from noonmark.persist.write import MultiWriteHandle, Updates, WriteHandle, as_frontier
from noonmark.storage.capability import WriteCapability
from noonmark.storage.description import CollectionDescription

#: How much history a collection of the system keeps, unless it is told otherwise.
RETAIN_MS = 600_000


def own_token(collection: int) -> str:
    """The token of a collection's own write capability."""
    return f"write/{collection}"


def own_capability(
    state: State, ref: int | str, frontier: int | Frontier | None = None
) -> WriteCapability:
    """The own write capability of a collection.

    Args:
        state: where it is known.
        ref: the collection, by number or name.
        frontier: where the owner counts on it to be; None for where it is.
    """
    found = state.collection(ref)
    at = found.upper if frontier is None else as_frontier(frontier)
    return WriteCapability(found.name, at, own_token(found.id))


def is_owned(state: State, collection: Collection) -> bool:
    """Whether the system writes a collection, and so nobody else."""
    return own_token(collection.id) in state.holds


def creation(
    name: str, description: CollectionDescription, frontier: int | Frontier, number: int = 0
) -> c.Create:
    """What makes a collection.

    Args:
        name: its name.
        description: its definition.
        frontier: from when on it is written.
        number: the number that the rest of the transaction counts on; 0 when nothing does.
    """
    schema, at = schema_to_wire(description.schema), as_frontier(frontier)
    return c.Create(name, description.key, schema, at, description.annotation(), number)


def taking(client: Client, collection: int, frontier: int | Frontier) -> c.Acquire:
    """What takes the own write capability of a collection, where it is."""
    at, seqno = as_frontier(frontier), client.state.seqno
    token = own_token(collection)
    return c.Acquire(token, collection, at, NO_LEASE_MS, seqno, client.owner, writes=True)


def completing(client: Client, collection: int, frontier: int | Frontier) -> c.Transaction:
    """What moves the own write capability of a collection, and so its upper, without updates."""
    state, token = client.state, own_token(collection)
    upper = state.collection(collection).upper
    taken = () if token in state.holds else (taking(client, collection, upper),)
    end = as_frontier(frontier)
    return (*taken, c.Downgrade(token, end, NO_LEASE_MS, state.seqno, upper))


def transfer(
    client: Client, capability: WriteCapability, frontier: int | Frontier
) -> c.Transaction:
    """What makes a user's collection one that the system writes, from a frontier on.

    Upper follows the own capability there: nobody else has another.
    """
    found = client.state.collection(capability.id)
    expected, released = c.Expect(found.id, found.upper), c.Release(capability.token)
    return (expected, released, taking(client, found.id, frontier))


def reading(client: Client, token: str, collection: int, frontier: int | Frontier) -> c.Acquire:
    """What takes a read capability of the system: without a lease, under a token of its own.

    Nothing but its release ends it: who makes one for an object drops it with the object.
    """
    at, seqno = as_frontier(frontier), client.state.seqno
    return c.Acquire(token, collection, at, NO_LEASE_MS, seqno, client.owner)


async def take_up_read(client: Client, token: str, collection: int) -> HoldHandle:
    """The read capability of that token, taken at the current since if there is none; on the loop.

    It belongs to an object of the catalog, not to a process: it outlives stops, crashes and pauses.
    """
    await client.settle()
    held = client.state.holds.get(token)
    while held is None or held.collection != collection:
        since = client.state.collection(collection).since
        try:
            await client.commit_hold(reading(client, token, collection, since))
        except BeforeSince:
            continue  # since moved on between looking and taking
        held = client.state.holds[token]
    return HoldHandle(client, token, collection, held.frontier, has_lease=False)


class Transaction(MultiWriteHandle):
    """See the module. Collects until `commit` or `decide`."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._taken: set[str] = set()

    def update_and_downgrade(
        self,
        capability: WriteCapability,
        updates: Updates | None,
        new_frontier: int | Frontier,
        *,
        stored: Sequence[c.Append] = (),
        expires_ms: int = NO_LEASE_MS,
    ) -> WriteCapability:
        """Apply updates and downgrade the capability; returns it as it is after the commit.

        Args:
            capability: the right to write, where it must be.
            updates: at or beyond its frontier and before the new one; None for none.
            new_frontier: from where on it is a right afterwards.
            stored: more updates, in runs that were stored elsewhere (by Spark's executors).
            expires_ms: until when its lease runs.
        """
        state, frontier = self._client.state, as_frontier(new_frontier)
        collection = state.collection(capability.id)
        self.take(collection, capability)
        # First: whether the capability is valid is said before whether the times are.
        stated, seqno = capability.frontier, state.seqno
        self.add(c.Downgrade(capability.token, frontier, expires_ms, seqno, stated))
        bounds = [] if updates is None else [self._add(collection, updates)]
        for command in stored:
            self.add(command)
            bounds.append((command.time_min, command.time_max))
        for each in bounds:
            _check_times(capability, each, frontier)
        self._uppers[collection.id] = frontier
        return capability.at(frontier)

    def update(self, capability: WriteCapability, updates: Updates) -> None:
        """Apply updates at or beyond the capability's frontier, which stays."""
        collection = self._client.state.collection(capability.id)
        self.take(collection, capability)
        self._add(collection, updates)

    def let_history_go(self, collection: int, horizon: Frontier, step_ms: int = 0) -> None:
        """Let a collection's since advance to a horizon; nothing where it may be there already.

        What this process reads just now stays (`persist.hold.LocalHolds`).

        Args:
            collection: its number.
            horizon: what lies before it is needed no more; it may be behind an earlier one.
            step_ms: how far ahead it has to be of the last one to be worth a command.
        """
        allowed = self._client.state.collection(collection).allowed
        horizon = self._client.local_holds.limit(collection, horizon)
        if horizon == allowed or not horizon.at_or_beyond(allowed):
            return
        old, new = allowed.only(), horizon.only()
        if old is None or new is None or new - old >= step_ms:
            self.add(c.AllowCompaction(collection, horizon))

    def move_read(self, token: str, horizon: Frontier) -> None:
        """Move a read capability of the system to a horizon; it stays where that is behind it."""
        state = self._client.state
        held = state.holds.get(token)
        frontier = horizon if held is None else horizon.join(held.frontier)
        self.add(c.Downgrade(token, frontier, NO_LEASE_MS, state.seqno))

    async def decide(self, *, patient: bool = False) -> None:
        """See `MultiWriteHandle`.

        Raises:
            UnknownCollection: one was dropped meanwhile, and its capability with it.
        """
        written = tuple(self._uppers)
        try:
            await super().decide(patient=patient)
        except CapabilityInvalid:
            for collection in written:
                self._client.state.collection(collection)
            raise

    def take(self, collection: Collection, capability: WriteCapability) -> None:
        """Take the own capability of a collection that has none yet."""
        token = own_token(collection.id)
        known = token in self._client.state.holds or token in self._taken
        if capability.token == token and not known:
            self._taken.add(token)
            self.add(taking(self._client, collection.id, collection.upper))

    def _add(self, collection: Collection, updates: Updates) -> tuple[int, int] | None:
        handle = WriteHandle(self._client, collection.id, RowCodec(collection.schema))
        return self.add_updates(handle, updates)


def _check_times(
    capability: WriteCapability, bounds: tuple[int, int] | None, frontier: Frontier
) -> None:
    if bounds is None:
        return
    first, last = bounds
    if not capability.frontier.less_equal(first):
        raise BelowUpper(
            f'cannot write to "{capability.id}" at time {first}',
            detail=f"The capability is at {format_frontier(capability.frontier)}.",
            hint="Write at times at or beyond the capability's frontier.",
            time=first,
            frontier=capability.frontier,
        )
    if frontier.less_equal(last):
        raise NotBelowFrontier(
            f"an update at time {last} is not before {format_frontier(frontier)}",
            detail="Times must not be at or beyond the frontier that the call downgrades to.",
            time=last,
            frontier=frontier,
        )
