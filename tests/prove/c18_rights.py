"""C18: who may do what, and what is never shown.

Every cell of the matrix of rights (`support.hostile.rights_matrix`: statement, object, right, and
how a role has it or nearly has it) on a server process, over PostgreSQL's protocol, HTTP and
WebSocket; each is allowed or refused with 42501 as the table in the code says, and as PostgreSQL
says of the same roles, grants and text where it has the statement. Then secrets are planted
wherever text can appear and looked for wherever it is recorded (`support.hostile.rights_secrets`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.hostile.rights_matrix import cells
from support.hostile.rights_run import FRONTS, Ours, Theirs, judged, tried
from support.hostile.rights_secrets import Planting
from support.house.proving import answer, bar, options
from support.neighbour.servers import server_folder, start_postgres
from support.serve.process import PORTS, Server, command

#: Every cell, by one front end in turn; three times as many: by all three.
ALL = len(cells())
#: What is durable is not in question here: files that no disk has to sync.
IN_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, ALL, "cells")
    counts: Counter[str] = Counter()
    violations = in_postgres(counts)
    with tempfile.TemporaryDirectory(prefix="c18-", dir=IN_MEMORY) as folder:
        violations += on_a_server(Path(folder), chosen.seed, chosen.count, counts)
    note = ", ".join(f"{what} {count}" for what, count in sorted(counts.items()))
    return answer("rights and secrets", "0 cells wrong, 0 secrets found", violations, counts, note)


def in_postgres(counts: Counter[str]) -> list[str]:
    """Where PostgreSQL says otherwise than the table."""
    wrong: list[str] = []
    with server_folder("pg") as folder, start_postgres(folder) as server:
        theirs = Theirs(server.dsn)
        for cell in cells("postgres"):
            if cell.in_postgres:
                counts["compared with PostgreSQL"] += 1
                wrong += judged(theirs, cell)
        theirs.close()
    return wrong


def on_a_server(folder: Path, seed: int, count: int, counts: Counter[str]) -> list[str]:
    """The matrix and the secrets on one server process."""
    log = folder / "log"
    data = folder / "data"
    with log.open("w") as errors:
        process = subprocess.Popen(
            command("--data", str(data), *PORTS, "--log-format", "json"),
            stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        try:
            server = Server(process)
            http = f"127.0.0.1:{server.http}"
            wrong = matrix(Ours("127.0.0.1", server.pg, http), count, counts)
            where = f"host=127.0.0.1 port={server.pg} dbname=noonmark user=noonmark"
            planting = Planting(seed, where, http)
            planting.plant()
            wrong += planting.found(planting.shown())
            counts["secrets planted"] += len(planting.marks)
            line = Path(f"/proc/{process.pid}/cmdline")
            wrong += planting.found(iter([("the command line", line.read_text())]))
        finally:
            process.terminate()
            process.wait(60)
    said = log.read_text()
    counts["lines of log"] += said.count("\n")
    return [*wrong, *planting.found(iter([("the log", said)])), *planting.in_files(data)]


def matrix(ours: Ours, count: int, counts: Counter[str]) -> list[str]:
    """Cells, by all front ends or by one in turn."""
    wrong: list[str] = []
    todo = cells()
    by_all = count >= 3 * len(todo)
    with bar("cells", min(count, 3 * len(todo))) as advance:
        for number, cell in enumerate(todo):
            left = count - counts["cells"]
            if left <= 0:
                break
            in_turn = (FRONTS[number % 3],)
            fronts = FRONTS if by_all and not cell.needs_spark else in_turn
            wrong += tried(ours, cell, fronts)
            for front in fronts:
                counts["cells"] += 1
                counts[f"by {front}"] += 1
            advance(len(fronts))
    ours.close()
    return wrong


if __name__ == "__main__":
    print(main(sys.argv[1:]))
