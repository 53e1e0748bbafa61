"""Steps that read for long: holds, slow reads under a hold, listeners."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import Context

from noonmark.errors import (
    BeforeSince,
    CapabilityInvalid,
    FrontierRegression,
    Stopped,
    StorageError,
    UnknownCollection,
    WriterError,
)
from noonmark.persist.client import Client
from noonmark.persist.hold import HoldHandle
from noonmark.persist.log.state import Collection
from noonmark.tvc import Antichain

from .model import NEVER, HeldFrontier, Violation, time_of
from .process import Process
from .reads import Listener, check_read
from .world import World
from .writes import compact_named, only_grows


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
    readable = [x for x in client.state.collections.values() if not x.since.is_empty()]
    if not readable:
        return None
    collection = max(readable, key=lambda x: (only_grows(x), _parts(x), x.id))
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
        if found.frontier.is_empty():
            return  # closed meanwhile
        held, upper = time_of(found.frontier), time_of(known.upper)
        world.model.hold(HeldFrontier(hold.id, collection.name, held, found.expires_ms))
        time = held if upper == NEVER else upper - 1
        world.loop.call_later(0.1, compact_named, world, collection.name, context=Context())
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
