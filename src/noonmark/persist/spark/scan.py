"""Scans by Spark's own Parquet reader, each part compared with its checksum in the same job.

Law: the rows of a scan are those of the plan's parts and inline batches up to its time. It is made
only of a plan that retracts nothing.

Where it runs: driver, except for what says otherwise. `noonmark.persist.spark.read` says why.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark import inheritable_thread_target
from pyspark.sql import functions as f

from noonmark.persist import task
from noonmark.persist.client import Client
from noonmark.persist.part import run
from noonmark.persist.part.part import Part
from noonmark.persist.read.plan import Plan, Query, Range
from noonmark.persist.read.updates import inline_table, narrow, shape
from noonmark.persist.spark.errors import typed_errors
from noonmark.persist.spark.slices import finish, frame_schema, local_frame
from noonmark.rows import types as t

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: What a scan is of: the parts, and the schema that they are read with.
Scan: TypeAlias = tuple[tuple[str, ...], str]
#: How many of them a session remembers.
_SCANS_MAX = 64

#: Without these Spark shifts old dates to the Julian calendar; with the last it checks page bodies.
_SCAN_OPTIONS = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "mergeSchema": "false",
    "parquet.page.verify-checksum.enabled": "true",
}
#: Whether the Spark of an application can open the URLs of a scheme.
_FILE_SYSTEMS: dict[tuple[str, str], bool] = {}
#: Characters that Spark takes for a pattern in a path.
_PATTERN = frozenset("{}[]*?\\,")
_LITERAL_TYPES = (t.Boolean, t.SmallInt, t.Integer, t.BigInt, t.Real, t.Double, t.Text, t.Varchar)


def is_scannable(spark: SparkSession, client: Client, plan: Plan) -> bool:
    """Whether Spark's reader can be asked for exactly this."""
    names = plan.collection.schema.names
    urls = [client.blob.native_url(part.key) for part in plan.parts[:1]]
    return (
        all(url is not None and not _PATTERN & set(unquote(url)) for url in urls)
        and all(_has_file_system(spark, urlsplit(url).scheme) for url in urls if url is not None)
        and len({name.lower() for name in names}) == len(names)
        and all(
            isinstance(plan.collection.schema[name].type, _LITERAL_TYPES)
            for name in plan.query.where
        )
    )


def _has_file_system(spark: SparkSession, scheme: str) -> bool:
    """Whether this Spark brings what reads such URLs: object stores need a jar that it may lack."""
    from py4j.protocol import Py4JJavaError  # loads much, and is needed once a session

    known = (spark.sparkContext.applicationId, scheme)
    if known not in _FILE_SYSTEMS:
        jvm = spark.sparkContext._jvm
        assert jvm is not None, "a session that runs has a JVM"
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        try:
            jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme or "file", hadoop)
        except Py4JJavaError:
            _FILE_SYSTEMS[known] = False
        else:
            _FILE_SYSTEMS[known] = True
    return _FILE_SYSTEMS[known]


def inline_tables(plan: Plan) -> list[pa.Table]:
    """The updates of the plan's inline batches, narrowed to what it asks for."""
    tables = (narrow(inline_table(plan.collection, batch), plan) for batch in plan.inline)
    return [table for table in tables if table.num_rows]


def scan_frame(
    spark: SparkSession,
    client: Client,
    plan: Plan,
    inline: list[pa.Table],
    checks: list[Part] | None = None,
) -> DataFrame:
    """The rows of a plan that retracts nothing; `inline` is its `inline_tables`.

    The parts are compared with their checksums, or added to `checks` for who sees to that.
    """
    schema = frame_schema(plan.collection, plan.query, updates=False)
    frames = []
    if checks is not None:
        checks += plan.parts
    elif plan.parts:
        # First in the union: a query that stops at its first rows has run the check by then.
        frames.append(checked(spark, client, plan.parts, schema))
    single = [part for part in plan.parts if part.diff_sum == part.rows]
    several = [part for part in plan.parts if part.diff_sum != part.rows]
    for parts in (single, several):
        if parts:
            frames.append(_scan_parts(spark, client, plan, parts))
    if inline or not frames:
        tables = [finish(shape(table, plan), plan) for table in inline]
        frames.append(local_frame(spark, plan, tables))
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.unionAll(other)
    return frame


def checked(
    spark: SparkSession, client: Client, parts: Sequence[Part], schema: StructType | str
) -> DataFrame:
    """No rows, of some schema: to run it is to compare the parts with their checksums."""
    place = task.TaskLocation(client.blob.url, client.config)
    single = {part.key: part for part in parts}
    groups = _groups(list(single.values()), spark.sparkContext.defaultParallelism)
    check = VerifyParts(place, tuple(groups))
    return spark.range(0, len(groups), 1, len(groups)).mapInArrow(check, schema)


@contextmanager
def checked_beside(spark: SparkSession, client: Client, parts: Sequence[Part]) -> Iterator[None]:
    """Compare parts with their checksums in a job of its own, beside what the block does.

    It runs while Spark plans the rest. What the block made counts only once its end is passed:
    there the error of a part that is not what was written is raised, instead of the block's own.
    """
    if not parts:
        yield
        return
    check, failures = checked(spark, client, parts, "nothing int"), []

    def run() -> None:
        try:
            with typed_errors():
                check.collect()
        except BaseException as error:
            failures.append(error)

    work = inheritable_thread_target(spark)(run)
    thread = Thread(target=work, name="noonmark-check", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        if failures:
            raise failures[0]


def _scan_parts(spark: SparkSession, client: Client, plan: Plan, parts: list[Part]) -> DataFrame:
    """Parts without retractions that all repeat rows, or all do not."""
    schema = frame_schema(plan.collection, plan.query, updates=False)
    # With all columns: by how many of them are selected Spark guesses how much there is to read.
    stored = frame_schema(plan.collection, Query(plan.query.as_of), updates=True)
    urls = tuple(unquote(client.blob.native_url(part.key) or "") for part in parts)
    frame = _opened(spark, urls, stored)
    if any(part.time_max > plan.query.as_of for part in parts):
        frame = frame.where(f.col(run.TIME) <= plan.query.as_of)
    for name, bounds in plan.query.where.items():
        frame = frame.where(_in_range(name, bounds, plan.collection.schema[name].type))
    columns = [f.col(_quoted(field.name)) for field in schema.fields]
    if any(part.diff_sum != part.rows for part in parts):
        copies = f.explode(f.sequence(f.lit(1).cast("bigint"), f.col(run.DIFF)))
        frame = frame.select(*columns, copies.alias(run.DIFF)).drop(run.DIFF)
    return frame.select(*columns)


def _opened(spark: SparkSession, urls: tuple[str, ...], schema: StructType) -> DataFrame:
    """Parts as they are stored. They never change, and to look at them again takes 10 ms."""
    # With the session, which the frames belong to: they go when it goes.
    known: OrderedDict[Scan, DataFrame] = vars(spark).setdefault("_noonmark_scans", OrderedDict())
    name = (urls, schema.json())
    with typed_errors():
        found = known.pop(name, None) or (
            spark.read.schema(schema).options(**_SCAN_OPTIONS).parquet(*urls)
        )
    known[name] = found
    while len(known) > _SCANS_MAX:
        known.popitem(last=False)
    return found


def _in_range(name: str, bounds: Range, kind: t.SqlType) -> Column:
    """The rows inside both ends; NaN is inside no range, as in the in-process reader."""
    column, (low, high) = f.col(_quoted(name)), bounds
    inside = f.lit(True)
    if low is not None:
        inside = inside & (column >= f.lit(low))
    if high is not None:
        inside = inside & (column <= f.lit(high))
    if isinstance(kind, t.Real | t.Double) and (low is not None or high is not None):
        inside = inside & ~f.isnan(column)
    return inside


def _quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def _groups(parts: list[Part], count: int) -> list[tuple[Part, ...]]:
    """The parts in at most `count` groups of about the same size."""
    groups: list[list[Part]] = [[] for _ in range(min(count, len(parts)))]
    sizes = [0] * len(groups)
    for part in sorted(parts, key=lambda part: -part.bytes):
        at = sizes.index(min(sizes))
        groups[at].append(part)
        sizes[at] += part.bytes
    return [tuple(group) for group in groups]


@dataclass(frozen=True)
class VerifyParts:
    """Runs on executors: compares whole parts with their checksums; gives no rows."""

    place: task.TaskLocation
    groups: tuple[tuple[Part, ...], ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Verify the groups whose numbers come in."""
        task.settle()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                task.verify(self.place, self.groups[number])
        return iter(())
