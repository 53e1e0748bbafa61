"""Steps that change the world: crashes, takeovers, readers that come and go, weather, clocks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from noonmark.errors import (
    NoonmarkError,
)

from .loop import pause
from .process import Process
from .world import World

REENTRANCE_ID = "the usual"
HOUR_MS = 3_600_000


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
        if listener.process is process:
            listener.cancel()
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


def outage(world: World) -> Awaitable[object] | None:
    """Nearly every call fails for a while."""
    world.note("outage")
    world.weather.rate = world.random.choice((0.5, 0.9, 1.0))

    def end() -> None:
        world.weather.rate = world.weather.usual_rate

    world.loop.call_later(world.random.random() * 3, end)
    return None


def jump_clock(world: World) -> Awaitable[object] | None:
    """A wall clock goes back, ahead, or stands still: by seconds, hours, or a day."""
    able = [p for p in world.processes if not p.gate.dead]
    if not able:
        return None
    world.note("clock jump")
    clock = world.random.choice(able).clock
    kind = world.random.random()
    if kind < 0.3:
        clock.frozen_ms = clock.now_ms() if clock.frozen_ms is None else None
    else:
        far = (10_000, 2 * HOUR_MS, 48 * HOUR_MS) if world.leaps else (2000, 10_000)
        far_ms = world.random.choice(far)
        clock.skew_ms += int((world.random.random() - 0.5) * far_ms)
        world.counts["clock jump of hours"] += far_ms > HOUR_MS
    return None


def suspend(world: World) -> Awaitable[object] | None:
    """A machine sleeps, and does not know how long when it wakes: perhaps beyond every lease."""
    able = [p for p in world.processes if p.works]
    if not able:
        return None
    world.note("suspend")
    process = world.random.choice(able)
    world.trace.note("suspend", process.name)
    process.gate.pause()
    asleep_s = world.random.random() * world.random.choice((1, 4, 15))
    if world.random.random() < 0.3:  # and its clock is set by what the battery kept
        process.clock.skew_ms -= int(asleep_s * 1000)
    world.loop.call_later(asleep_s, process.gate.resume)
    return None


def idle(world: World) -> Awaitable[object] | None:
    """Nothing for a while: leases run out, garbage is collected."""
    return pause(world.loop, world.random.random() * 4)
