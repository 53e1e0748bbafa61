"""Compaction with Spark: each task merges one key range of all runs; the driver swaps them in.

Law: the swap is the one that `noonmark.persist.upkeep.compact.rewrite` would make, but for where
its parts begin and end. The parts of all ranges, in order, are one run.

Where it runs: driver, except for the callables that say otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from noonmark.persist import task
from noonmark.persist.client import Client
from noonmark.persist.log import command as c
from noonmark.persist.log.state import Batch, Collection
from noonmark.persist.part.part import Part
from noonmark.persist.part.ranges import KeyRange, cut
from noonmark.persist.read.slices import bare_collection
from noonmark.persist.spark.errors import typed_errors
from noonmark.persist.upkeep import compact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Below this a compaction takes a process a few seconds: not worth a job.
BYTES_MIN = 256 << 20

_PARTS = msgspec.msgpack.Decoder(Part)


class SparkCompactor:
    """See `noonmark.persist.upkeep.compact.Compactor`: give it to ``client.upkeep.compactor``."""

    def __init__(self, spark: SparkSession, client: Client, bytes_min: int = BYTES_MIN) -> None:
        self.spark = spark
        self.client = client
        self.bytes_min = bytes_min

    async def rewrite(self, collection: Collection, batches: tuple[Batch, ...]) -> c.Swap:
        """See `Compactor.rewrite`."""
        return await self.client.runtime.offload(self._rewrite, collection, batches)

    def _rewrite(self, collection: Collection, batches: tuple[Batch, ...]) -> c.Swap:
        client = self.client
        if client.blob.url.startswith("memory:"):
            here = compact.rewrite(collection, batches, client.parts, client.config)
            return client.runtime.submit(here).result()
        first = (collection.key or collection.schema.names)[0]
        runs = [batch.parts for batch in batches]
        place = collection.schema.index(first)
        ranges = cut(runs, first, place, client.config.part_rows_max)
        work = RewriteTask(
            task.TaskLocation(client.blob.url, client.config, client.parts.epoch),
            bare_collection(collection),
            batches,
            ranges,
        )
        with typed_errors():
            frame = self.spark.range(0, len(ranges), 1, len(ranges))
            result = frame.mapInArrow(work, "number bigint, parts array<binary>").toArrow()
        rows = sorted(result.to_pylist(), key=lambda row: row["number"])
        written = [_PARTS.decode(part) for row in rows for part in row["parts"]]
        return compact.swap(collection, batches, written)


def compact_on_spark(spark: SparkSession, client: Client, name: str) -> Future[None]:
    """Rewrite a collection as one run with Spark's executors, now, whatever its size."""
    client.require_writer()
    engine = SparkCompactor(spark, client, bytes_min=0)
    ref = client.state.collection(name).id
    return client.runtime.submit(client.upkeep.compact(ref, engine=engine))


@dataclass(frozen=True)
class RewriteTask:
    """Runs on executors: merges the key ranges whose numbers come in."""

    place: task.TaskLocation
    collection: Collection
    batches: tuple[Batch, ...]
    ranges: tuple[KeyRange, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The parts of each range."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                parts = task.rewrite(self.place, self.collection, self.batches, self.ranges[number])
                encoded = [msgspec.msgpack.encode(part) for part in parts]
                yield pa.record_batch(
                    {
                        "number": pa.array([number], pa.int64()),
                        "parts": pa.array([encoded], pa.list_(pa.binary())),
                    }
                )
