"""Table functions over frames (`noonmark.compute.incremental.flat_map`).

Where it runs: driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noonmark.compute.incremental.flat_map import FlatMapTask
from noonmark.compute.plan.keys import over_scans
from noonmark.compute.spark.frame import frame_schema
from noonmark.sql.ir import relation as r

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def flat_mapped(node: r.FlatMap, frame: DataFrame) -> DataFrame:
    """The function applied to every row."""
    operator = over_scans(node)
    assert isinstance(operator, r.FlatMap)
    return frame.mapInArrow(FlatMapTask(operator, timed=False), frame_schema(node.schema))
