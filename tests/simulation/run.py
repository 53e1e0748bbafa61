"""One seed: a world, some hundred steps, a check after each, and a last judgement."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from unittest.mock import patch

from noonmark import defect
from noonmark.errors import InternalError, NoonmarkError
from noonmark.oracle import reserved

from .lives import REENTRANCE_ID
from .loop import Stuck, pause
from .model import Violation
from .owners import judge as judge_oracle
from .reads import check_read, choose_read
from .workload import choose
from .world import World

OPERATIONS = 200

#: The oracle's log is cut so often that seeds meet it.
ORACLE_LOG_MAX = 4

#: Virtual seconds within which everything must have been answered once storage is well again.
PATIENCE_S = 120.0


@dataclass
class Report:
    """What came of one seed."""

    seed: int
    operations: int
    digest: str
    violation: str | None = None
    reads: int = 0
    steps_heard: int = 0
    times: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def command(self) -> str:
        """How to see it again."""
        seed, operations = self.seed, self.operations
        return f"python -m tests.simulation --seed {seed} --operations {operations} --trace"


def _noting(world: World) -> Callable[[BaseException, str], InternalError]:
    """Defects are told as ever; and the simulation judges them at its end."""
    told = defect.report

    def report(error: BaseException, doing: str) -> InternalError:
        world.loop.unhandled.append(error)
        return told(error, doing)

    return report


def run_seed(seed: int, operations: int = OPERATIONS, *, print_events: bool = False) -> Report:
    """Run one seed. Never raises for what the product does: the report says it."""
    was_enabled = gc.isenabled()
    # A collection in the middle of a run would depend on the runs before it.
    gc.disable()
    world = World(seed, print_events=print_events)
    violation: str | None = None
    try:
        with (
            patch.object(reserved, "_TRUNCATE_EVERY", ORACLE_LOG_MAX),
            patch.object(defect, "report", _noting(world)),
        ):
            world.run(_run(world, operations))
    except (Violation, Stuck) as error:
        violation = f"{type(error).__name__}: {error}"
    except Exception as error:
        violation = f"{type(error).__name__}: {error} (not an error that a caller may get)"
        if print_events:
            raise
    finally:
        world.end()
        if was_enabled:
            gc.enable()
    return Report(
        seed,
        operations,
        world.trace.digest(),
        violation,
        world.model.reads,
        world.model.steps_heard,
        world.timeline.answers,
        world.weather.injected,
        world.counts + world.blob.counts,
    )


def run_seeds(seeds: Sequence[int], operations: int = OPERATIONS) -> list[Report]:
    """Run some seeds, and let go of what they left behind."""
    reports = [run_seed(seed, operations) for seed in seeds]
    gc.collect()
    return reports


async def _run(world: World, operations: int) -> None:
    await world.wipe()
    random = world.random
    change: asyncio.Task[object] | None = None
    await world.open_writer(REENTRANCE_ID, 100)
    while world.performed < operations:
        step = choose(random)
        if step.__name__ in _CHANGES and change is not None:
            if not change.done():
                await pause(world.loop, 0.05)
                continue
            change.result()
            change = None
        if world.writer is None and (change is None or change.done()):
            if change is not None:
                change.result()
            change = world.loop.create_task(world.open_writer(REENTRANCE_ID, 12))
        outcome = step(world)
        if outcome is not None and step.__name__ in _CHANGES:
            change = world.loop.create_task(outcome)  # type: ignore[arg-type]
        elif outcome is not None:
            if not isinstance(outcome, asyncio.Task):
                outcome = world.loop.create_task(outcome)  # type: ignore[arg-type]
                world.under_way.append(outcome)
            if random.random() < 0.3:
                await _finish(outcome)
        read = world.read_somewhere()
        if read is not None and random.random() < 0.3:
            await _finish(read)
        if random.random() < 0.7:
            await pause(world.loop, random.random() ** 2 * 0.3)
        world.observe()
        world.tidy()
    await _judge(world, change)


#: Steps that exchange the writer: one at a time.
_CHANGES = {"crash_writer", "take_over", "restart_writer"}


async def _finish(task: asyncio.Task[object]) -> None:
    """Wait for something, but not for ever: its process may be paused or die."""
    await asyncio.wait([task], timeout=2.0)
    if task.done() and not task.cancelled():
        task.result()


async def _judge(world: World, change: asyncio.Task[object] | None) -> None:
    """Heal the world; everything is answered, and everything that was acknowledged is there."""
    world.trace.note("heal")
    world.weather.heal()
    for process in world.processes:
        process.gate.resume()
    if change is not None:
        await asyncio.wait([change], timeout=PATIENCE_S)
        if not change.done():
            raise Violation("a writer could not be started")
        change.result()
    await _settle(world)
    # One that was displaced may live on for a while, and hold the lock until its lease has ended.
    opened = await world.open_writer(REENTRANCE_ID, 30)
    if not opened and not any(p.mode == "write" and p.works for p in world.processes):
        raise Violation("nobody could become the writer, though storage is well")
    await world.open_reader("independent")
    await world.open_reader("polling")
    await judge_oracle(world)
    await pause(world.loop, 3.0)
    for process in [p for p in world.processes if p.works][-3:]:
        client = process.client
        assert client is not None
        await process.run(client.journal.refresh())
        world.observe()
        for _ in range(6):
            chosen = choose_read(world.random, client.state)
            if chosen is not None:
                collection, time = chosen
                await process.run(check_read(world, process, collection, time))
    world.tidy()
    for error in world.loop.unhandled:
        if not isinstance(error, NoonmarkError):
            raise Violation(f"nobody expected {type(error).__name__}: {error}")


async def _settle(world: World) -> None:
    for listener in world.listeners:
        if listener.process.works:
            await _finish(listener.process.run(listener.stop()))
    waiting = [task for task in world.under_way if not task.done()]
    if waiting:
        await asyncio.wait(waiting, timeout=PATIENCE_S)
    late = [task for task in waiting if not task.done()]
    if late:
        raise Violation(f"{len(late)} calls were never answered, such as {late[0].get_coro()}")
    world.tidy()
