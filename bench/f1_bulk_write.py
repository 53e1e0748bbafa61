"""F1: a bulk write into a collection, against pyarrow sorting and writing the same rows.

Both end with the rows sorted by key, as zstd Parquet, in files that are fsynced. Ours also checks
the schema, computes statistics and checksums, and commits.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.measure import seed_of, side_by_side
from noonmark import persist
from noonmark.rows.schema import Schema

ROWS = 2_000_000
ROUNDS = 7
SCHEMA = Schema.of(id="bigint", amount="bigint", name="text", price="double precision")


def table(rows: int, seed: int, time: int) -> pa.Table:
    """Rows in random order of their key."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "id": random.permutation(rows),
            "amount": random.integers(0, 1_000_000, rows),
            "name": pa.array([f"customer#{n:09d}" for n in random.integers(0, rows, rows)]),
            "price": random.random(rows),
            "_time": np.full(rows, time),
            "_diff": np.ones(rows, np.int64),
        }
    )


def main(argv: Sequence[str]) -> dict[str, Any]:
    seed = seed_of(argv)
    data = table(ROWS, seed, 1)
    config = persist.Config(merge_fan_in=1000)  # no compaction beside the measurement
    with tempfile.TemporaryDirectory() as folder:
        options = persist.Options(config=config)
        with persist.open(Path(folder) / "ours", options=options) as client:
            write, _ = client.create_or_load("bulk", SCHEMA, ("id",))
            turn = iter(range(1_000_000))

            def ours() -> None:
                write.write(data).result()

            def peer() -> None:
                path = Path(folder) / f"peer-{next(turn)}.parquet"
                pq.write_table(data.sort_by("id"), path, compression="zstd")
                with path.open("rb") as file:
                    os.fsync(file.fileno())

            mine, theirs, ratio = side_by_side(ours, peer, ROUNDS)
    speed = 1 / ratio
    print(f"rows/s: noonmark {ROWS / mine:,.0f}, pyarrow {ROWS / theirs:,.0f}")
    print(f"{speed:.2f}")
    return {
        "title": "bulk write against pyarrow sort + zstd Parquet",
        "value": speed,
        "unit": "x",
        "goal": ">= 0.8",
        "met": speed >= 0.8,
        "measures": {"noonmark rows/s": ROWS / mine, "pyarrow rows/s": ROWS / theirs},
        "note": f"{ROWS:,} rows, random key order, median of {ROUNDS} rounds, seed {seed}",
    }


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
