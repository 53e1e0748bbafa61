"""Steps of the timestamp oracle: owners that answer, are taken over, pause, crash and close.

Each owner is a process of its own, with a wall clock that may stand still or jump (`jump_clock`)
and a monotonic clock that runs a little fast or slow, by less than the oracle's margin allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from noonmark.errors import Fenced, Stopped, StorageError
from noonmark.oracle import AsyncReservedOracle

from .loop import pause
from .model import Violation
from .process import Process
from .world import World

OWNERS_MAX = 3

#: Two clocks differ by at most 6 % over the life of a range; the oracle bears 10 %.
RATES = (0.97, 1.0, 1.0, 1.03)
SKEWS_MS = (0, 0, 700, -700, 5000, -5000)


@dataclass
class Owner:
    """A process that owns the oracle, or thinks so."""

    process: Process
    oracle: AsyncReservedOracle


def _owners(world: World) -> list[Owner]:
    world.owners = [x for x in world.owners if not x.process.gate.dead]
    return [x for x in world.owners if not x.process.gate.paused]


async def open_owner(world: World) -> Owner | None:
    """One more owner; None when storage does not let it."""
    process = world.start("write", world.oracle_blob, "oracle")
    process.clock.rate = world.random.choice(RATES)
    process.clock.skew_ms = world.random.choice(SKEWS_MS)
    opened = AsyncReservedOracle.open(
        process.clock, process.consensus, alone=False, config=world.config
    )
    try:
        oracle = await process.run(opened)
    except (StorageError, asyncio.CancelledError) as error:
        world.trace.note("no owner", process.name, type(error).__name__)
        process.crash()
        return None
    owner = Owner(process, oracle)
    world.owners.append(owner)
    world.trace.note("owner", process.name)
    return owner


def begin(world: World) -> Awaitable[object] | None:
    """A new owner, beside one that lives, after a crash, or after one that closed in good order."""
    able, kind = _owners(world), world.random.random()
    if len(world.owners) >= OWNERS_MAX:
        return None
    world.note("oracle owner")

    async def call() -> None:
        if able and kind < 0.2:
            able[-1].process.crash()
        elif able and kind < 0.4:
            await _close(world, able[-1])
        elif able and kind < 0.8:
            await _stall(world, able[-1])
        opening = world.loop.create_task(open_owner(world))
        await _contest(world)
        await opening

    return call()


async def _stall(world: World, owner: Owner) -> None:
    """An owner is paused while it reserves: its range may be durable long before it knows."""
    world.counts["oracle call"] += 1
    world.spawn(owner.process, _call(world, owner))
    await pause(world.loop, world.random.random() * 0.004)
    _pause(world, owner.process, least_s=1.2)


async def _contest(world: World) -> None:
    """While the oracle changes hands everybody is asked, and some do not notice how time passes."""
    random = world.random
    for _ in range(random.randrange(6, 18)):
        able = _owners(world)
        for owner in random.sample(able, min(2, len(able))):
            world.counts["oracle call"] += 1
            world.spawn(owner.process, _call(world, owner))
        await pause(world.loop, random.random() * 0.004)
        if able and random.random() < 0.2:
            _pause(world, random.choice(able).process)
        await pause(world.loop, random.random() * 0.5)


async def _close(world: World, owner: Owner) -> None:
    try:
        await owner.process.run(owner.oracle.close())
    except (StorageError, asyncio.CancelledError) as error:
        world.trace.note("owner not closed", owner.process.name, type(error).__name__)
    owner.process.crash()


def suspend(world: World) -> Awaitable[object] | None:
    """An owner is paused for a while; it does not know when it comes back."""
    able = _owners(world)
    if not able:
        return None
    world.note("oracle pause")
    _pause(world, world.random.choice(able).process)
    return None


def _pause(world: World, process: Process, least_s: float = 0.0) -> None:
    process.gate.pause()
    world.loop.call_later(least_s + world.random.random() * 3, process.gate.resume)


def ask(world: World) -> Awaitable[object] | None:
    """Some calls of one owner, or of several, beside one another."""
    able = _owners(world)
    if not able:
        return None
    for _ in range(world.random.choice((1, 2, 4))):
        owner = world.random.choice(able)
        world.note("oracle call")
        world.spawn(owner.process, _call(world, owner))
    return None


async def _call(world: World, owner: Owner) -> None:
    try:
        await ask_once(world, owner)
    except Fenced:
        world.counts["oracle fenced"] += 1
        world.trace.note("fenced", owner.process.name)
        owner.process.gate.dead = True
    except (Stopped, StorageError) as error:
        world.trace.note("no time", owner.process.name, type(error).__name__)


async def ask_once(world: World, owner: Owner) -> None:
    """One call, held against the laws."""
    timeline, name, kind = world.timeline, owner.process.name, world.random.random()
    ahead = world.random.choice((0, 0, 0, 0, -5, 3, 2500))
    floor = timeline.floor()
    if kind < 0.45:
        time = await owner.oracle.write_ts()
        timeline.wrote(name, floor, time)
    elif kind < 0.75:
        time = await owner.oracle.read_ts()
        timeline.looked(name, floor, time)
    else:
        time = max(0, timeline.written + ahead)
        await owner.oracle.apply_write(time)
        timeline.applies(time)
    world.trace.note("time", name, time)


async def judge(world: World) -> None:
    """Storage is well: a new owner answers, above all that was ever answered."""
    owner = await open_owner(world)
    if owner is None:
        raise Violation("the oracle could not be opened")
    for _ in range(6):
        await owner.process.run(ask_once(world, owner))
