"""What happens in a seed: calls, crashes, takeovers, weather; each step chosen by the seed.

A step is one function ``(world) -> Awaitable | None``; what it returns may be waited for or left to
go on beside the next steps.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

from . import capabilities, lives, owners, rights, subscribers, writes
from .world import World

Step = Callable[[World], "Awaitable[object] | None"]

STEPS: tuple[tuple[int, Step], ...] = (
    (22, writes.write),
    (16, writes.seal),
    (10, writes.append),
    (7, writes.atomic),
    (7, writes.transfer),
    (10, writes.allow_compaction),
    (4, writes.create),
    (2, writes.evolve),
    (2, writes.drop),
    (2, writes.compact),
    (4, rights.acquire),
    (3, rights.downgrade),
    (2, rights.release),
    (9, rights.long_read),
    (3, rights.listen),
    (1, rights.unlisten),
    (5, capabilities.create),
    (26, capabilities.update),
    (6, capabilities.clone),
    (8, capabilities.downgrade),
    (3, capabilities.drop),
    (5, capabilities.acquire),
    (2, capabilities.close),
    (8, subscribers.subscribe),
    (6, owners.begin),
    (14, owners.ask),
    (2, owners.suspend),
    (1, lives.crash_writer),
    (1, lives.take_over),
    (1, lives.restart_writer),
    (3, lives.start_reader),
    (1, lives.stop_reader),
    (1, lives.outage),
    (2, lives.jump_clock),
    (1, lives.suspend),
    (1, lives.idle),
)

_WEIGHTS = [weight for weight, _ in STEPS]
_FUNCTIONS = [step for _, step in STEPS]


def choose(random: Random) -> Step:
    """The next step."""
    return random.choices(_FUNCTIONS, _WEIGHTS)[0]
