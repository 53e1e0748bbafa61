"""Stories: short worlds in which only what is told happens, to show one thing."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from noonmark.persist.client import Client
from noonmark.persist.config import Config

from .process import Process
from .world import World

#: Nothing happens by itself: no upkeep comes round, no reader polls.
QUIET = Config(
    rollup_entries=10**6,
    inline_batches_max=10**6,
    garbage_grace_ms=10**7,
    lock_lease_ms=10**7,
    hold_lease_ms=10**7,
    poll_s=1e6,
)


def play(story: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    """Run a story in a world whose storage does not fail by itself."""
    world = World(0)
    world.weather.heal()
    world.bare_log = False

    async def run() -> None:
        await world.wipe()
        await story(world)

    try:
        world.run(run())
    finally:
        world.end()


async def opened(world: World, mode: Any, config: Config = QUIET) -> tuple[Process, Client]:
    """A process of that mode, and its client."""
    process = world.start(mode)
    return process, await process.run(process.open(config, "same"))
