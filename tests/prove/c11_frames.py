"""C11, frames: hostile bytes on PostgreSQL's protocol, a million frames by default.

Every stream ends with the protocol's own error or goodbye, in whole messages, the session closed
and its rows let go; before login no more is kept than a start packet may have. The process' memory
is flat. The streams and what must hold are in `support.serve.hostile`.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, bar, options
from support.serve.hostile import Hostile

CHUNK = 20_000
GROWTH_BYTES_MAX = 64 << 20


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 1_000_000, "frames")
    violations: list[str] = []
    faults: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    pool = ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn"))
    with bar("frames", chosen.count) as advance, pool:
        seeds = range(chosen.seed * 1_000_000, chosen.seed * 1_000_000 + -(-chosen.count // CHUNK))
        work = [pool.submit(streams, seed, min(CHUNK, chosen.count)) for seed in seeds]
        for done in work:
            found, bent, ended = done.result()
            violations += found
            faults.update(bent)
            ends.update(ended)
            advance(min(CHUNK, chosen.count))
    note = "ends: " + ", ".join(f"{kind} {count}" for kind, count in sorted(ends.items()))
    return answer("hostile frames", f"0 in {chosen.count} frames", violations, faults, note)


def streams(seed: int, count: int) -> tuple[list[str], Counter[str], Counter[str]]:
    """Runs in a process of its own: violations, bent frames by kind, ends by kind."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    hostile = Hostile(seed)
    violations = []
    try:
        hostile.run(count // 10)
        before = _resident_bytes()
        hostile.run(count - count // 10)
        grown = _resident_bytes() - before
        if grown > GROWTH_BYTES_MAX:
            violations.append(f"seed {seed}: memory grew by {grown >> 20} MiB")
    except Exception as error:
        violations.append(f"seed {seed}: {type(error).__name__}: {error}")
    return violations, hostile.bent, hostile.ended


def _resident_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
