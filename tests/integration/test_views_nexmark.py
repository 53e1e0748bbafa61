"""Nexmark as views, against DuckDB at every time of a run on Spark.

Windows are SQL over event time. Events come, late ones too; bids are withdrawn, auctions prolonged.
The views are hydrated at one time and ticked over several, side by side.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from noonmark import persist
from noonmark.persist.client import Options
from support.view.nexmark_views import NexmarkViews

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SEED, EVENTS, MORE = 5, 800, 60
TICKS = (1, 2)


def test_every_query_is_its_definition_at_every_time(tmp_path: Path, spark: SparkSession) -> None:
    with persist.open(tmp_path, options=Options(notify_host=None)) as client:
        world = NexmarkViews(client, lambda: spark, SEED, EVENTS)
        world.create()
        assert world.tick() == {"hydrate"}
        answers = [(world.now, world.judge.answers())]
        for times in TICKS:
            for _ in range(times):
                world.change(MORE)
                answers.append((world.now, world.judge.answers()))
            assert world.tick() == {"delta"}
        wrong = {time: found for time, each in answers if (found := world.wrong(time, each))}
        assert wrong == {}
        assert len(world.flow.views) == 19
        for name, rows in answers[-1][1].items():
            assert rows, f"agreement of {name} about nothing proves little"
