"""C21: a standalone Spark cluster over S3 and PostgreSQL answers as one process does.

The same statements go to both (`support.neighbour.cluster_run`): views over 10 million rows are
hydrated, changed in small and in large steps, an executor, a worker and the server are killed. A
violation is an answer that differs, or a view that AUDIT finds wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer
from support.neighbour.cluster_run import run_all, two_sides
from support.neighbour.servers import server_folder, start_postgres, start_s3


def main(argv: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1, help="nothing is random here")
    parser.add_argument("--count", type=int, default=10_000_000, help="rows that are hydrated")
    chosen = parser.parse_args(list(argv))
    with (
        tempfile.TemporaryDirectory() as folder,
        server_folder("s3") as first,
        start_s3(first) as s3,
        server_folder("pg") as second,
        start_postgres(second) as postgres,
        two_sides(Path(folder), s3, postgres) as run,
    ):
        run_all(run, Path(folder), chosen.count, max(chosen.count // 20, 1_000))
    print({name: round(took, 1) for name, took in run.seconds.items()})
    return answer("cluster", "0 differences", run.wrong, run.faults)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
