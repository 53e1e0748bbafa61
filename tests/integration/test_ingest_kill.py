"""A process that ingests is killed a few times (figure C12 does it fifty times)."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.ingest.kills import IngestKills

KILLS = 3


@pytest.mark.slow
def test_nothing_is_lost_or_read_again_when_the_process_is_killed(tmp_path: Path) -> None:
    run = IngestKills(tmp_path / "run", seed=7)
    for _ in range(KILLS):
        run.round()
    run.finish()
    assert run.splits > 0
    assert run.faults.total() == KILLS
