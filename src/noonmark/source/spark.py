"""Sources on Spark: splits in, whatever a pipeline makes of their records out.

One Spark task reads one group of splits and hands the batches, as they come, to a *pipeline*: a
function from batches to batches that decodes, reclocks, sorts or writes. Records of several outputs
have several schemas, which one DataFrame cannot have; a pipeline can, because it runs in the same
task, and a record costs no trip through the JVM that way.

Law (records): `records(...)` has every record of one output in the splits, once.
Law (groups): `group_splits` keeps every split once, and no group is empty.
Law (errors): a `SourceBroken` that `read` raises becomes an error batch, behind what was yielded
before it. Any other error fails the task; Spark tries again, and `stalled` tells on the driver
whether to wait.

Where it runs: `records`, `run` and `group_splits` on the driver; pipelines on executors, so they
must pickle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from noonmark.errors import SourceBroken, SourceStalled
from noonmark.source.contract import (
    Source,
    Split,
    batch_output,
    error_batch,
    is_error,
    record_schema,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterator[pa.RecordBatch]
Pipeline = Callable[[Batches], Batches]

_STALLED = re.compile(r"noonmark\.errors\.SourceStalled: (.*)")


def records(
    session: SparkSession, source: Source, splits: Sequence[Split], output: int
) -> DataFrame:
    """The records of one output, or the source's own errors with `NO_OUTPUT`."""
    return run(session, source, splits, _only(output), record_schema(source, output))


def run(
    session: SparkSession,
    source: Source,
    splits: Sequence[Split],
    pipeline: Pipeline,
    schema: pa.Schema,
) -> DataFrame:
    """What the pipeline yields, in batches of `schema`, over all records of the splits."""
    groups = group_splits(splits, _tasks(session, len(splits)))

    def read(ids: Batches) -> Batches:
        mine = [
            split for batch in ids for at in batch.column(0).to_pylist() for split in groups[at]
        ]
        return pipeline(read_splits(source, mine))

    frame = session.range(0, len(groups), 1, max(1, len(groups)))
    return frame.mapInArrow(read, from_arrow_schema(schema, prefer_timestamp_ntz=True))


def read_splits(source: Source, splits: Iterable[Split]) -> Batches:
    """The records of the splits, one after another; what is broken comes as an error batch."""
    for split in splits:
        try:
            yield from source.read(split)
        except SourceBroken as error:
            offset = error.fields.get("offset", split.lower)
            row = (offset, None, error.fields.get("value"), error.message)
            yield error_batch(source.partition_kind, split.partition, [row])


def group_splits(splits: Sequence[Split], groups_max: int) -> list[list[Split]]:
    """At most so many groups of about equal weight, heaviest splits first."""
    heap: list[tuple[int, int]] = []
    groups: list[list[Split]] = [[] for _ in range(min(groups_max, len(splits)))]
    for at in range(len(groups)):
        heappush(heap, (0, at))
    for split in sorted(splits, key=lambda split: -split.weight):
        weight, at = heappop(heap)
        groups[at].append(split)
        heappush(heap, (weight + split.weight, at))
    return groups


def stalled(error: Exception) -> SourceStalled | None:
    """The `SourceStalled` that made a Spark job fail, if one did."""
    if isinstance(error, SourceStalled):
        return error
    found = _STALLED.search(str(error))
    return SourceStalled(found[1]) if found else None


def _only(output: int) -> Pipeline:
    def keep(batches: Batches) -> Batches:
        for batch in batches:
            if is_error(batch) == (output < 0) and (output < 0 or batch_output(batch) == output):
                yield batch

    return keep


def _tasks(session: SparkSession, splits: int) -> int:
    """A few tasks per core even out what weights cannot know; more would only cost."""
    return min(splits, 3 * max(1, session.sparkContext.defaultParallelism))
