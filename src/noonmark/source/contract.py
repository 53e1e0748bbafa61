"""What a source is: outputs, an order of offsets, and records that can be read again.

A source is a description. It keeps no progress: what was read is known from the remap and the
uppers of its collections, all in persist. Two equal sources are one source; a source pickles, and
what it opens (connections, files) it opens where it runs and closes again.

Offsets. A record stands at a point (partition, offset) of the order `noonmark.tvc.Partitioned`;
frontiers come from `partition_frontier`, so that a partition may appear at any time. `EMPTY` means:
finished, nothing will ever follow. All records of one transaction have one offset. Partitions that
are numbers may say which incarnation of upstream they belong to (`PARTITIONS_MAX`): one whose order
began anew has other partitions, so that offsets of the two are never compared.

Law (complete): when `latest` returned F, every record at a point not in F exists and can be read,
and no transaction lies on both sides of F. What upstream may still lose in a crash is not complete.
Law (monotone): `latest(clock, known)` is at or beyond `known`.
Law (cover): the splits of `plan(lower, upper)` hold each record at a point in `lower` and not in
`upper` exactly once, and no other. Records of one offset may lie in several splits, those of a raw
output in one only: the last one of a key counts, so their order within the offset does.
Law (replay): reading a split again gives the same records, until their offsets are released. For
typed outputs "the same" is the sum of diffs by row and offset: extra updates that cancel are none.
Law (release): after `release(F)` nothing at a point that is not in F is read again, by anyone.

Records are Arrow batches. A batch has records of one output, in `_output`; `_partition` is an int64
or a string; `_offset` never descends among the batches of one split and output. Then follow

- raw outputs: `key` and `value`, bytes or NULL (a NULL value is a tombstone), and where the source
  has them `timestamp` and `headers`: a format decodes them, an envelope makes updates of them;
- typed outputs: the columns of the output's schema, in storage types, and `_diff`; a raw output's
  snapshot may come so too, where no other record of its keys is read with it (`HasSnapshot`);
- errors: `key`, `value`, `_reason` and `_ends`; `_output` is -1 when no single output is meant;
- truncations: nothing more (`truncation_batch`). Whatever the output held before this record, of
  earlier offsets and of the same, is gone at its offset.

Law (truncation): of an output that is truncated in a range, the records that lie behind the first
truncation are in the same split as it is, in their order; all others lie before it.

Errors. `SourceStalled` is transient: it says nothing about the data; the caller waits and calls
again. Everything definite is data, so that every reader sees the same at every time: `read` yields
an error batch, or raises `SourceBroken`, which stands for one: what it yielded before counts, the
rest of the split is replaced by that error. One partition's error never keeps another from being
read. An error that `_ends` its output (or with -1 all of them) says more than that a record cannot
be read: from its offset on the output is not what upstream has, so its collection is in that error
and has no rows (`noonmark.persist.log.definite`). A `SourceBroken` says so with the field `ends`.

Where it runs: `latest`, `plan` and `release` on the driver; `read` on executors.

How upstreams that have offsets of their own fit:

- Kafka. Partitions are Kafka's own, offsets too; holes (compaction, control records, aborted
  transactions) are offsets without a record. `latest` is the last stable offset of each partition;
  the high watermark, which its leader knows, has all that was acknowledged (`HasAcknowledged`). A
  transaction over several partitions is whole within each
  partition, and in all of them when one probe saw it: all that Kafka itself can say. A tombstone
  is a NULL value. Records that retention removed before they were read are an error batch at the
  first offset that is lost. `release` commits the offsets of the consumer group.
- PostgreSQL. One partition, 0; the offset is the commit's end LSN, so a transaction over several
  tables is never split. The snapshot is the range up to a slot's consistent point c, every row
  at offset c, one split per table and range of pages (`Split.piece`). It cannot be read again once
  its session is gone, so it is bound in the commit that stores it (`HasSnapshot`); until then
  another one will do. The stream is one split. TRUNCATE is a truncation. `release` confirms an LSN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from noonmark.clock import Clock
from noonmark.errors import InvalidValue
from noonmark.rows.arrow import arrow_schema
from noonmark.rows.schema import Schema
from noonmark.tvc import Antichain, Partition, Partitioned, known_partitions, partition_frontier

Frontier = Antichain[Partitioned]

START: Frontier = partition_frontier({})
"""Nothing is complete, and no partition is known."""

PARTITION, OFFSET, OUTPUT = "_partition", "_offset", "_output"
DIFF, REASON, ENDS = "_diff", "_reason", "_ends"
NO_OUTPUT = -1

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_METADATA = {"timestamp": pa.timestamp("us", "UTC"), "headers": HEADERS}

ERRORS_SCHEMA = Schema.of(
    output="text",
    partition="text",
    offset="bigint not null",
    key="text",
    value="bytea",
    reason="text not null",
)
"""The collection ``<source>_errors``; `key` is the record's key as a record literal."""

PartitionKind = Literal["number", "name"]

PARTITIONS_MAX = 1 << 32
"""Numbers of partitions are nearer to zero; how often this lies in one is its incarnation."""


@dataclass(frozen=True, slots=True)
class Output:
    """One collection that a source feeds. Without a schema its records are raw."""

    name: str
    schema: Schema | None = None
    key: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.schema is not None:
            for name in self.key:
                self.schema.index(name)
        if unknown := set(self.metadata) - set(_METADATA):
            raise InvalidValue(f"no record has {', '.join(sorted(unknown))}")


@dataclass(frozen=True, slots=True)
class Split:
    """What one task reads: the points of one partition in [lower, upper), or a piece of them.

    `piece` is the source's own; `weight` is the relative cost, so that cheap splits share a task.
    """

    partition: Partition
    lower: int
    upper: int
    piece: tuple[int | str, ...] = ()
    weight: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.lower < self.upper:
            raise InvalidValue(f"[{self.lower}, {self.upper}) is no range of offsets")


class Source(Protocol):
    """The contract in the module's docstring; say there what a new source needs."""

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The collections, under one remap: `_output` is the place in this tuple."""

    @property
    def partition_kind(self) -> PartitionKind:
        """Whether partitions are numbers or names."""

    @property
    def offset_unit(self) -> int:
        """Users see ``offset // offset_unit``: the bytes or rows that a fine offset stands for."""

    @property
    def latest_is_linearizable(self) -> bool:
        """Whether `latest` sees every write that was acknowledged upstream before the call."""

    @property
    def releases(self) -> str | None:
        """None when upstream may forget what was released; else why not, in a sentence."""

    async def latest(self, clock: Clock, known: Frontier = START) -> Frontier:
        """The upper of the source now.

        `known` is what the remap has bound last. Most sources ignore it; one that cannot trust its
        upstream to only grow compares the two, and binds a partition that broke its promise to an
        offset that says so.
        """

    def plan(self, lower: Frontier, upper: Frontier) -> list[Split]:
        """The splits between two frontiers. Pure: it asks nobody."""

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """The records of a split, in order of offset. On executors."""

    async def release(self, frontier: Frontier) -> None:
        """Tell upstream that nothing outside of `frontier` is needed any more. Idempotent."""


@runtime_checkable
class HasSnapshot(Protocol):
    """A source that begins with what upstream has already, before any change.

    A snapshot can be read only as long as upstream keeps it, which no restart survives. So its
    binding is made durable in the same commit as its rows, and not before: what was lost on the way
    was never bound, and the next snapshot begins anew, for all outputs at one point.
    """

    async def snapshot_frontier(self, clock: Clock, probe: Frontier) -> Frontier | None:
        """Where the snapshot ends that `plan` reads from now on; one is taken where none is held.

        It is read alone, so a row of it needs no envelope: nothing was there before it, and nothing
        replaces it. None when `probe`, which `latest` has just answered, says that it is too late.
        """

    async def give_up_snapshot(self) -> None:
        """It could not be read: nobody upstream may be kept waiting for it."""


@runtime_checkable
class HasAcknowledged(Protocol):
    """A source that may have acknowledged more than it lets anybody read yet.

    Its `latest` is not linearizable by itself: a read that must see everything waits until what
    `acknowledged` says is bound.
    """

    async def acknowledged(self, known: Frontier) -> Frontier:
        """At or beyond every record that was acknowledged before the call; see `Source.latest`."""


@runtime_checkable
class HasArrivals(Protocol):
    """A source that hears of records as they come: nobody needs to ask it at short intervals.

    Law (arrivals): `arrived` says True soon after upstream lets a record be read that is not below
    `known`. It may say True though there is none; and of what moves a frontier without a record it
    may not hear, so `latest` is asked from time to time.
    """

    def arrived(self, known: Frontier, seconds: float) -> bool:
        """Whether there is a record beyond what is bound; waits for one so long. Blocks.

        Called on the driver, between ticks, in a thread that reads nothing.
        """

    def hush(self) -> None:
        """Nobody listens any more, until `arrived` is called again: hold nothing for that."""


@runtime_checkable
class HasEnds(Protocol):
    """A source that binds what ends its outputs, so that it has a time."""

    def ended(self, frontier: Frontier) -> Mapping[int, str]:
        """The outputs that have ended once `frontier` is bound, and why; `NO_OUTPUT`: all. Pure."""


@runtime_checkable
class HasPeer(Protocol):
    """A source that asks somebody outside, who may not answer."""

    def leave(self) -> Future[Any]:
        """Ask nothing any more, and wait for no answer: whoever does gets `SourceStalled`.

        What the process holds of upstream is let go when what is under way has come back; then the
        future is done. What upstream has of ours stays.
        """


@runtime_checkable
class HasNews(Protocol):
    """A source whose upstream has more than is read of it."""

    def news(self) -> Mapping[int, str]:
        """What the last probe found that an output could have: a sentence for each."""


@runtime_checkable
class HasIncarnations(Protocol):
    """A source that may be read anew, beside what was bound before."""

    def is_current(self, partition: Partition) -> bool:
        """Whether records of a partition are read now: it is no end, nor of what was before."""


def shown_partition(partition: Partition) -> Partition:
    """A partition as users see it: without its incarnation."""
    if isinstance(partition, str):
        return partition
    number = abs(partition) % PARTITIONS_MAX
    return number if partition >= 0 else -number


def shown_partitions(partitions: Any) -> Any:
    """`shown_partition` of an array."""
    if not pa.types.is_integer(partitions.type):
        return partitions
    size = pa.scalar(PARTITIONS_MAX, pa.int64())
    return pc.subtract(partitions, pc.multiply(pc.divide(partitions, size), size))


def ranges(
    lower: Frontier, upper: Frontier, end: Mapping[Partition, int] | None = None
) -> list[tuple[Partition, int, int]]:
    """The offsets of each partition between two frontiers: (partition, from, to), none empty.

    An empty `upper` means to the end, which only the source knows: it says so in `end`.
    """
    if lower.is_empty():
        return []
    below = known_partitions(lower)
    above = dict(end or {}) if upper.is_empty() else known_partitions(upper)
    spans = ((p, below.get(p, 0), offset) for p, offset in above.items())
    return [(p, start, stop) for p, start, stop in spans if start < stop]


def record_schema(source: Source, number: int) -> pa.Schema:
    """The Arrow schema of the records of one output, or of errors for `NO_OUTPUT`."""
    if number == NO_OUTPUT:
        return error_schema(source.partition_kind)
    output = source.outputs[number]
    fields = _point_fields(source.partition_kind)
    if output.schema is not None:
        return pa.schema([*fields, (DIFF, pa.int64()), *arrow_schema(output.schema)])
    metadata = [(name, _METADATA[name]) for name in output.metadata]
    return pa.schema([*fields, ("key", pa.binary()), ("value", pa.binary()), *metadata])


def error_schema(kind: PartitionKind) -> pa.Schema:
    """The Arrow schema of error records."""
    fields = [("key", pa.string()), ("value", pa.binary()), (REASON, pa.string())]
    fields.append((ENDS, pa.bool_()))
    return pa.schema([*_point_fields(kind), *fields])


def _point_fields(kind: PartitionKind) -> list[tuple[str, pa.DataType]]:
    partition = pa.int64() if kind == "number" else pa.string()
    return [(PARTITION, partition), (OFFSET, pa.int64()), (OUTPUT, pa.int32())]


def is_error(batch: pa.RecordBatch) -> bool:
    """Whether the batch has errors instead of records."""
    return REASON in batch.schema.names


def is_truncation(batch: pa.RecordBatch) -> bool:
    """Whether the batch says that its output was emptied."""
    names: list[str] = batch.schema.names
    return names == [PARTITION, OFFSET, OUTPUT]


def batch_output(batch: pa.RecordBatch) -> int:
    """The number of the one output that the records of a batch belong to."""
    return int(batch.column(OUTPUT)[0].as_py()) if batch.num_rows else NO_OUTPUT


def points(kind: PartitionKind, partition: Partition, offsets: Any, output: int) -> list[pa.Array]:
    """The first three columns of a batch from one partition; `offsets` is an int64 array."""
    array = offsets if isinstance(offsets, pa.Array) else pa.array(offsets, pa.int64())
    name = pa.scalar(partition, pa.int64() if kind == "number" else pa.string())
    count = len(array)
    return [pa.repeat(name, count), array, pa.repeat(pa.scalar(output, pa.int32()), count)]


def truncation_batch(
    kind: PartitionKind, partition: Partition, offset: int, output: int
) -> pa.RecordBatch:
    """A truncation of one output."""
    arrays = points(kind, partition, [offset], output)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(_point_fields(kind)))


def error_batch(
    kind: PartitionKind,
    partition: Partition,
    errors: Iterable[tuple[int, str | None, bytes | None, str]],
    output: int = NO_OUTPUT,
    *,
    ends: bool = False,
) -> pa.RecordBatch:
    """A batch of errors (offset, key, value, reason) of one partition; see the module of `ends`."""
    rows = list(errors)
    offsets, keys, values, reasons = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = [
        *points(kind, partition, pa.array(offsets, pa.int64()), output),
        pa.array(keys, pa.string()),
        pa.array(values, pa.binary()),
        pa.array(reasons, pa.string()),
        pa.repeat(pa.scalar(ends), len(rows)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=error_schema(kind))
