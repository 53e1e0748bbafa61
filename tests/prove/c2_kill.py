"""C2: kill -9 of the real process at random moments under load, 200 times by default.

Every acknowledged write is there once, an unacknowledged one not at all or once, atomic ones whole,
in the order of calls; no read ever changes its answer, in this process and in three readers beside
the writer (polling, notified, independent); no frontier goes back; the next writer starts at once.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, bar, options
from support.kill.kills import Kills
from support.store.history import Violation

TERM_EVERY = 20
#: A location is used for so many kills, then the next one starts empty.
KILLS_PER_LOCATION = 50


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 200, "kills")
    violations: list[str] = []
    faults: dict[str, int] = {}
    totals: dict[str, int] = {}
    open_ms: list[int] = []
    with bar("kills", chosen.count) as advance:
        for first in range(0, chosen.count, KILLS_PER_LOCATION):
            kills = min(KILLS_PER_LOCATION, chosen.count - first)
            run = _run(chosen.seed + first, kills, advance, violations)
            for into, found in ((faults, run.faults), (totals, run.ledger.counts)):
                for kind, count in found.items():
                    into[kind] = into.get(kind, 0) + count
            open_ms += run.open_ms
    open_ms.sort()
    note = ", ".join(f"{count} {kind}" for kind, count in totals.items())
    note += f"; the next writer was open after {open_ms[len(open_ms) // 2]} ms (median)"
    return answer("kill -9 under load", f"0 in {chosen.count} kills", violations, faults, note)


def _run(seed: int, kills: int, advance: Any, violations: list[str]) -> Kills:
    with tempfile.TemporaryDirectory() as folder:
        run = Kills(folder, seed)
        run.start_readers()
        try:
            for number in range(1, kills + 1):
                run.round()
                if number % TERM_EVERY == 0:
                    run.round(signal.SIGTERM)
                advance()
            run.finish()
        except Violation as violation:
            violations.append(f"seed {seed}: {violation}")
        finally:
            run.stop_readers()
    return run


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
