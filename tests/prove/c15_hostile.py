"""C15: hostile statements end at their timeouts, and nobody else notices.

Eight clients send hostile statements (`support.hostile.statements`: relations without an end,
expressions without room, texts too long to plan, inside of every sort of statement) to a
`noonmark serve`, each with a `statement_timeout`, while polite clients select by key, insert, read
through a view, ask for something that needs a worker, and make and drop tables. A violation is

    late      a statement that ends more than a second after its time
    slow      a polite kind of statement whose p99 is over ten times its p99 without the others, or
              over a second
    memory    more memory, in the server and its workers together, than its settings allow
    error     an end that is neither an answer nor an error that says why
    left      a worker that is still busy, or a view that AUDIT finds wrong, afterwards
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.hostile.load import Run, hostile_run
from support.hostile.polite_process import KINDS
from support.house.proving import answer, options
from support.serve.process import serving

LATE_MAX_S = 1.0
SLOWER_MAX = 10.0
#: Below this a p99 is what the machine does, not what the server does.
NOTICED_MS = 50.0
SLOW_MAX_MS = 1_000.0
WORKERS, WORKER_MB = 8, 256
#: The server, its planning and what it keeps: beside the workers.
SERVER_MB = 1_500


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 600, "seconds of hostile statements")
    run = measured(chosen.count, chosen.seed, clients=8, view=True)
    wrong = violations(run)
    seen = run.seen
    figures = {
        "statements": len(seen.late_s),
        "kinds": len(seen.kinds),
        "latest_s": round(seen.worst_late_s(), 2),
        "memory_mb": run.memory_mb,
        **{f"{kind} idle p99 ms": round(value, 1) for kind, value in run.idle_p99.items()},
        **{f"{kind} p99 ms": round(value, 1) for kind, value in run.busy_p99.items()},
    }
    goal = f"0 in {chosen.count} s: late, slow, memory, error, left"
    return answer("hostile statements", goal, wrong, figures)


def measured(seconds: float, seed: int, clients: int, view: bool) -> Run:
    """One run against a server of its own."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "noonmark.toml"
        config.write_text(
            f'statement_workers = "{WORKERS}"\nstatement_worker_memory = "{WORKER_MB}MB"\n'
        )
        with serving(Path(folder) / "data", "--config", str(config)) as server:
            pid = server.process.pid
            load = hostile_run(server.pg, pid, seconds, seed=seed, clients=clients, view=view)
            return asyncio.run(load)


def violations(
    run: Run, late_max_s: float = LATE_MAX_S, slow_max_ms: float = SLOW_MAX_MS
) -> list[str]:
    """What was not as it must be."""
    found = [
        f"late: {late:.1f} s: {statement.kind}: {statement.text[:200]}"
        for late, statement in run.seen.late_s
        if late > late_max_s
    ]
    for kind in KINDS:
        busy = run.busy_p99[kind]
        if busy > min(slow_max_ms, max(NOTICED_MS, SLOWER_MAX * run.idle_p99[kind])):
            found.append(f"slow: {kind}: {busy:.0f} ms, idle {run.idle_p99[kind]:.0f} ms")
    if run.memory_mb > SERVER_MB + WORKERS * WORKER_MB:
        found.append(f"memory: {run.memory_mb} MB")
    found += [f"error: {state} {text}: {s.text[:200]}" for state, text, s in run.seen.wrong]
    return found + [f"left: {each}" for each in run.left]


if __name__ == "__main__":
    print(main(sys.argv[1:]))
