"""Old rows by key: what makes the cost of a tick follow the change and not the state.

Law: for every key of the keys that come in, all rows of the collection with that key, as of the
time before the tick. Only the parts and pages that can hold these keys are read.

A task gets keys and opens the collection itself: no row of the state passes through the driver.
When the change is not small against the state, reading everything once is cheaper: then the
collection is scanned, and Spark keeps the rows whose keys are asked for.

Where it runs: `rows_by_key` on the driver, `LookUp` on executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f

from noonmark.compute.arrangement import Keeper
from noonmark.compute.frame import ERROR, arrow_frame_schema, frame_schema, positional
from noonmark.compute.keyed import BEFORE
from noonmark.persist import task
from noonmark.persist.client import Client
from noonmark.persist.plan import Query, plan_read
from noonmark.persist.run import DIFF, TIME
from noonmark.persist.spark_read import frame_of, plan_at
from noonmark.persist.state import Collection
from noonmark.rows.arrow import arrow_type, from_array
from noonmark.rows.schema import Schema
from noonmark.rows.spark import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True)
class Place:
    """One collection at one time, for tasks that look rows up in it.

    Attributes:
        place: where the parts are.
        collection: with all its batches.
        seqno: of the state that the collection is of.
        as_of: the time.
        key: the names of the columns that values are given for.
    """

    place: task.Place
    collection: Collection
    seqno: int
    as_of: int
    key: tuple[str, ...]

    @classmethod
    def of(cls, client: Client, keeper: Keeper, as_of: int) -> Place:
        """The collection as it is known now."""
        return cls(
            task.Place(client.blob.url, client.config),
            client.state.collection(keeper.name),
            client.state.seqno,
            as_of,
            keeper.key,
        )

    def rows(self, keys: set[tuple[Any, ...]] | None) -> Iterator[pa.Table]:
        """Runs on executors: data columns and `_diff` of the rows with these keys (None: all)."""
        if keys is not None and not keys:
            return
        asked = None if keys is None else list(keys)
        plan = plan_read(self.seqno, self.collection, Query(self.as_of, keys=asked))
        yield from task.read(self.place, plan)

    def keys_of(self, batch: pa.RecordBatch, names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        """Runs on executors: the values of columns as the collection's key has them."""
        kinds = [self.collection.schema[name].type for name in self.key]
        values = [
            from_array(batch.column(name).cast(arrow_type(kind)), kind)
            for name, kind in zip(names, kinds, strict=True)
        ]
        return zip(*values, strict=True)


@dataclass(frozen=True)
class LookUp:
    """Runs on executors: keys in, old rows out."""

    place: Place
    schema: Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of all keys of one partition."""
        names = [f"k{at}" for at in range(len(self.place.key))]
        keys: set[tuple[Any, ...]] = set()
        for batch in batches:
            keys.update(self.place.keys_of(batch, names))
        schema = self.schema
        for table in self.place.rows(keys):
            before = pa.array([BEFORE] * table.num_rows, pa.int64())
            timed = table.append_column(TIME, before)
            made = positional(timed, schema)
            yield from made.cast(arrow_frame_schema(schema, timed=True)).to_batches()


def rows_by_key(
    spark: SparkSession,
    client: Client,
    keeper: Keeper,
    keys: DataFrame,
    as_of: int,
    *,
    small: bool,
) -> DataFrame:
    """The rows as of a time whose keys are among `keys` (columns k0 and on, as the need has them).

    The result may have rows of other keys too where that is cheaper.
    """
    schema = keeper.schema
    if not keeper.key:
        return _everything(spark, client, keeper, as_of)
    kinds = [spark_type(schema[name].type) for name in keeper.key]
    values: list[Column] = [
        f.col(f"k{part}").try_cast(kind) for part, kind in zip(keeper.order, kinds, strict=True)
    ]
    given = keys.select(*(value.alias(f"k{at}") for at, value in enumerate(values)))
    if small:
        place = Place.of(client, keeper, as_of)
        return given.mapInArrow(LookUp(place, schema), frame_schema(schema, timed=True))
    wanted = given.distinct()
    columns = [schema.index(name) for name in keeper.key]
    same = [f.col(f"c{i}").eqNullSafe(f.col(f"k{at}")) for at, i in enumerate(columns)]
    return _everything(spark, client, keeper, as_of).join(wanted, same, "left_semi")


def _everything(spark: SparkSession, client: Client, keeper: Keeper, as_of: int) -> DataFrame:
    """The whole collection as of a time, in the layout."""
    frame = frame_of(spark, client, plan_at(client, keeper.name, Query(as_of)))
    values = [f.col(f"`{name.replace('`', '``')}`") for name in keeper.schema.names]
    made = frame.select(
        *(value.alias(f"c{at}") for at, value in enumerate(values)),
        f.lit(None).cast("string").alias(ERROR),
        f.lit(BEFORE).cast("bigint").alias(TIME),
        f.lit(1).cast("bigint").alias(DIFF),
    )
    vars(made)["_noonmark_source"] = frame  # its parts are kept as long as the frame lives
    return made
