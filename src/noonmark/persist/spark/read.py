"""Reading with Spark: a collection at a time, and its changes, as DataFrames.

The driver plans, by the statistics of the state; executors read. The way depends on the plan:

    nothing retracted    Spark's own Parquet reader scans the parts; beside it, in the same job,
                         each part is read once more and compared with its checksum
    something retracted  one task per key range merges the runs in that range, with the kernel of
                         the in-process reader: so the two agree on when rows are the same
                         (Spark's GROUP BY takes -0.0 for 0.0)

Tried and left out: scanning the rows of untouched keys with Spark and looking up the touched ones.
At 2 M rows and 1,000 touched keys it was no faster than merging.

Why the checksum of a scan is a pass of its own: Spark verifies the bodies of pages (their CRC), but
neither their headers nor the footer, where a flipped bit could give other rows. The pass is part of
the DataFrame: whoever runs it, however late, runs the check, and the job fails. It costs one
sequential read and a Python task: 0.1 to 0.3 s for 5 M rows in 25 MB on two busy cores, beside
1.7 s for a scan of all columns.

A DataFrame is lazy: the parts that it names are kept from garbage collection for as long as the
object that was returned lives, in the process of the writer; elsewhere for
`Config.garbage_grace_ms`. A part that is gone gives `MissingObject`: make the frame again.

A store that only this process can see (``memory:``) is read here, and the rows travel in the plan.

Where it runs: driver, except for the callables that say otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from noonmark.errors import UsageError
from noonmark.persist.client import Client, Options, open_location
from noonmark.persist.part.part import Part
from noonmark.persist.read.handle import plan_at
from noonmark.persist.read.plan import Plan, Query, Range
from noonmark.persist.read.updates import only_adds
from noonmark.persist.spark.scan import inline_tables, is_scannable, scan_frame
from noonmark.persist.spark.slices import finish, local_frame, merge_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def snapshot_frame(
    spark: SparkSession,
    location: Client | str | os.PathLike[str],
    name: str,
    as_of: int,
    *,
    columns: Iterable[str] | None = None,
    where: Mapping[str, Range] | None = None,
) -> DataFrame:
    """The contents of a collection at a time: each row as often as it is there.

    Args:
        spark: the session to read with.
        location: a client, or the URL of a location.
        name: of the collection.
        as_of: the time; it must be complete.
        columns: the columns to return; all by default.
        where: inclusive ranges by column, None for an open end.

    Raises:
        NotYetComplete: the time is still open.
        BeforeSince: its history is gone.
    """
    query = Query(
        as_of, columns=None if columns is None else tuple(columns), where=dict(where or {})
    )
    with opened(location) as client:
        return frame_of(spark, client, plan_at(client, name, query))


def changes_frame(
    spark: SparkSession,
    location: Client | str | os.PathLike[str],
    name: str,
    lower: int,
    upper: int,
) -> DataFrame:
    """The updates of a collection at times ``lower <= t < upper``, no two of one row and time.

    Raises:
        NotYetComplete: some of the times are still open.
        BeforeSince: the times before `lower` are not told apart from it any more.
    """
    with opened(location) as client:
        return frame_of(spark, client, plan_at(client, name, changes_query(lower, upper)))


def changes_query(lower: int, upper: int, *, despite_error: bool = False) -> Query:
    """The query for the updates over ``[lower, upper)``; `despite_error` as in `Query`."""
    if not 0 <= lower <= upper:
        raise UsageError(f"[{lower}, {upper}) is not a range of times", lower=lower, upper=upper)
    return Query(as_of=upper - 1, after=lower - 1, despite_error=despite_error)


@contextmanager
def opened(
    location: Client | str | os.PathLike[str], consensus: str | None = None
) -> Iterator[Client]:
    """The client, or one for the length of the block that writes nothing whatsoever."""
    if isinstance(location, Client):
        yield location
        return
    client = open_location(location, consensus=consensus, options=Options(mode="independent"))
    try:
        yield client
    finally:
        client.stop()


def frame_of(
    spark: SparkSession, client: Client, plan: Plan, checks: list[Part] | None = None
) -> DataFrame:
    """The rows of a plan: plain rows, or updates when the plan is of changes.

    Args:
        spark: the session to read with.
        client: of the location.
        plan: what to read.
        checks: where to put the parts that the frame does not compare with their checksums, for
            who sees to that in the same job (`checked`); None for a frame that does it itself.
    """
    if client.blob.url.startswith("memory:"):
        tables = list(client.iterate(client.reader.contents(plan)))
        frame = local_frame(spark, plan, [finish(table, plan) for table in tables])
    elif only_adds(plan, inline := inline_tables(plan)) and is_scannable(spark, client, plan):
        frame = scan_frame(spark, client, plan, inline, checks)
    else:
        frame = merge_frame(spark, client, plan)
    vars(frame)["_noonmark_plan"] = plan  # kept, and its parts with it, as long as the frame
    return frame
