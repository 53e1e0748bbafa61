"""The data source "noonmark": ``spark.read`` and ``spark.readStream`` on a location.

    spark.read.format("noonmark").option("location", url).option("as_of", t).load("v")
    spark.readStream.format("noonmark").option("location", url).load("v")

The options are in `noonmark.persist.spark.target`. Rows are the relation's, each as often as it is
there. With ``changes`` they carry `_time` and `_diff`: of a batch without a range, the contents as
updates at their time.

A stream of plain rows is of a relation whose rows only come: where one goes, the stream fails and
says so. (Spark asks for the columns before it says whether it will stream; so the option is the
only thing that can say which of the two is meant.)

A stream's offset is a time: everything before it was delivered. Without `lower` a stream begins
with the contents at the collection's since, so that the sum of all that it gives up to a time is
the contents at that time. A microbatch is the updates over ``[start, end)``, which are the same
whenever they are read: a restart from a checkpoint loses nothing and repeats nothing.

A stream takes a hold, so that compaction keeps what it has not delivered yet; Spark's commits move
the hold on. It ends with its lease (`Config.hold_lease_ms`) when the stream does: a stream that
stays away for longer, or that holds nothing, may find its times compacted, and says so with
`BeforeSince`.

Equality, IN and ranges on columns are used to open fewer parts, and on the first key column to
read single pages; Spark evaluates every filter again. Spark pushes filters into sources in Python
only where `spark.sql.python.filterPushdown.enabled` says so; without it they are Spark's alone. It
never says which columns a query needs: the option ``columns``, or a schema that the reader is
given, reads those alone. A store that only one process can see (``memory:``) is refused.

Where it runs: `NoonmarkSource` and the readers in Python processes beside the driver; only `read`
on executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as ds

from noonmark.errors import ConfigError, UsageError
from noonmark.persist import task
from noonmark.persist.client import Client, Options, open_location
from noonmark.persist.codec import TIME_MAX
from noonmark.persist.hold import HoldHandle
from noonmark.persist.log.state import Collection
from noonmark.persist.part import run
from noonmark.persist.read.handle import plan_at
from noonmark.persist.read.plan import Plan, Query
from noonmark.persist.read.slices import slices
from noonmark.persist.spark.filters import narrowed
from noonmark.persist.spark.read import changes_query, opened
from noonmark.persist.spark.slices import frame_schema, read_slice
from noonmark.persist.spark.target import Target
from noonmark.persist.write import as_frontier
from noonmark.rows.shown import texts_for_numerals

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class NoonmarkSource(ds.DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        """What ``format(...)`` says."""
        return "noonmark"

    def schema(self) -> StructType:
        """The relation's newest columns, or those that are asked for."""
        target = Target.of(dict(self.options))
        with opened(target.location, target.consensus) as client:
            found = client.state.collection(target.name)
        for name in target.columns or ():
            if name not in found.schema:
                raise ConfigError(f'"{target.name}" has no column "{name}"', option="columns")
        query = Query(0, columns=target.columns)
        return frame_schema(found, query, updates=target.changes, shown=True)

    def reader(self, schema: StructType) -> BatchReader:
        """A reader of one time, or of a range of times."""
        return BatchReader(Target.of(dict(self.options)), tuple(schema.names))

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - Spark's name
        """A reader of changes."""
        target = Target.of(dict(self.options))
        if target.as_of is not None or target.upper is not None:
            raise ConfigError('a stream has no "as_of" and no "upper"', hint='Use "lower".')
        return StreamReader(target, tuple(schema.names))


class Slice(ds.InputPartition):
    """One task's work."""

    def __init__(self, place: task.TaskLocation, plan: Plan, as_updates_at: int | None) -> None:
        super().__init__(None)
        self.place = place
        self.plan = plan
        self.as_updates_at = as_updates_at


class PushFilters:
    """Takes the filters of a reader, where Spark pushes them, and is not there where it does not.

    Spark refuses a reader whose class overrides `pushFilters` unless a setting of the session is
    on. This one serves under both: it says that it is Spark's own method, and does ours.
    """

    __func__ = staticmethod(ds.DataSourceReader.pushFilters)

    def __init__(self) -> None:
        self.taken: tuple[Any, ...] = ()

    def __call__(self, filters: list[ds.Filter]) -> Iterable[ds.Filter]:
        """Note the filters; all of them are left for Spark to evaluate too."""
        self.taken = tuple(
            (type(each).__name__, vars(each)["attribute"], getattr(each, "value", None))
            for each in filters
            if len(getattr(each, "attribute", ())) == 1
        )
        return filters


class BatchReader(ds.DataSourceReader):
    """See the module. It is pickled with the filters that it was given."""

    def __init__(self, target: Target, names: tuple[str, ...]) -> None:
        self._target = target
        self._names = names
        self._filters = PushFilters()
        vars(self)["pushFilters"] = self._filters

    def partitions(self) -> Sequence[ds.InputPartition]:
        """Plan at the newest state; one partition per key range."""
        target = self._target
        with opened(target.location, target.consensus) as client:
            found = client.state.collection(target.name)
            query, at = self._query(found)
            self.check(client, query.as_of)
            query = narrowed(query, found, self._filters.taken)
            wanted = {*self._names, *query.where}
            data = tuple(name for name in found.schema.names if name in wanted)
            if query.after is None and 0 < len(data) < len(found.schema):
                query = replace(query, columns=data)
            plan = plan_at(client, target.name, query)
            return _partitions(client, plan, at)

    def check(self, client: Client, at: int) -> None:
        """Refuse a time at which the relation has no rows to give; for who knows more of it."""

    def _query(self, found: Collection) -> tuple[Query, int | None]:
        target = self._target
        if target.lower is not None or target.upper is not None:
            upper = latest(found) + 1 if target.upper is None else target.upper
            return changes_query(target.lower or 0, upper), None
        at = latest(found) if target.as_of is None else target.as_of
        return Query(at), (at if target.changes else None)

    def read(self, partition: ds.InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Runs on executors."""
        return _read(partition, self._names)


class StreamReader(ds.DataSourceStreamReader):
    """See the module. Lives as long as its stream, in a process beside the driver."""

    def __init__(self, target: Target, names: tuple[str, ...]) -> None:
        self._target = target
        self._names = names
        self._client: Client | None = None
        self._hold: HoldHandle | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Everything is still to be delivered: from `lower` on, or from the beginning."""
        return {"time": self._target.lower or 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: ARG002, N802
        """The upper."""
        client = self._open(start["time"])
        client.runtime.submit(client.journal.refresh()).result()
        return {"time": max(start["time"], latest(self._collection(client)) + 1)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[ds.InputPartition]:
        """Plan one microbatch."""
        if start["time"] == end["time"]:
            return []
        client = self._open(start["time"])
        found = self._collection(client)
        since = found.since.only()
        if start["time"] == 0 and self._target.lower is None and since:
            # The history before since is gone: the contents at since stand for it.
            first = min(since, end["time"] - 1)
            contents = _partitions(client, plan_at(client, found.name, Query(first)), first)
            later = changes_query(first + 1, end["time"])
            changes = plan_at(client, found.name, later)
            return [*contents, *_partitions(client, changes, None)]
        plan = plan_at(client, found.name, changes_query(start["time"], end["time"]))
        return _partitions(client, plan, None)

    def read(self, partition: ds.InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Runs on executors."""
        return _read(partition, self._names)

    def commit(self, end: dict[str, int]) -> None:
        """Everything before `end` is delivered: compaction may have it."""
        if self._hold is not None and self._client is not None and end["time"] > 0:
            moved = self._hold.downgrade(as_frontier(end["time"] - 1))
            self._client.runtime.submit(moved).result()

    def stop(self) -> None:
        """Release the hold and close."""
        if self._client is not None:
            self._client.stop()
            self._client = self._hold = None

    def _open(self, start: int) -> Client:
        """The client, opened at the first call: a reader is pickled before it is used."""
        if self._client is None:
            target = self._target
            options = Options(mode="polling" if target.hold else "independent")
            client = open_location(target.location, consensus=target.consensus, options=options)
            self._client = client
            if target.hold:
                frontier = as_frontier(start - 1) if start > 0 else None
                taken = client.acquire(self._collection(client).id, frontier)
                self._hold = client.runtime.submit(taken).result()
        return self._client

    def _collection(self, client: Client) -> Collection:
        return client.state.collection(self._target.name)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None, "_hold": None}


def latest(collection: Collection) -> int:
    """The latest complete time; the last of all for a collection that is complete for ever."""
    upper = collection.upper.only()
    return TIME_MAX if upper is None else upper - 1


def _partitions(client: Client, plan: Plan, at: int | None) -> list[ds.InputPartition]:
    place = task.TaskLocation(client.blob.url, client.config)
    pieces = slices(plan, client.config.part_rows_max)
    return [Slice(place, piece, at) for piece in pieces if piece.runs or piece.inline]


def _read(piece: ds.InputPartition | None, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """The rows of a slice under the schema that the stream or query began with."""
    if not isinstance(piece, Slice):
        return  # Spark makes one task of no partitions at all
    plan = piece.plan
    for table in _tables(piece):
        if run.DIFF in table.column_names and run.DIFF not in names:
            wanted = _arrivals(table, plan.collection.name).select(list(names))
        else:
            wanted = table.select(list(names))
        yield from texts_for_numerals(wanted, plan.collection.schema).to_batches()


def _tables(piece: Slice) -> Iterator[pa.Table]:
    """The rows of a slice: plain, updates, or contents as updates at one time."""
    if piece.as_updates_at is None:
        for batch in read_slice(piece.place, piece.plan):
            yield pa.Table.from_batches([batch])
        return
    for table in task.read(piece.place, piece.plan):
        times = pa.repeat(pa.scalar(piece.as_updates_at, pa.int64()), table.num_rows)
        yield table.append_column(run.TIME, times)


def _arrivals(table: pa.Table, name: str) -> pa.Table:
    """Updates as plain rows, where none goes."""
    if table.num_rows and pc.min(table.column(run.DIFF)).as_py() < 0:
        raise UsageError(
            f'rows of "{name}" go and change: a stream of plain rows cannot say that',
            hint='Use .option("changes", True), which gives the columns _time and _diff.',
        )
    return task.repeated(table, name)
