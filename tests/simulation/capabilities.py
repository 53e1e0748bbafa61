"""Steps of Storage: every call, by any process, with capabilities that are valid or no longer.

A capability is handed from process to process as bytes. Mostly it is presented as the log has it;
sometimes as somebody remembers it, who may not know that it moved, expired, was dropped or closed
over. `verdicts` judges the answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any

from noonmark.persist.client import Client
from noonmark.persist.log.state import Frontier
from noonmark.storage import AsyncStorage, Capability, CollectionDescription, WriteCapability
from noonmark.tvc import EMPTY, Antichain

from .model import NEVER
from .process import Process
from .verdicts import Call, begin, conclude
from .world import World
from .writes import SCHEMA, Updates, as_updates, choose_updates, with_marker

OPEN_MAX = 3
BOUND_MAX = 8
KNOWN_MAX = 30
RIGHTS_MAX = 14

Answer = Coroutine[Any, Any, Any]


def frontier_at(time: int) -> Frontier:
    """A number as a frontier."""
    return EMPTY if time == NEVER else Antichain.of(time)


def able(world: World, *, writer: bool) -> tuple[Process, Client] | None:
    """A process to call: the writer, or sometimes one that cannot do it."""
    processes = [p for p in world.processes if p.works]
    if writer and world.random.random() < 0.95:
        processes = [p for p in processes if p is world.writer]
    if not processes:
        return None
    process = world.random.choice(processes)
    assert process.client is not None
    return process, process.client


def storage_of(world: World, client: Client) -> AsyncStorage:
    return AsyncStorage(client, lease_ms=world.lease_ms)


def choose(world: World, kind: type[Capability] = Capability) -> Any | None:
    """A capability: as it is, or one that somebody remembers."""
    known = [x for x in world.capabilities if isinstance(x, kind)]
    if world.random.random() < 0.1:
        return world.random.choice(known) if known else None
    rights = world.ledger.rights
    living = [x.at(frontier_at(rights[x.token].at or 0)) for x in known if x.token in rights]
    return _carried(world.random.choice(living)) if living else None


def _carried(capability: Capability) -> Capability:
    """Through the bytes by which another process gets it."""
    return Capability.from_bytes(capability.to_bytes())


def _keep(world: World, *capabilities: Capability) -> None:
    """Remember what was given; of the old ones, forget those that ended first."""
    world.capabilities += capabilities
    if len(world.capabilities) > KNOWN_MAX:
        ended = [x for x in world.capabilities if x.token not in world.ledger.rights]
        world.capabilities.remove((ended or world.capabilities)[0])


def _spawn(
    world: World,
    process: Process,
    call: Call,
    answer: Callable[[], Answer],
    keep: Callable[[Any], tuple[Capability, ...]] = lambda _: (),
) -> Awaitable[object]:
    """Call beside the rest; judge the answer and remember what it gives."""

    async def run() -> None:
        answered, given = await conclude(world, process, call, answer)
        if answered:
            _keep(world, *keep(given))

    world.note(f"storage {call.what}")
    return world.spawn(process, run())


def create(world: World) -> Awaitable[object] | None:
    """Bind an id: mostly a new one, sometimes one that was used."""
    chosen, bound = able(world, writer=True), list(world.ledger.bound.values())
    if chosen is None:
        return None
    process, client = chosen
    id = world.name("id")
    if bound and world.random.random() < 0.3:
        closed = [each for each in bound if each.is_closed]
        id = world.random.choice(closed or bound).id
    elif sum(not x.is_closed for x in bound) >= OPEN_MAX or len(bound) >= BOUND_MAX:
        return None
    key = ("k",) if world.random.random() < 0.5 else ()
    at = world.random.choice((0, 0, 4))
    call = begin(world, client, "create", id=id)
    answer = storage_of(world, client).create
    described = CollectionDescription(SCHEMA, key)
    return _spawn(world, process, call, lambda: answer(id, described, at), tuple)


def acquire(world: World) -> Awaitable[object] | None:
    """Capabilities at the current frontiers."""
    chosen = able(world, writer=True)
    if chosen is None or len(world.ledger.rights) >= RIGHTS_MAX:
        return None
    process, client = chosen
    ids = [x.id for x in world.ledger.bound.values() if x.id in client.state.names]
    if not ids:
        return None
    id = world.random.choice(ids)
    call = begin(world, client, "acquire", id=id)
    storage = storage_of(world, client)
    return _spawn(world, process, call, lambda: storage.acquire_capabilities(id), tuple)


def clone(world: World) -> Awaitable[object] | None:
    """A second capability."""
    capability = choose(world)
    chosen = None if capability is None else able(world, writer=capability.writes)
    if chosen is None or len(world.ledger.rights) >= RIGHTS_MAX:
        return None
    process, client = chosen
    call = begin(world, client, "clone", capability)
    storage = storage_of(world, client)
    return _spawn(world, process, call, lambda: storage.clone(capability), lambda x: (x,))


def downgrade(world: World) -> Awaitable[object] | None:
    """Move a capability, by nothing (renewal), forward, or back (which is refused)."""
    capability = choose(world)
    chosen = None if capability is None else able(world, writer=capability.writes)
    if chosen is None:
        return None
    process, client = chosen
    at = _from(capability)
    by = world.random.choice((0, 0, 1, 2, 3, -1))
    to = at if at == NEVER else max(0, at + by)
    call = begin(world, client, "renew" if to == at else "downgrade", capability, to=to)
    storage = storage_of(world, client)
    if to == at:
        return _spawn(world, process, call, lambda: storage.renew(capability), lambda x: (x,))
    frontier = frontier_at(to)
    answer = storage.downgrade
    return _spawn(world, process, call, lambda: answer(capability, frontier), lambda x: (x,))


def drop(world: World) -> Awaitable[object] | None:
    """Give a capability up; its holder may have lost it already."""
    capability = choose(world)
    chosen = None if capability is None else able(world, writer=capability.writes)
    if chosen is None:
        return None
    process, client = chosen
    call = begin(world, client, "drop", capability)
    storage = storage_of(world, client)
    return _spawn(world, process, call, lambda: storage.drop(capability))


def close(world: World) -> Awaitable[object] | None:
    """The end of an id."""
    chosen = able(world, writer=True)
    if chosen is None:
        return None
    process, client = chosen
    ids = [x.id for x in world.ledger.bound.values() if x.id in client.state.names]
    if not ids:
        return None
    id = world.random.choice(ids)
    call = begin(world, client, "close", id=id)
    storage = storage_of(world, client)
    return _spawn(world, process, call, lambda: storage.close(id))


def update(world: World) -> Awaitable[object] | None:
    """Write and downgrade one capability, or two of different ids as one."""
    chosen = able(world, writer=True)
    if chosen is None:
        return None
    process, client = chosen
    capabilities = {}
    for _ in range(world.random.choice((1, 1, 2))):
        capability = choose(world, WriteCapability)
        if capability is None or _from(capability) == NEVER:
            continue
        if capability.id in client.state.names:
            capabilities[capability.id] = capability
    if not capabilities:
        return acquire(world)
    return _update(world, process, client, list(capabilities.values()))


def _update(
    world: World, process: Process, client: Client, capabilities: list[WriteCapability]
) -> Awaitable[object]:
    marked: dict[str, Updates] = {}
    targets: dict[str, int] = {}
    sense = True
    for capability in capabilities:
        at, collection = _from(capability), client.state.collection(capability.id)
        lower, to_least = _bounds(world.random, at)
        updates = choose_updates(world, collection, lower) if world.random.random() < 0.85 else []
        last = max((time for _, time, _ in updates), default=at)
        to = last + to_least if world.random.random() < 0.98 else NEVER
        sense = sense and all(at <= time < to for _, time, _ in updates) and to >= at
        marked[capability.id] = with_marker(world, updates)
        targets[capability.id] = to
    written = {id: updates for id, updates in marked.items() if updates}
    operation = world.model.begin(process.name, "update", updates=written)
    call = begin(
        world, client, "update", *capabilities, targets=targets, sense=sense, operation=operation
    )
    collections = {x.id: client.state.collection(x.id) for x in capabilities}
    writes = [
        (x, as_updates(marked[x.id], collections[x.id]), frontier_at(targets[x.id]))
        for x in capabilities
    ]
    storage = storage_of(world, client)

    async def answer() -> Any:
        world.trace.note("call", operation)
        if len(writes) == 1:
            return [await storage.update_and_downgrade(*writes[0])]
        return await asyncio.wrap_future(storage.update_many(writes))

    return _spawn(world, process, call, answer, tuple)


def _bounds(random: Random, at: int) -> tuple[int, int]:
    """Where updates begin, and how far beyond the last the capability goes; seldom wrong."""
    kind = random.random()
    if kind < 0.04:
        return max(0, at - 2), 1
    if kind < 0.08:
        return at, 0
    return at, random.choice((1, 1, 2, 3))


def _from(capability: Capability) -> int:
    time = capability.frontier.only()
    return NEVER if time is None else time
