"""Generated queries as views over generated histories, at every time; `make prove` runs more."""

from __future__ import annotations

from pathlib import Path

from support.views_generated import run


def test_generated_views_are_their_definitions_at_every_time(tmp_path: Path) -> None:
    done = run(tmp_path, seed=9, count=12, ticks=6)
    assert done.wrong == ()
    assert done.compared > 60
    assert done.filled > 20, "agreement about nothing proves little"
