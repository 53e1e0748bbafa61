"""C17: whatever works behind a database is killed, 200 times, and it serves again by itself.

Every kind of background work, a statement worker, the process that forks workers, Spark's JVM, a
Python worker of Spark and the notifier are killed in turn (`support.kill.killed_tasks`) under C7's
load. A violation is service that is not back within ten seconds, or what C7's checker finds.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from noonmark.adapter.database import Database
from support.house.proving import answer, options
from support.kill.killed_tasks import Killing, killed


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 200, "kills")
    with tempfile.TemporaryDirectory() as folder:
        run = asyncio.run(_run(folder, chosen.count, chosen.seed))
    slowest = {f"{kind} back s": round(took, 1) for kind, took in sorted(run.back_s.items())}
    print(slowest)
    return answer("killed work", f"0 in {chosen.count} kills", run.violations, run.kills)


async def _run(folder: str, count: int, seed: int) -> Killing:
    opened = await Database.open(folder, spark_master="local[2]")
    try:
        return await killed(opened, count, seed, view=True)
    finally:
        await opened.close()


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
