"""F2: the snapshot of a compacted collection, against pyarrow reading the same Parquet.

Whole: every row, as Arrow. By key: 10 keys of the collection, counted in bytes fetched from the
store, nothing of it cached before.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from bench.f1_bulk_write import SCHEMA, table
from bench.measure import seed_of, side_by_side
from noonmark import persist
from noonmark.persist.location import Blob

ROWS = 1_000_000
ROUNDS = 9
KEYS = 10
LOOK_UPS = 20


def main(argv: Sequence[str]) -> dict[str, Any]:
    seed = seed_of(argv)
    with tempfile.TemporaryDirectory() as folder:
        config = persist.Config(cache_bytes_max=0)
        options = persist.Options(config=config)
        with persist.open(Path(folder), options=options) as client:
            write, read = client.create_or_load("bulk", SCHEMA, ("id",))
            write.write(table(ROWS, seed, 1)).result()
            write.seal(2).result()
            write.allow_compaction(1).result()
            client.compact("bulk").result()
            (batch,) = client.state.collection("bulk").batches
            paths = [str(Path(folder) / part.key) for part in batch.parts]

            def ours() -> None:
                assert read.snapshot(1).result().to_arrow().num_rows == ROWS

            def peer() -> None:
                assert sum(pq.read_table(path).num_rows for path in paths) == ROWS

            mine, theirs, ratio = side_by_side(ours, peer, ROUNDS)
            share = bytes_by_key(client, read, seed) / sum(part.bytes for part in batch.parts)
    speed = 1 / ratio
    print(f"whole: noonmark {mine * 1e3:.0f} ms, pyarrow {theirs * 1e3:.0f} ms, {speed:.2f} of it")
    print(f"by key: {share:.2%} of the bytes for {KEYS} keys of {ROWS:,} rows")
    print(f"{speed:.2f}")
    return {
        "title": "snapshot of a compacted collection, whole and by key",
        "value": speed,
        "unit": "x",
        "goal": ">= 0.8 whole; < 2 % of the bytes by key",
        "met": speed >= 0.8 and share < 0.02,
        "measures": {
            "noonmark ms": mine * 1e3,
            "pyarrow ms": theirs * 1e3,
            "by key %": share * 100,
        },
        "note": f"{ROWS:,} rows, median of {ROUNDS} rounds; {share:.2%} of the bytes by key",
    }


def bytes_by_key(client: persist.Client, read: persist.ReadHandle, seed: int) -> float:
    """Bytes fetched per look-up of `KEYS` random keys, on average."""
    random = np.random.default_rng(seed)
    blob, fetched = client.parts.blob, 0
    for at in range(LOOK_UPS):
        counter = Counting(blob, f"cold-{at}")
        client.parts.blob = counter  # type: ignore[assignment]
        keys = [int(key) for key in random.choice(ROWS, KEYS, replace=False)]
        found = read.snapshot(1, keys=keys).result().rows()
        assert sorted(row[0] for row in found) == sorted(keys)
        fetched += counter.bytes
    return fetched / LOOK_UPS


class Counting:
    """A Blob that counts what is fetched; its own URL keeps it apart in every cache."""

    def __init__(self, blob: Blob, url: str) -> None:
        self._blob = blob
        self.url = url
        self.bytes = 0

    async def get(self, key: str) -> bytes | None:
        """A whole object, counted."""
        return self._count(await self._blob.get(key))

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        """A range, counted."""
        return self._count(await self._blob.get_range(key, start, length))

    def _count(self, data: bytes | None) -> bytes | None:
        self.bytes += len(data or b"")
        return data


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
