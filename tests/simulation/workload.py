"""What happens in a seed: calls, crashes, takeovers, weather; each step chosen by the seed.

A step is one function ``(world) -> Awaitable | None``; what it returns may be waited for or left to
go on beside the next steps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from random import Random

from noonmark.errors import (
    BeforeSince,
    CapabilityInvalid,
    FrontierRegression,
    NoonmarkError,
    Stopped,
    StorageError,
    UnknownCollection,
    WriterError,
)
from noonmark.persist import command as c
from noonmark.persist.client import Client
from noonmark.persist.codec import RowCodec
from noonmark.persist.hold import HoldHandle
from noonmark.persist.state import Collection, schema_to_wire
from noonmark.persist.write import MultiWriteHandle, WriteHandle
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import parse_type
from noonmark.tvc import EMPTY, Antichain, Update

from .loop import pause
from .model import LEFT, NEVER, RIGHT, HeldFrontier, Row, Violation, marker_of, time_of
from .process import Process
from .reads import Listener, check_read
from .world import World

SCHEMA = Schema.of(k="bigint", v="text")
REENTRANCE_ID = "the usual"
COLLECTIONS_MAX = 5

Step = Callable[[World], "Awaitable[object] | None"]
Updates = list[tuple[Row, int, int]]


# -- writes -------------------------------------------------------------------------------------


def _writer(world: World) -> tuple[Process, Client] | None:
    process = world.writer
    if process is None or process.client is None or process.gate.dead:
        return None
    return process, process.client


def _collections(client: Client, *, pair: bool = False) -> list[Collection]:
    return [c for c in client.state.collections.values() if (c.name in (LEFT, RIGHT)) == pair]


def _next_time(world: World, name: str) -> int:
    """The upper that the collection will have once everything that was asked for is done."""
    asked = [o.seals.get(name, 0) for o in world.model.by_collection.get(name, ()) if o.possible]
    return max((to for to in asked if to != NEVER), default=0)


def _updates(world: World, collection: Collection, lower: int) -> Updates:
    """A few updates, some of them retractions, at a few times from `lower` on."""
    random, names = world.random, collection.schema.names
    updates: Updates = []
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        values = [random.choice((0, 1, 2, 3, 4, 5, None)), random.choice("abcd")]
        values += [random.choice((None, 7)) for _ in names[2:]]
        while values[-1] is None and len(values) > 1:
            values.pop()
        time = lower + random.choice((0, 0, 0, 1, 2, 5))
        # Some collections only grow: those are read part after part.
        diff = 1 if _only_grows(collection) else random.choice((1, 1, 1, 2, -1))
        updates.append((tuple(values), time, diff))
    return updates


def _only_grows(collection: Collection) -> bool:
    return collection.id % 2 == 0


def _with_marker(world: World, updates: Updates) -> Updates:
    """One more row for the operation that is about to begin, at each of its times."""
    marker = marker_of(len(world.model.operations))
    return [*updates, *((marker, time, 1) for time in sorted({time for _, time, _ in updates}))]


def _handle(client: Client, collection: Collection) -> WriteHandle:
    return WriteHandle(client, collection.id, RowCodec(collection.schema))


def _as_updates(updates: Updates, collection: Collection) -> list[Update]:
    width = len(collection.schema.names)
    return [Update((*row, *[None] * (width - len(row))), t, d) for row, t, d in updates]


def write(world: World) -> Awaitable[object] | None:
    """Add updates to one collection, mostly where it is open, sometimes where it is not."""
    chosen = _choose_open(world)
    if chosen is None:
        return None
    process, client, collection, lower = chosen
    if world.random.random() < 0.05:
        lower = max(0, lower - 3)
    updates = _with_marker(world, _updates(world, collection, lower))
    rows = _as_updates(updates, collection)
    return world.submit(
        process,
        "write",
        lambda: _handle(client, collection).write(rows),
        updates={collection.name: updates},
    )


def _choose_open(world: World) -> tuple[Process, Client, Collection, int] | None:
    writer = _writer(world)
    if writer is None:
        return None
    process, client = writer
    able = _collections(client)
    if not able:
        return None
    collection = world.random.choice(able)
    return process, client, collection, _next_time(world, collection.name)


def seal(world: World) -> Awaitable[object] | None:
    """Advance an upper; seldom for ever, sometimes backwards (which is refused)."""
    chosen = _choose_open(world)
    if chosen is None:
        return None
    process, client, collection, lower = chosen
    kind = world.random.random()
    upper = lower + world.random.choice((1, 1, 2, 4))
    if kind < 0.05:
        upper = max(0, lower - 2)
    frontier = EMPTY if kind > 0.985 else Antichain.of(upper)
    return world.submit(
        process,
        "seal",
        lambda: _handle(client, collection).seal(frontier),
        seals={collection.name: time_of(frontier)},
    )


def append(world: World) -> Awaitable[object] | None:
    """Compare and append, mostly from where the collection is."""
    chosen = _choose_open(world)
    if chosen is None:
        return None
    process, client, collection, lower = chosen
    updates = _updates(world, collection, lower)
    upper = max(time for _, time, _ in updates) + world.random.choice((1, 2))
    updates = _with_marker(world, updates)
    expected = lower + (world.random.random() < 0.1)
    rows = _as_updates(updates, collection)
    return world.submit(
        process,
        "compare and append",
        lambda: _handle(client, collection).compare_and_append(rows, expected, upper),
        updates={collection.name: updates},
        seals={collection.name: upper},
        expects=collection.name,
    )


def atomic(world: World) -> Awaitable[object] | None:
    """Write to several collections, seal some and let some be compacted, all at once."""
    writer = _writer(world)
    if writer is None:
        return None
    process, client = writer
    able = _collections(client)
    if len(able) < 2:
        return None
    chosen = world.random.sample(able, world.random.randrange(2, len(able) + 1))
    lowers = {c.name: _next_time(world, c.name) for c in chosen}
    updates = {c.name: _with_marker(world, _updates(world, c, lowers[c.name])) for c in chosen}
    seals = {
        c.name: max(time for _, time, _ in updates[c.name]) + 1
        for c in chosen
        if world.random.random() < 0.5
    }

    def call() -> MultiWriteHandle:
        multi = client.atomic()
        for collection in chosen:
            handle = _handle(client, collection)
            multi.write(handle, _as_updates(updates[collection.name], collection))
            if collection.name in seals:
                multi.seal(handle, seals[collection.name])
        return multi

    return world.submit(process, "atomic", lambda: call().commit(), updates=updates, seals=seals)


def transfer(world: World) -> Awaitable[object] | None:
    """Change the pair: the same updates and the same seal on both, at once."""
    writer = _writer(world)
    if writer is None:
        return None
    process, client = writer
    pair = sorted(_collections(client, pair=True), key=lambda c: c.name)
    if not pair:
        return _create_pair(world, process, client)
    lower = _next_time(world, LEFT)
    updates = _with_marker(world, _updates(world, pair[0], lower))
    upper = max(time for _, time, _ in updates) + 1

    def call() -> MultiWriteHandle:
        multi = client.atomic()
        for collection in pair:
            handle = _handle(client, collection)
            multi.write(handle, _as_updates(updates, collection)).seal(handle, upper)
        return multi

    return world.submit(
        process,
        "transfer",
        lambda: call().commit(),
        updates={LEFT: updates, RIGHT: updates},
        seals={LEFT: upper, RIGHT: upper},
    )


def _create_pair(world: World, process: Process, client: Client) -> Awaitable[object] | None:
    wire = schema_to_wire(SCHEMA)
    commands = (c.Create(LEFT, ("k",), wire), c.Create(RIGHT, (), wire))
    return world.submit(process, "create", lambda: client.submit(commands), creates=LEFT)


def allow_compaction(world: World) -> Awaitable[object] | None:
    """Let history go, mostly some way behind upper; sometimes ahead of it."""
    writer = _writer(world)
    if writer is None or not writer[1].state.collections:
        return None
    process, client = writer
    collection = world.random.choice(list(client.state.collections.values()))
    lower = _next_time(world, collection.name)
    since = max(0, lower + world.random.choice((-6, -4, -3, -2, -2, -1, -1, 0, 1)))
    return world.submit(
        process,
        "allow compaction",
        lambda: _handle(client, collection).allow_compaction(since),
        allows={collection.name: since},
    )


# -- the catalog --------------------------------------------------------------------------------


def create(world: World) -> Awaitable[object] | None:
    """A new collection, with a key or without."""
    writer = _writer(world)
    if writer is None or len(writer[1].state.collections) >= COLLECTIONS_MAX:
        return None
    process, client = writer
    name = world.name("collection")
    key = ("k",) if world.random.random() < 0.7 else ()
    start = world.random.choice((0, 0, 3))
    command = c.Create(name, key, schema_to_wire(SCHEMA), Antichain.of(start))
    return world.submit(
        process,
        "create",
        lambda: client.submit((command,)),
        creates=name,
        seals={name: start},
        allows={name: start},
    )


def evolve(world: World) -> Awaitable[object] | None:
    """One more column."""
    writer = _writer(world)
    if writer is None or not _collections(writer[1]):
        return None
    process, client = writer
    collection = world.random.choice(_collections(client))
    column = Column(world.name("x"), parse_type("bigint"))
    return world.submit(
        process,
        "evolve",
        lambda: client.evolve(collection.name, (column,)),
        evolves=collection.name,
    )


def drop(world: World) -> Awaitable[object] | None:
    """Remove a collection."""
    writer = _writer(world)
    if writer is None or len(_collections(writer[1])) < 2:
        return None
    process, client = writer
    name = world.random.choice(_collections(client)).name
    return world.submit(process, "drop", lambda: client.drop(name), drops=name)


def compact(world: World) -> Awaitable[object] | None:
    """Rewrite a collection now."""
    writer = _writer(world)
    if writer is None or not writer[1].state.collections:
        return None
    world.note("compact")
    return _compact(world, world.random.choice(list(writer[1].state.names)))


def _compact(world: World, name: str) -> Awaitable[object] | None:
    writer = _writer(world)
    if writer is None or name not in writer[1].state.names:
        return None
    process, client = writer

    async def call() -> None:
        try:
            await asyncio.wrap_future(client.compact(name))
        except (StorageError, WriterError, UnknownCollection, Stopped):
            world.trace.note("not compacted", name)

    return world.spawn(process, call())


# -- holds and listeners ------------------------------------------------------------------------


def _holder(world: World) -> tuple[Process, Client] | None:
    able = [p for p in world.processes if p.works and p.mode != "independent"]
    if not able:
        return None
    process = world.random.choice(able)
    assert process.client is not None
    return process, process.client


def acquire(world: World) -> Awaitable[object] | None:
    """Take a hold, at since or at a time."""
    holder = _holder(world)
    if holder is None or not holder[1].state.collections:
        return None
    process, client = holder
    collection = world.random.choice(list(client.state.collections.values()))
    since = collection.since
    at = None
    if not since.is_empty() and world.random.random() < 0.5:
        at = Antichain.of(time_of(since) + world.random.randrange(3))
    world.note("acquire")

    async def call() -> None:
        try:
            hold = await client.acquire(collection.id, at)
        except BeforeSince as error:
            if at is None or not world.model.since_may_exceed(collection.name, time_of(at)):
                raise Violation(f"a hold was refused: {error}") from error
            return
        except UnknownCollection as error:
            if not world.model.may_be_dropped(collection.name):
                raise Violation(f"a hold was refused: {error}") from error
            return
        except (StorageError, WriterError, Stopped):
            return
        world.observe()
        found = client.state.holds.get(hold.id)
        if found is not None:
            time, expires = time_of(found.frontier), found.expires_ms
            world.model.hold(HeldFrontier(hold.id, collection.name, time, expires))
        process.holds.append(hold)

    return world.spawn(process, call())


def downgrade(world: World) -> Awaitable[object] | None:
    """Move a hold forward."""
    found = _choose_hold(world)
    if found is None:
        return None
    process, hold = found
    frontier = Antichain.of(time_of(hold.frontier) + world.random.randrange(4))
    world.model.let_go(hold.id, time_of(frontier))
    world.note("downgrade")
    return world.spawn(process, _tolerate(world, lambda: hold.downgrade(frontier)))


def release(world: World) -> Awaitable[object] | None:
    """Give a hold up."""
    found = _choose_hold(world)
    if found is None:
        return None
    process, hold = found
    world.model.let_go(hold.id, None)
    process.holds.remove(hold)
    world.note("release")
    return world.spawn(process, _tolerate(world, hold.release))


def _choose_hold(world: World) -> tuple[Process, HoldHandle] | None:
    able = [(p, hold) for p in world.processes if p.works for hold in p.holds]
    return world.random.choice(able) if able else None


def _parts(collection: Collection) -> int:
    return sum(len(batch.parts) for batch in collection.batches)


def long_read(world: World) -> Awaitable[object] | None:
    """Take a hold, and read slowly what it protects."""
    holder = _holder(world)
    if holder is None:
        return None
    process, client = holder
    readable = list(client.state.collections.values())
    if not readable:
        return None
    collection = max(readable, key=lambda x: (_only_grows(x), _parts(x), x.id))
    world.note("long read")

    async def call() -> None:
        try:
            hold = await client.acquire(collection.id)
        except (StorageError, WriterError, Stopped, UnknownCollection):
            return
        process.holds.append(hold)
        found = client.state.holds.get(hold.id)
        known = client.state.collections.get(collection.id)
        if found is None or known is None or known.upper.less_equal(time_of(found.frontier)):
            return
        held, upper = time_of(found.frontier), time_of(known.upper)
        world.model.hold(HeldFrontier(hold.id, collection.name, held, found.expires_ms))
        time = held if upper == NEVER else upper - 1
        world.loop.call_later(0.1, _compact, world, collection.name, context=Context())
        await check_read(world, process, known, time, slowly=True)

    return world.spawn(process, call())


async def _tolerate(world: World, call: Callable[[], Awaitable[None]]) -> None:
    """Await; a hold may have expired or gone with its collection, and storage may fail."""
    try:
        await call()
    except (CapabilityInvalid, FrontierRegression, StorageError, WriterError, Stopped) as error:
        world.trace.note("not moved", type(error).__name__)


def listen(world: World) -> Awaitable[object] | None:
    """Follow a collection from a readable time on."""
    able = [p for p in world.processes if p.works]
    if not able or len(world.listeners) > 4:
        return None
    process = world.random.choice(able)
    assert process.client is not None
    known = [x for x in process.client.state.collections.values() if not x.since.is_empty()]
    if not known:
        return None
    collection = world.random.choice(known)
    as_of = time_of(collection.since) + world.random.randrange(3)
    listener = Listener(process, collection, as_of, hold=world.random.random() < 0.7)
    world.listeners.append(listener)
    world.note("listen")
    world.spawn(process, listener.run(world.model, world.trace))
    return None


def unlisten(world: World) -> Awaitable[object] | None:
    """End a listen."""
    able = [x for x in world.listeners if x.process.works]
    if not able:
        return None
    listener = world.random.choice(able)
    return world.spawn(listener.process, listener.stop())


# -- processes ----------------------------------------------------------------------------------


def crash_writer(world: World) -> Awaitable[object] | None:
    """Kill the writer in the middle of whatever it does; another takes over."""
    process = world.writer
    if process is None:
        return None
    world.note("crash")
    world.trace.note("crash", process.name)
    same = world.random.random() < 0.7

    async def call() -> None:
        await pause(world.loop, world.random.random() ** 3 * 0.5)
        process.crash()
        world.writer = None
        await world.open_writer(REENTRANCE_ID if same else None, 12)

    return call()


def take_over(world: World) -> Awaitable[object] | None:
    """A second writer takes the lock from one that lives, or is paused and comes back."""
    process = world.writer
    if process is None:
        return None
    world.note("takeover")
    world.trace.note("takeover", process.name)
    if world.random.random() < 0.6:
        process.gate.pause()
        world.loop.call_later(world.random.random() * 8, process.gate.resume)
    world.loop.call_later(12, process.crash)
    return world.open_writer(REENTRANCE_ID, 12)


def restart_writer(world: World) -> Awaitable[object] | None:
    """Stop the writer in good order and start another, who knows nothing of it."""
    process = world.writer
    if process is None or not process.works:
        return None
    world.note("restart")
    world.writer = None

    async def call() -> None:
        await _close(world, process)
        await world.open_writer(None, 12)

    return call()


async def _close(world: World, process: Process) -> None:
    assert process.client is not None
    for hold in process.holds:
        world.model.let_go(hold.id, None)
    for listener in world.listeners:
        if listener.process is process and listener.listen is not None:
            listener.listen.cancel()
    try:
        await process.run(process.client.close())
    except NoonmarkError as error:
        world.trace.note("not closed", process.name, type(error).__name__)
    except asyncio.CancelledError:
        world.trace.note("crashed while closing", process.name)
    process.crash()


def start_reader(world: World) -> Awaitable[object] | None:
    """One more reader, if there are few."""
    if sum(p.mode != "write" and not p.gate.dead for p in world.processes) >= 3:
        return None
    world.note("reader")
    return world.open_reader(world.random.choice(("polling", "polling", "independent")))


def stop_reader(world: World) -> Awaitable[object] | None:
    """One reader fewer, in good order or not."""
    able = [p for p in world.processes if p.mode != "write" and p.works]
    if not able:
        return None
    process = world.random.choice(able)
    if world.random.random() < 0.5:
        process.crash()
        return None
    return _close(world, process)


# -- weather ------------------------------------------------------------------------------------


def outage(world: World) -> Awaitable[object] | None:
    """Nearly every call fails for a while."""
    world.note("outage")
    world.weather.rate = world.random.choice((0.5, 0.9, 1.0))

    def end() -> None:
        world.weather.rate = world.weather.usual_rate

    world.loop.call_later(world.random.random() * 3, end)
    return None


def jump_clock(world: World) -> Awaitable[object] | None:
    """A wall clock goes back, ahead, or stands still."""
    able = [p for p in world.processes if not p.gate.dead]
    if not able:
        return None
    world.note("clock jump")
    clock = world.random.choice(able).clock
    kind = world.random.random()
    if kind < 0.3:
        clock.frozen_ms = clock.now_ms() if clock.frozen_ms is None else None
    else:
        clock.skew_ms += int((world.random.random() - 0.5) * world.random.choice((2000, 10_000)))
    return None


def idle(world: World) -> Awaitable[object] | None:
    """Nothing for a while: leases run out, garbage is collected."""
    return pause(world.loop, world.random.random() * 4)


STEPS: tuple[tuple[int, Step], ...] = (
    (22, write),
    (16, seal),
    (10, append),
    (7, atomic),
    (7, transfer),
    (10, allow_compaction),
    (4, create),
    (2, evolve),
    (1, drop),
    (2, compact),
    (4, acquire),
    (3, downgrade),
    (2, release),
    (4, long_read),
    (3, listen),
    (1, unlisten),
    (1, crash_writer),
    (1, take_over),
    (1, restart_writer),
    (3, start_reader),
    (1, stop_reader),
    (1, outage),
    (1, jump_clock),
    (1, idle),
)

_WEIGHTS = [weight for weight, _ in STEPS]
_FUNCTIONS = [step for _, step in STEPS]


def choose(random: Random) -> Step:
    """The next step."""
    return random.choices(_FUNCTIONS, _WEIGHTS)[0]
