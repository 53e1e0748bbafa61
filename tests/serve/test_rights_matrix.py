"""Who may do what (C18): a part of the matrix, and all of what PostgreSQL can judge.

`tests/prove/c18_rights.py` runs every cell, on a process, with Spark.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.hostile.rights_matrix import cells
from support.hostile.rights_run import FRONTS, Ours, Theirs, judged, tried
from support.hostile.rights_secrets import Planting
from support.neighbour.servers import PostgresServer
from support.serve.host import DatabaseHost

#: One cell in so many; a prime, so that every statement and every way is met.
STEP = 11


@pytest.mark.server
def test_postgresql_says_the_same(postgres_server: PostgresServer) -> None:
    theirs = Theirs(postgres_server.dsn)
    judgeable = [cell for cell in cells("postgres") if cell.in_postgres]
    assert len(judgeable) >= 400
    wrong = [each for cell in judgeable for each in judged(theirs, cell)]
    theirs.close()
    assert wrong == []


def test_cells_are_as_the_table_says(database_host: DatabaseHost) -> None:
    host = database_host
    ours = Ours(host.host, host.port, host.http)
    all_of_them = [cell for cell in cells() if not cell.needs_spark]
    assert len(all_of_them) >= 400
    chosen = all_of_them[::STEP]
    wrong = [
        each
        for number, cell in enumerate(chosen)
        for each in tried(ours, cell, [FRONTS[number % 3]])
    ]
    ours.close()
    assert wrong == []


def test_no_secret_is_found(
    database_host: DatabaseHost, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    host = database_host
    planting = Planting(1, host.dsn("noonmark"), host.http)
    planting.plant()
    found = planting.found(planting.shown())
    found += planting.found(iter([("the log", caplog.text)]))
    assert found == []
    assert len(planting.marks) >= 80
    assert planting.in_files(tmp_path) == []
