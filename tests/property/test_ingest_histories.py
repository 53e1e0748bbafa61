"""Every guarantee of ingestion, over generated source histories with crashes at any call.

The guarantees are in `support.ingest.world`.
"""

from __future__ import annotations

from collections import Counter

import pytest

from support.house.counts import counted
from support.ingest.world import World

HISTORIES = counted(200, 10_000)
CHUNKS = 4


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_histories(chunk: int) -> None:
    crashes: Counter[str] = Counter()
    ticks = reads = 0
    for seed in range(chunk, HISTORIES, CHUNKS):
        try:
            world = World(seed).run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        crashes += world.fuse.crashes
        ticks += world.ticks
        reads += world.reads
    assert sum(crashes.values()) > HISTORIES / CHUNKS
    assert min(ticks, reads) > HISTORIES / CHUNKS
