"""Locations with a long past, made quickly: a real log, whose parts exist in name alone.

`grow` commits every entry through a `Journal`, writing rollups when one is due, as the upkeep of a
writer does; `settle` copies what is left of that from memory to a folder. Run as a script, this
opens a location as its writer, in a process that knows nothing yet, and prints what that took.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.persist.config import DEFAULT
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.impl.memory import MemoryBlob
from noonmark.persist.log import command as c
from noonmark.persist.log.journal import Journal
from noonmark.persist.log.state import Lock, State, schema_to_wire
from noonmark.persist.part.part import Part
from noonmark.persist.part.store import part_key
from noonmark.persist.retry import Retries
from noonmark.persist.write import append_command
from noonmark.rows.schema import Schema
from noonmark.tvc import Antichain

SCHEMA = Schema.of(id="bigint", name="text", price="double precision")
BATCH_PARTS = 100
PART_ROWS = 1000


def grow(name: str, parts: int, entries: int) -> State:
    """A location in memory whose log has `entries` entries and whose collection so many parts."""
    return asyncio.run(_grow(name, parts, entries))


async def _grow(name: str, parts: int, entries: int) -> State:
    blob = MemoryBlob(name)
    journal = Journal(blob, BlobConsensus(blob), SYSTEM, DEFAULT, Retries(SYSTEM, DEFAULT))
    await journal.load()
    lock = Lock(1, "past", "past", 0, 0)
    await _commit(journal, c.TakeLock(lock))
    await _commit(journal, c.Create("orders", ("id",), schema_to_wire(SCHEMA)))
    every = (entries - journal.state.seqno) // (parts // BATCH_PARTS)
    written = 0
    while journal.state.seqno < entries:
        time = journal.state.seqno
        commands: list[c.AnyCommand] = [c.Seal(1, Antichain.of(time + 1))]
        if written < parts and time % every == 0:
            run = tuple(_part(written + at, time) for at in range(BATCH_PARTS))
            commands.insert(0, append_command(1, run))
            written += BATCH_PARTS
        await _commit(journal, *commands)
        if journal.rollup_is_due():
            await journal.write_rollup()
    return journal.state


async def _commit(journal: Journal, *commands: c.AnyCommand) -> None:
    (outcome,) = await journal.commit(1, [commands])
    if outcome.error is not None:
        raise outcome.error


def _part(number: int, time: int) -> Part:
    low = number * PART_ROWS
    return Part(
        key=part_key(1, 1, SYSTEM.fresh_id()),
        rows=PART_ROWS,
        bytes=40_000,
        checksum=number * 0x9E3779B97F4A7C15 % 2**64,
        tail_bytes=900,
        tail_checksum=number * 0xC2B2AE3D27D4EB4F % 2**64,
        time_min=time,
        time_max=time,
        diff_sum=PART_ROWS,
        columns=(
            (low, low + PART_ROWS - 1, 0),
            (f"customer {low}", f"customer {low + PART_ROWS - 1}", 0),
            (0.5, 99.5, 3),
        ),
    )


def settle(name: str, folder: Path) -> None:
    """Copy a location in memory to a folder."""

    async def copy() -> None:
        blob = MemoryBlob(name)
        for entry in await blob.list(""):
            data = await blob.get(entry.key)
            assert data is not None
            path = folder / entry.key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    asyncio.run(copy())


def main(url: str) -> None:
    """Open as writer and say how long it took, and what was found."""
    # The parts are names alone, so nothing may be worth merging.
    options = persist.Options(config=persist.Config(merge_fan_in=1_000_000))
    began = SYSTEM.monotonic()
    client = persist.open(url, options=options)
    took = SYSTEM.monotonic() - began
    collection = client.state.collection("orders")
    found = {
        "seconds": took,
        "seqno": client.state.seqno,
        "parts": sum(len(batch.parts) for batch in collection.batches),
    }
    client.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
