"""A standalone Spark cluster over S3, with its log in PostgreSQL: equal to the embedded run."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.neighbour.cluster_run import run_all, two_sides
from support.neighbour.servers import PostgresServer, S3Server

pytestmark = pytest.mark.alone

ROWS, LARGE = 20_000, 5_000


@pytest.mark.timeout(900)
def test_a_cluster_answers_as_one_process_does(
    tmp_path: Path, s3_server: S3Server, postgres_server: PostgresServer
) -> None:
    with two_sides(tmp_path, s3_server, postgres_server) as run:
        run_all(run, tmp_path, ROWS, LARGE)
        assert run.wrong == []
        assert run.faults == {"executors killed": 1, "servers killed": 1, "workers killed": 1}
