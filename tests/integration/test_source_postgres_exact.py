"""PostgreSQL under eight writers and kills: a small number of what figure C16 does."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.ingest.exact_run import ExactRun
from support.neighbour.servers import server_folder


@pytest.mark.slow
def test_at_every_bound_position_the_collections_are_what_upstream_was() -> None:
    with server_folder("exact") as folder:
        run = ExactRun(Path(folder) / "run", 1, 2000, 6, 1, rate=400)
        try:
            assert run.run() == []
        finally:
            run.close()
    assert run.judged >= 6
    assert run.faults["kill -9 of PostgreSQL"] == 1
    assert run.faults["kill -9 of Noonmark"] >= 1
