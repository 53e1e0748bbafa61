"""The data source "noonmark": ``spark.read`` and ``spark.readStream`` on a location.

    spark.read.format("noonmark").option("location", url).option("as_of", t).load("v")
    spark.readStream.format("noonmark").option("location", url).load("v")

| option | meaning |
|---|---|
| location | the URL of the location; the collection is what is loaded |
| consensus | the URL of its log, when that is not beside the blobs |
| as_of | a time, or ``latest``: plain rows, each as often as it is there |
| lower, upper | the updates over ``[lower, upper)``; each may be left out |
| hold | of a stream: ``false`` to hold nothing (see below) |

With `as_of` the rows are the collection's. Otherwise they carry `_time` and `_diff`, because Spark
asks for the columns before it says whether it will stream: a batch then has the contents at the
latest complete time as updates at that time, and a stream the changes.

A stream's offset is a time: everything before it was delivered. Without `lower` a stream begins
with the contents at the collection's since, so that the sum of all that it gives up to a time is
the contents at that time. A microbatch is the updates over ``[start, end)``, which are the same
whenever they are read: a restart from a checkpoint loses nothing and repeats nothing.

A stream takes a hold, so that compaction keeps what it has not delivered yet; Spark's commits move
the hold on. It ends with its lease (`Config.hold_lease_ms`) when the stream does: a stream that
stays away for longer, or that holds nothing, may find its times compacted, and says so with
`BeforeSince`.

Equality, IN and ranges on columns are used to open fewer parts, and on the first key column to
read single pages; Spark evaluates every filter again. A store that only one process can see
(``memory:``) is refused.

Where it runs: `NoonmarkSource` and the readers in Python processes beside the driver; only `read`
on executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import datasource as ds

from noonmark.errors import ConfigError
from noonmark.persist import run, task
from noonmark.persist.client import Client, Options, open_location
from noonmark.persist.codec import TIME_MAX
from noonmark.persist.hold import HoldHandle
from noonmark.persist.plan import Plan, Query
from noonmark.persist.slices import slices
from noonmark.persist.spark_filters import narrowed
from noonmark.persist.spark_read import changes_query, opened, plan_at
from noonmark.persist.spark_slices import frame_schema, read_slice
from noonmark.persist.state import Collection
from noonmark.persist.write import as_frontier
from noonmark.rows.shown import texts_for_numerals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

LATEST = "latest"


def register(spark: SparkSession) -> None:
    """Make the source known to a session; where the package is installed Spark finds it itself."""
    spark.dataSource.register(NoonmarkSource)


@dataclass(frozen=True)
class Target:
    """What the options say."""

    location: str
    consensus: str | None
    name: str
    as_of: int | str | None
    lower: int | None
    upper: int | None
    hold: bool

    @classmethod
    def of(cls, options: dict[str, str]) -> Target:
        """Parse, or `ConfigError`."""
        known = {name.lower(): value for name, value in options.items()}
        unknown = known.keys() - {
            "location", "consensus", "path", "as_of", "lower", "upper", "hold"
        }  # fmt: skip
        if unknown:
            raise ConfigError(f'unknown option "{min(unknown)}"', option=min(unknown))
        for name in ("location", "path"):
            if not known.get(name):
                raise ConfigError(
                    f'the option "{name}" is missing',
                    hint='Give .option("location", url) and .load("collection").',
                    option=name,
                )
        if known["location"].startswith("memory:"):
            raise ConfigError(
                "a location in memory cannot be read by other processes",
                hint="Use a path or an object store, or `snapshot_frame` with the client.",
            )
        as_of = LATEST if known.get("as_of") == LATEST else _time(known, "as_of")
        lower, upper = _time(known, "lower"), _time(known, "upper")
        if as_of is not None and (lower is not None or upper is not None):
            raise ConfigError('"as_of" is one time, "lower" and "upper" are a range: give one')
        hold = known.get("hold", "true").lower() != "false"
        place = (known["location"], known.get("consensus"), known["path"])
        return cls(*place, as_of, lower, upper, hold)


def _time(options: dict[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.isdigit():
        raise ConfigError(f'option "{name}" is not a time: "{text}"', option=name)
    return int(text)


class NoonmarkSource(ds.DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        """What ``format(...)`` says."""
        return "noonmark"

    def schema(self) -> StructType:
        """The collection's newest schema, with `_time` and `_diff` unless `as_of` is given."""
        target = Target.of(dict(self.options))
        with opened(target.location, target.consensus) as client:
            found = client.state.collection(target.name)
        return frame_schema(found, Query(0), updates=target.as_of is None, shown=True)

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

    def __init__(self, place: task.Place, plan: Plan, as_updates_at: int | None) -> None:
        super().__init__(None)
        self.place = place
        self.plan = plan
        self.as_updates_at = as_updates_at


class BatchReader(ds.DataSourceReader):
    """See the module. It is pickled with the filters that it was given."""

    def __init__(self, target: Target, names: tuple[str, ...]) -> None:
        self._target = target
        self._names = names
        self._filters: tuple[Any, ...] = ()

    def pushFilters(self, filters: list[ds.Filter]) -> Iterable[ds.Filter]:  # noqa: N802
        """Note the filters; all of them are left for Spark to evaluate too."""
        self._filters = tuple(
            (type(each).__name__, vars(each)["attribute"], getattr(each, "value", None))
            for each in filters
            if len(getattr(each, "attribute", ())) == 1
        )
        return filters

    def partitions(self) -> Sequence[ds.InputPartition]:
        """Plan at the newest state; one partition per key range."""
        target = self._target
        with opened(target.location, target.consensus) as client:
            found = client.state.collection(target.name)
            query, at = self._query(found)
            query = narrowed(query, found, self._filters)
            plan = plan_at(client, target.name, query)
            return _partitions(client, plan, at)

    def _query(self, found: Collection) -> tuple[Query, int | None]:
        target = self._target
        if target.lower is not None or target.upper is not None:
            upper = latest(found) + 1 if target.upper is None else target.upper
            return changes_query(target.lower or 0, upper), None
        if target.as_of is None or target.as_of == LATEST:
            at = latest(found)
            return Query(at), (at if target.as_of is None else None)
        return Query(int(target.as_of)), None

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
    place = task.Place(client.blob.url, client.config)
    pieces = slices(plan, client.config.part_rows_max)
    return [Slice(place, piece, at) for piece in pieces if piece.runs or piece.inline]


def _read(piece: ds.InputPartition | None, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """The rows of a slice under the schema that the stream or query began with."""
    if not isinstance(piece, Slice):
        return  # Spark makes one task of no partitions at all
    schema = piece.plan.collection.schema
    if piece.as_updates_at is None:
        for batch in read_slice(piece.place, piece.plan):
            table = pa.Table.from_batches([batch.select(list(names))])
            yield from texts_for_numerals(table, schema).to_batches()
        return
    for table in task.read(piece.place, piece.plan):
        times = pa.repeat(pa.scalar(piece.as_updates_at, pa.int64()), table.num_rows)
        wanted = table.append_column(run.TIME, times).select(list(names))
        yield from texts_for_numerals(wanted, schema).to_batches()
