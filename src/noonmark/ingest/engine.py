"""Engines: what runs the reading of a tick, and where.

Law: the rows of `Engine.run` name the same updates whatever the engine, and however it shares the
splits out among its tasks.

Small ticks are read in the calling process: a Spark job costs more than they do, and sources go on
while Spark still starts. Larger ones are Spark jobs. Either way it is upstream that is read, which
may not answer: whoever drives a source has it read by a peer (`ApartEngine`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from noonmark.clock import SYSTEM, Clock
from noonmark.compute.runner.limit import Limit
from noonmark.errors import SourceStalled
from noonmark.ingest.rates import Rates
from noonmark.ingest.task import RESULT, GatherTask, IngestTask, Row
from noonmark.ingest.truncate import RetractTask
from noonmark.peer import Peer
from noonmark.source import spark as source_spark
from noonmark.source.contract import Source, Split
from noonmark.source.splits import read_splits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Rows or bytes (`Split.weight`) that are worth a task of their own: a task costs some 10 ms.
_WEIGHT_PER_TASK = 1 << 16
#: An UPSERT of up to this weight is cheaper in one task than behind a shuffle.
_WEIGHT_UNSHUFFLED = 1 << 18
#: A task behind the shuffle holds all records of its buckets: the more there are, the more tasks.
_TASKS_PER_WIDTH = 16
_WIDTH_MAX = 64
#: More buckets than tasks, so that an uneven hash evens out.
_BUCKETS_PER_TASK = 8
#: Rows or bytes (`Split.weight`) that are read in place rather than by Spark.
IN_PLACE_WEIGHT_MAX = 1 << 14
#: Bytes of parts that are retracted in place rather than by Spark.
RETRACTED_BYTES_MAX = 1 << 20


class Engine(Protocol):
    """What runs the reading of splits."""

    def run(self, source: Source, splits: Sequence[Split], work: IngestTask) -> list[Row]:
        """The rows that `work` yields over the records of all splits, each read once."""

    def retract(self, work: RetractTask) -> list[Row]:
        """The rows that `work` yields over its slices, each once."""


@dataclass(frozen=True)
class SparkEngine:
    """One Spark job per tick, one task per group of splits; for a large UPSERT, a shuffle."""

    session: Callable[[], SparkSession]
    #: Ends its jobs, where somebody may.
    limit: Limit | None = None

    def run(self, source: Source, splits: Sequence[Split], work: IngestTask) -> list[Row]:
        """See `Engine.run`."""
        try:
            with self._limited():
                rows: list[Row] = self._frame(source, splits, work).toArrow().to_pylist()
        except Exception as error:
            waiting = source_spark.stalled(error)
            if waiting is None:
                raise
            raise SourceStalled(waiting.message) from error
        return rows

    def retract(self, work: RetractTask) -> list[Row]:
        """See `Engine.retract`: a task for each slice."""
        from pyspark.sql.pandas.types import from_arrow_schema

        frame = self.session().range(0, len(work.slices), 1, len(work.slices))
        made = frame.mapInArrow(work, from_arrow_schema(RESULT))
        with self._limited():
            rows: list[Row] = made.toArrow().to_pylist()
        return rows

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """A group of jobs that the limit ends."""
        if self.limit is None:
            yield
            return
        context, group = self.session().sparkContext, f"ingest-{SYSTEM.fresh_id()}"
        context.setJobGroup(group, "a tick of a source", interruptOnCancel=True)
        with self.limit.of(partial(context.cancelJobGroup, group), None):
            yield

    def _frame(self, source: Source, splits: Sequence[Split], work: IngestTask) -> DataFrame:
        session = self.session()
        weight = sum(split.weight for split in splits)
        tasks = -(-weight // _WEIGHT_PER_TASK)
        upserts = any(each.feed.is_upsert for each in work.destinations)
        if upserts and weight <= _WEIGHT_UNSHUFFLED:
            tasks = 1
        if not upserts or tasks == 1 or len(splits) == 1:
            return source_spark.run(session, source, splits, work, RESULT, tasks)
        cores = max(1, session.sparkContext.defaultParallelism)
        width = max(cores, min(_WIDTH_MAX, tasks // _TASKS_PER_WIDTH))
        scattering = replace(work, buckets=_BUCKETS_PER_TASK * width)
        frame = source_spark.run(session, source, splits, scattering, RESULT, tasks)
        return frame.repartition(width, "bucket").mapInArrow(GatherTask(work), frame.schema)


@dataclass(frozen=True)
class ApartEngine:
    """An engine at work in a peer's thread: when the peer is left, its caller is let go at once.

    What it reads then is committed by nobody, and its Spark job is ended.
    """

    engine: Callable[[Limit], Engine]
    peer: Peer

    def run(self, source: Source, splits: Sequence[Split], work: IngestTask) -> list[Row]:
        """See `Engine.run`."""
        limit = Limit()
        reading = partial(self.engine(limit).run, source, splits, work)
        return self.peer.wait(reading, end=limit.give_up)

    def retract(self, work: RetractTask) -> list[Row]:
        """See `Engine.retract`."""
        limit = Limit()
        return self.peer.wait(partial(self.engine(limit).retract, work), end=limit.give_up)


@dataclass(frozen=True)
class InPlaceEngine:
    """No Spark: every split is read in the calling process, one after another. The reference."""

    def run(self, source: Source, splits: Sequence[Split], work: IngestTask) -> list[Row]:
        """See `Engine.run`."""
        batches = work(read_splits(source, splits))
        return [row for batch in batches for row in batch.to_pylist()]

    def retract(self, work: RetractTask) -> list[Row]:
        """See `Engine.retract`."""
        numbers = pa.RecordBatch.from_arrays([pa.array(range(len(work.slices)))], names=["id"])
        return [row for batch in work([numbers]) for row in batch.to_pylist()]


@dataclass(frozen=True)
class BySizeEngine:
    """An engine that reads little in place, leaves much to Spark, and counts what was read."""

    spark: SparkEngine
    rates: Rates
    clock: Clock

    def run(self, source: Source, splits: Sequence[Split], work: IngestTask) -> list[Row]:
        """See `Engine.run`."""
        small = sum(split.weight for split in splits) <= IN_PLACE_WEIGHT_MAX
        rows = (InPlaceEngine() if small else self.spark).run(source, splits, work)
        self.rates.count(rows, self.clock.monotonic())
        return rows

    def retract(self, work: RetractTask) -> list[Row]:
        """See `Engine.retract`."""
        small = sum(each.plan.bytes for each in work.slices) <= RETRACTED_BYTES_MAX
        return (InPlaceEngine() if small else self.spark).retract(work)
