"""The 22 queries of TPC-H as views, against DuckDB at every time of a run on Spark.

All eight tables change at every time: rows come, go and are replaced. The views are hydrated at one
time and ticked over several, side by side; one tick covers two times.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from noonmark import persist
from noonmark.persist.client import Options
from support.view.tpch_changes import Tables
from support.view.tpch_views import TpchViews

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SEED, SCALE_FACTOR, FRACTION = 3, 0.01, 0.02


@pytest.fixture
def world(tmp_path: Path, spark: SparkSession) -> Iterator[TpchViews]:
    with persist.open(tmp_path, options=Options(notify_host=None)) as client:
        yield TpchViews(client, lambda: spark, Tables.generated(SEED, SCALE_FACTOR))


def test_every_query_is_its_definition_at_every_time(world: TpchViews) -> None:
    world.create()
    assert world.tick() == {"hydrate"}
    assert world.wrong(world.now) == {}
    filled = [name for name in world.flow.views if world.contents(name, world.now)]
    assert len(filled) >= 19, "agreement about nothing proves little"
    answers = []
    for times in (1, 2, 1):
        for _ in range(times):
            world.change(FRACTION)
            answers.append((world.now, world.judge.answers()))
        assert world.tick() == {"delta"}
        assert {record.jobs for record in world.flow.records[-22:]} == {1}
    for time, expected in answers:
        assert world.wrong(time, expected) == {}
