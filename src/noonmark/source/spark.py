"""Sources on Spark: splits in, whatever a pipeline makes of their records out.

One Spark task reads one group of splits and hands the batches, as they come, to a *pipeline*: a
function from batches to batches that decodes, reclocks, sorts or writes. Records of several outputs
have several schemas, which one DataFrame cannot have; a pipeline can, because it runs in the same
task, and a record costs no trip through the JVM that way.

Law (records): `records(...)` has every record of one output in the splits, once; truncations apart.
Law (errors): what is broken comes as error batches (`read_splits`). Any other error fails the task;
Spark tries again, and `stalled` tells on the driver whether to wait.

Where it runs: `records`, `run` and `stalled` on the driver; pipelines on executors, so they must
pickle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from noonmark.errors import SourceStalled
from noonmark.source.contract import (
    Source,
    Split,
    batch_output,
    is_error,
    is_truncation,
    record_schema,
)
from noonmark.source.splits import Batches, group_splits, read_splits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Pipeline = Callable[[Batches], Batches]

_STALLED = re.compile(r"noonmark\.errors\.SourceStalled: (.*)")


def records(
    session: SparkSession, source: Source, splits: Sequence[Split], output: int
) -> DataFrame:
    """The records of one output, or the source's own errors with `NO_OUTPUT`."""
    return run(session, source, splits, _only(output), record_schema(source, output))


def run(  # noqa: PLR0917 - what to read, what to do with it, and how wide
    session: SparkSession,
    source: Source,
    splits: Sequence[Split],
    pipeline: Pipeline,
    schema: pa.Schema,
    tasks_max: int | None = None,
) -> DataFrame:
    """What the pipeline yields, in batches of `schema`, over all records of the splits.

    At most `tasks_max` tasks read them, if that is given: a small tick wants few.
    """
    tasks = _tasks(session, len(splits))
    groups = group_splits(splits, tasks if tasks_max is None else min(tasks, tasks_max))

    def read(ids: Batches) -> Batches:
        mine = [
            split for batch in ids for at in batch.column(0).to_pylist() for split in groups[at]
        ]
        return pipeline(read_splits(source, mine))

    frame = session.range(0, len(groups), 1, max(1, len(groups)))
    from pyspark.sql.pandas.types import from_arrow_schema  # a server starts without it

    return frame.mapInArrow(read, from_arrow_schema(schema, prefer_timestamp_ntz=True))


def stalled(error: Exception) -> SourceStalled | None:
    """The `SourceStalled` that made a Spark job fail, if one did."""
    if isinstance(error, SourceStalled):
        return error
    found = _STALLED.search(str(error))
    return SourceStalled(found[1]) if found else None


def _only(output: int) -> Pipeline:
    def keep(batches: Batches) -> Batches:
        for batch in batches:
            if is_truncation(batch):
                continue
            if is_error(batch) == (output < 0) and (output < 0 or batch_output(batch) == output):
                yield batch

    return keep


def _tasks(session: SparkSession, splits: int) -> int:
    """A few tasks per core even out what weights cannot know; more would only cost."""
    return min(splits, 3 * max(1, session.sparkContext.defaultParallelism))
