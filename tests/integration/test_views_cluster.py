"""Views on executors that are processes of their own, one of which is killed while it works."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.neighbour.executors import Fault, executors
from support.view.views import seeded_history
from support.view.world import VIEWS, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMES, HYDRATED = 8, 3
#: Hydrated by Spark, and ticked by many tasks: so a task of each kind meets the fault.
LARGE = ("totals", "missing")


@pytest.mark.timeout(900)
def test_views_are_their_definitions_though_executors_die(
    tmp_path: Path, spark_cluster: SparkSession
) -> None:
    world = World(tmp_path, spark_cluster, seeded_history(3, TIMES))
    world.advance(HYDRATED + 1)
    world.start_views(VIEWS)
    for name in LARGE:
        world.flow.views[name].task_bytes_max = 0
    world.tick()
    world.advance(HYDRATED + 3)
    before = set(executors(spark_cluster))
    with Fault(spark_cluster, executors) as fault:
        world.tick()
    assert fault.killed in before
    world.advance(TIMES)
    world.tick()
    assert world.wrong(VIEWS, range(HYDRATED, TIMES)) == []
    assert set(executors(spark_cluster)) != before, "Spark has put another in its place"
    world.client.stop()
