"""Every guarantee of ingestion, over generated source histories with crashes at any call.

``NOONMARK_HISTORIES`` says how many; the guarantees are in `support.ingest.world`.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from support.ingest.world import World

HISTORIES = int(os.environ.get("NOONMARK_HISTORIES", "1000"))
CHUNKS = 20


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
