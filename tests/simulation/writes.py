"""Steps that change collections: updates, frontiers, the catalog, compaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from noonmark.errors import (
    Stopped,
    StorageError,
    UnknownCollection,
    WriterError,
)
from noonmark.persist.client import Client
from noonmark.persist.codec import RowCodec
from noonmark.persist.log import command as c
from noonmark.persist.log.state import Collection, schema_to_wire
from noonmark.persist.write import MultiWriteHandle, WriteHandle
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import parse_type
from noonmark.tvc import EMPTY, Antichain, Update

from .model import LEFT, NEVER, RIGHT, Row, marker_of, time_of
from .process import Process
from .world import World

SCHEMA = Schema.of(k="bigint", v="text")
COLLECTIONS_MAX = 3

Updates = list[tuple[Row, int, int]]


def _writer(world: World) -> tuple[Process, Client] | None:
    process = world.writer
    if process is None or process.client is None or process.gate.dead:
        return None
    return process, process.client


def _collections(client: Client, *, pair: bool = False) -> list[Collection]:
    """Those that no capability guards."""
    known = [c for c in client.state.collections.values() if not c.annotation]
    return [c for c in known if (c.name in (LEFT, RIGHT)) == pair]


def _next_time(world: World, name: str) -> int:
    """The upper that the collection will have once everything that was asked for is done."""
    asked = [o.seals.get(name, 0) for o in world.model.by_collection.get(name, ()) if o.possible]
    return max((to for to in asked if to != NEVER), default=0)


def choose_updates(world: World, collection: Collection, lower: int) -> Updates:
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
        diff = 1 if only_grows(collection) else random.choice((1, 1, 1, 2, -1))
        updates.append((tuple(values), time, diff))
    return updates


def only_grows(collection: Collection) -> bool:
    return collection.id % 2 == 0


def with_marker(world: World, updates: Updates) -> Updates:
    """One more row for the operation that is about to begin, at each of its times."""
    marker = marker_of(len(world.model.operations))
    return [*updates, *((marker, time, 1) for time in sorted({time for _, time, _ in updates}))]


def _handle(client: Client, collection: Collection) -> WriteHandle:
    return WriteHandle(client, collection.id, RowCodec(collection.schema))


def as_updates(updates: Updates, collection: Collection) -> list[Update]:
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
    updates = with_marker(world, choose_updates(world, collection, lower))
    rows = as_updates(updates, collection)
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
    updates = choose_updates(world, collection, lower)
    upper = max(time for _, time, _ in updates) + world.random.choice((1, 2))
    updates = with_marker(world, updates)
    expected = lower + (world.random.random() < 0.1)
    rows = as_updates(updates, collection)
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
    updates = {c.name: with_marker(world, choose_updates(world, c, lowers[c.name])) for c in chosen}
    seals = {
        c.name: max(time for _, time, _ in updates[c.name]) + 1
        for c in chosen
        if world.random.random() < 0.5
    }

    def call() -> MultiWriteHandle:
        multi = client.atomic()
        for collection in chosen:
            handle = _handle(client, collection)
            multi.write(handle, as_updates(updates[collection.name], collection))
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
    updates = with_marker(world, choose_updates(world, pair[0], lower))
    upper = max(time for _, time, _ in updates) + 1

    def call() -> MultiWriteHandle:
        multi = client.atomic()
        for collection in pair:
            handle = _handle(client, collection)
            multi.write(handle, as_updates(updates, collection)).seal(handle, upper)
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
    able = [] if writer is None else [*_collections(writer[1]), *_collections(writer[1], pair=True)]
    if writer is None or not able:
        return None
    process, client = writer
    collection = world.random.choice(able)
    lower = _next_time(world, collection.name)
    since = max(0, lower + world.random.choice((-6, -4, -3, -2, -2, -1, -1, 0, 1)))
    return world.submit(
        process,
        "allow compaction",
        lambda: _handle(client, collection).allow_compaction(since),
        allows={collection.name: since},
    )


def create(world: World) -> Awaitable[object] | None:
    """A new collection, with a key or without."""
    writer = _writer(world)
    if writer is None or len(_collections(writer[1])) >= COLLECTIONS_MAX:
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
    return compact_named(world, world.random.choice(list(writer[1].state.names)))


def compact_named(world: World, name: str) -> Awaitable[object] | None:
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
