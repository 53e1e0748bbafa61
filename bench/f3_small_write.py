"""F3: one row into one collection, durable, against the bare system calls that durability takes."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.measure import seed_of, timed
from noonmark import persist
from noonmark.rows.schema import Schema

WRITES = 3000
WARM_UP = 300


def main(argv: Sequence[str]) -> dict[str, Any]:
    seed = seed_of(argv)
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(Path(folder) / "peer")
        with persist.open(Path(folder) / "ours") as client:
            write, _ = client.create_or_load("small", Schema.of(id="bigint", name="text"), ("id",))

            def ours(at: int) -> None:
                write.write([persist.Update((seed * at, f"row {at}"), at, 1)]).result()

            mine, theirs = [], []
            for at in range(WRITES + WARM_UP):
                mine.append(timed(lambda: ours(at)))  # noqa: B023 - called at once
                theirs.append(timed(lambda: peer.write(at)))  # noqa: B023 - called at once
    mine, theirs = sorted(mine[WARM_UP:]), sorted(theirs[WARM_UP:])
    ratio = statistics.median(mine) / statistics.median(theirs)
    p99 = mine[len(mine) * 99 // 100] / theirs[len(theirs) * 99 // 100]
    p50s = [statistics.median(times) * 1e3 for times in (mine, theirs)]
    print(f"p50: noonmark {p50s[0]:.3f} ms, system calls {p50s[1]:.3f} ms; p99 ratio {p99:.2f}")
    print(f"{ratio:.2f}")
    return {
        "title": "small durable write against write + fsync + rename + fsync of the folder, p50",
        "value": ratio,
        "unit": "x",
        "goal": "<= 2",
        "met": ratio <= 2,
        "measures": {
            "noonmark p50 ms": p50s[0],
            "system calls p50 ms": p50s[1],
        },
        "note": f"{WRITES} writes of each, in turns, after {WARM_UP}; p99 ratio {p99:.2f}",
    }


class Peer:
    """The least that makes a small file durable."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.handle = os.open(folder, os.O_RDONLY)

    def write(self, at: int) -> None:
        """One file, made durable."""
        temporary = self.folder / "temporary"
        with open(temporary, "wb", buffering=0) as file:
            file.write(b"x" * 600)
            os.fsync(file.fileno())
        os.rename(temporary, self.folder / f"{at:020d}")
        os.fsync(self.handle)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
