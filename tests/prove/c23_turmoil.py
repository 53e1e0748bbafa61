"""C23: definitions and rows change at once, in few names, while the server is killed.

Four clients create, rename, swap, move and drop tables, views, columns, indexes and schemas, and
write and read rows, so that each meets what another has just done (`support.kill.turmoil`). In
every second round the server is killed (-9) at a moment that the seed chooses. A violation is an
error of the server's, an acknowledged row that is gone, a relation that cannot be read, and a
materialized view that is not what AUDIT computes from its text.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, bar, options
from support.kill.turmoil import Turmoil
from support.serve.process import Server, serving

CLIENTS = 4
STATEMENTS = 150
#: A location is used for so many rounds, then the next one starts empty.
ROUNDS_PER_LOCATION = 20
_KILLED_AFTER_S = (1.0, 12.0)


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 100, "rounds, of which every second is killed")
    run, draw, kills = Turmoil(chosen.seed), Random(chosen.seed), 0
    with bar("rounds", chosen.count) as advance:
        for first in range(0, chosen.count, ROUNDS_PER_LOCATION):
            run.acknowledged.clear()
            with tempfile.TemporaryDirectory() as folder:
                for at in range(first, min(first + ROUNDS_PER_LOCATION, chosen.count)):
                    with serving(folder) as server:
                        dsn = f"host=127.0.0.1 port={server.pg} user=me dbname=noonmark"
                        if at % 2:
                            _killed(run, server, dsn, draw.uniform(*_KILLED_AFTER_S))
                            kills += 1
                        else:
                            run.round(dsn, CLIENTS, STATEMENTS, threading.Event())
                            run.judge(dsn)
                    advance()
    faults = {**run.counts, "kill": kills}
    goal = f"0 in {chosen.count} rounds"
    return answer("definitions and rows at once", goal, run.violations, faults)


def _killed(run: Turmoil, server: Server, dsn: str, after_s: float) -> None:
    """A round whose server is killed while the clients still have much to say."""
    ended = threading.Event()

    def kill() -> None:
        server.process.kill()
        ended.set()

    timer = threading.Timer(after_s, kill)
    timer.start()
    run.round(dsn, CLIENTS, 100 * STATEMENTS, ended)
    timer.join()


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
