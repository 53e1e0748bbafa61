"""kill -9 while views are hydrated and while they tick: the next process goes on, and all is right.

`tests/prove/c5_kills.py` has more of them, at every point.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.view.kills import maintain
from support.view.process import HYDRATED, TIMES
from support.view.views import seeded_history
from support.view.world import VIEWS, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 4


@pytest.mark.timeout(1500)
def test_views_survive_kills(tmp_path: Path, spark: SparkSession) -> None:
    for moment in (("hydrate", "running"), ("tick", "made")):
        assert maintain(tmp_path, SEED, *moment) == " ".join(("killed", *moment))
    world = World(tmp_path, spark, seeded_history(SEED, TIMES))
    world.advance(TIMES)
    world.start_views(VIEWS)
    world.tick()
    assert world.wrong(VIEWS, range(HYDRATED, TIMES)) == []
    world.client.stop()
