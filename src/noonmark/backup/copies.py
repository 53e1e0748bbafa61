"""Parts from one store to another.

Law (verified): a part that is in the target after `copy` was called is, byte for byte, the one that
the state names: its checksum was compared on the way.
Law (once): a part that is there already, in its full length, is not copied again; parts never
change.

Where it runs: any event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

import xxhash

from noonmark.errors import MissingObject
from noonmark.persist.location import Blob
from noonmark.persist.log.state import State
from noonmark.persist.part.part import Part, corrupt
from noonmark.persist.part.store import PART_PREFIX
from noonmark.progress import Progress

#: How many parts travel at once.
_AT_ONCE = 8


@dataclass
class Copied:
    """What became of parts: how many were copied, how many were there, and how much that was."""

    parts: int = 0
    bytes: int = 0
    present: int = 0


def parts_of(state: State) -> list[Part]:
    """The parts that a state names, each once."""
    named = (p for c in state.collections.values() for b in c.batches for p in b.parts)
    return list({part.key: part for part in named}.values())


async def copy(parts: Iterable[Part], source: Blob, target: Blob, progress: Progress) -> Copied:
    """Bring parts over; `progress(done, total)` is told after each.

    Raises:
        MissingObject: one is not in the source (any more).
        Corrupt: one is not what the state says.
    """
    parts = list(parts)
    there = {entry.key: entry.bytes for entry in await target.list(PART_PREFIX)}
    copied = Copied()
    room = asyncio.Semaphore(_AT_ONCE)

    async def bring(part: Part) -> None:
        async with room:
            if there.get(part.key) == part.bytes:
                copied.present += 1
            else:
                data = await checked(source, part)
                await target.put(part.key, data)
                copied.parts += 1
                copied.bytes += len(data)
            progress(copied.parts + copied.present, len(parts))

    try:
        async with asyncio.TaskGroup() as tasks:
            for part in parts:
                tasks.create_task(bring(part))
    except ExceptionGroup as several:
        raise several.exceptions[0] from None
    return copied


async def checked(source: Blob, part: Part) -> bytes:
    """A whole part, if it is what the state says."""
    data = await source.get(part.key)
    if data is None:
        raise MissingObject(f'the part "{part.key}" is gone', key=part.key)
    if xxhash.xxh3_64_intdigest(data) != part.checksum:
        raise corrupt(part, "its checksum is another one")
    return data
