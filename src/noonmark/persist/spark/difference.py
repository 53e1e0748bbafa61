"""What makes one collection another, by Spark: each row as often as there are too few, or too many.

Where it runs: driver; the rows stay on executors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from noonmark.persist.client import Client
from noonmark.persist.part.run import DIFF, TIME
from noonmark.persist.read.handle import plan_at
from noonmark.persist.read.plan import Query
from noonmark.persist.spark.read import frame_of
from noonmark.persist.spark.write import Staged, stage_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def stage_difference(
    spark: SparkSession, client: Client, names: tuple[str, str], as_of: tuple[int, int], time: int
) -> Staged:
    """The updates that make the first collection the second one, each as of its time.

    They are at `time`, stored and not committed.
    """
    columns = [_quoted(name) for name in client.state.collection(names[0]).schema.names]
    frames = []
    for name, at, sign in zip(names, as_of, (-1, 1), strict=True):
        plan = plan_at(client, name, Query(at, despite_error=True))
        rows = frame_of(spark, client, plan).select(*columns)
        frames.append(rows.withColumn(DIFF, f.lit(sign).cast("bigint")))
    both = frames[0].unionByName(frames[1])
    changed = both.groupBy(*columns).agg(f.sum(DIFF).alias(DIFF)).where(f.col(DIFF) != 0)
    timed = changed.withColumn(TIME, f.lit(time).cast("bigint"))
    return stage_frame(
        timed.select(*columns, TIME, DIFF), client, client.create_or_load(names[0])[0]
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
