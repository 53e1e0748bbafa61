"""FROM FILES: a folder, glob or prefix whose files grow in number and in length.

A partition is a file, by its name relative to the base of the pattern. Offsets are those of
`noonmark.source.impl.fingerprint`: bytes of complete lines, or rows of complete Parquet files.

What is a definite error of one file, and of no other:

- it became shorter, or what was read of it is not there any more (latest sees it: the file is bound
  to an offset that says so, and never read again);
- it changed or went away between the binding and the reading: what was bound is lost;
- it is compressed (``.gz`` and the like): its bytes are not lines;
- a Parquet file that is not whole after `settle_ms`, or whose rows do not fit the schema.

A file that goes away after it was read is no error; what it said stays true.

Where it runs: as `noonmark.source.contract` says; `latest` looks at files by its peer.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from noonmark.clock import Clock
from noonmark.errors import SourceBroken
from noonmark.peer import Peer
from noonmark.source.contract import (
    START,
    Frontier,
    Output,
    PartitionKind,
    Split,
    error_batch,
    points,
    ranges,
    record_schema,
)
from noonmark.source.impl.file_forms import Form, Lines, Parquet, Piece
from noonmark.source.impl.file_guard import Guard
from noonmark.source.impl.file_store import (
    ANYTHING,
    Entry,
    FileReader,
    FileStore,
    LocalFiles,
    open_store,
)
from noonmark.source.impl.fingerprint import (
    POSITION_MAX,
    UNIT,
    Broken,
    broken_offset,
    explain,
    position_of,
    record_offsets,
    why_broken,
)
from noonmark.tvc import Partition, known_partitions, partition_frontier

_COMPRESSED = (".bz2", ".gz", ".lz4", ".snappy", ".xz", ".zip", ".zst")


def of_lines(
    url: str, *, name: str = "files", skip_blank: bool = True, guard: Guard = ANYTHING
) -> Files:
    """Files of lines. An object is put whole, so its end ends a line; a file may still grow."""
    whole = not open_store(url, guard).appends
    return Files(url, Lines(unterminated=whole, skip_blank=skip_blank), name, guard=guard)


@dataclass(frozen=True)
class Files:
    """See the module. `form` says what is in a file, `guard` which files may be read."""

    url: str
    form: Form = field(default_factory=Lines)
    name: str = "files"
    settle_ms: int = 60_000
    guard: Guard = ANYTHING
    # What `latest` found in a version of a file, so that an unchanged file is not opened again.
    _seen: dict[str, tuple[Entry, int, int]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    # Who has them may be far away.
    _peer: Peer = field(
        default_factory=lambda: Peer("source", "of files"), init=False, repr=False, compare=False
    )

    def check(self) -> None:
        """Refuse what may not be read, as far as that is known without reading it.

        Raises:
            RefusedHere: the pattern is outside of what `guard` lets one read.
        """
        store = open_store(self.url, self.guard)
        if isinstance(store, LocalFiles):
            store.check()

    def __getstate__(self) -> dict[str, Any]:
        lasting = ("url", "form", "name", "settle_ms", "guard")
        return {name: self.__dict__[name] for name in lasting}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _seen={}, _peer=Peer("source", "of files"))

    def leave(self) -> Future[Any]:
        """See `HasPeer.leave`."""
        return self._peer.leave()

    @property
    def outputs(self) -> tuple[Output, ...]:
        """See `Source.outputs`."""
        return (Output(self.name, self.form.schema if isinstance(self.form, Parquet) else None),)

    @property
    def partition_kind(self) -> PartitionKind:
        """See `Source.partition_kind`."""
        return "name"

    @property
    def offset_unit(self) -> int:
        """See `Source.offset_unit`."""
        return UNIT

    @property
    def latest_is_linearizable(self) -> bool:
        """A listing sees every file that was complete before, on disks and in object stores."""
        return True

    @property
    def releases(self) -> str | None:
        """See `Source.releases`."""
        return "Files are kept: whoever wrote them decides when they may go."

    async def release(self, frontier: Frontier) -> None:
        """Nothing to do: see `releases`."""

    async def latest(self, clock: Clock, known: Frontier = START) -> Frontier:
        """See `Source.latest`."""
        if known.is_empty():
            return known
        offsets = known_partitions(known)
        now_ms = clock.now_ms()
        looking = partial(self._look, offsets, now_ms)
        found = await self._peer.call(looking)
        return partition_frontier({**offsets, **found})

    def _look(self, known: dict[Partition, int], now_ms: int) -> dict[Partition, int]:
        store = open_store(self.url, self.guard)
        found: dict[Partition, int] = {}
        for entry in store.list():
            offset = known.get(entry.name, 0)
            cached = self._seen.get(entry.name)
            if cached is not None and cached[:2] == (entry, offset):
                found[entry.name] = cached[2]
                continue
            reached = self._reached(store, entry, offset, now_ms)
            if reached is not None:
                found[entry.name] = reached
                # Asked again, the source will know what it just said.
                self._seen[entry.name] = (entry, reached, reached)
        return found

    def _reached(self, store: FileStore, entry: Entry, known: int, now_ms: int) -> int | None:
        """How far a file is complete; None when there is nothing to say about it yet."""
        if why_broken(known) is not None:
            return known
        if isinstance(self.form, Lines) and entry.name.endswith(_COMPRESSED):
            return broken_offset(Broken.COMPRESSED)
        file = store.open(entry.name)
        if file is None:
            return None
        try:
            return self._compare(file, known, entry, now_ms)
        finally:
            file.close()

    def _compare(self, file: FileReader, known: int, entry: Entry, now_ms: int) -> int | None:
        position = position_of(known)
        if isinstance(self.form, Lines) and file.size() < position:
            return broken_offset(Broken.SHRUNK)
        if position and self.form.evidence(file, position) != known:
            return broken_offset(Broken.REPLACED)
        reached = self.form.extent(file, position)
        if reached is None:
            settled = now_ms - entry.modified_ms >= self.settle_ms
            return broken_offset(Broken.UNREADABLE) if settled else None
        if position_of(reached) > POSITION_MAX:
            return broken_offset(Broken.TOO_LARGE)
        return reached if position_of(reached) else None

    def plan(self, lower: Frontier, upper: Frontier) -> list[Split]:
        """See `Source.plan`. A piece is (first, last) position; each split checks the whole."""
        splits = []
        size = self.form.piece_size()
        for partition, start, stop in ranges(lower, upper):
            first, last = position_of(start), position_of(stop)
            if why_broken(stop) is not None or first >= last:
                splits.append(Split(partition, start, stop))
                continue
            for at in range(first, last, size):
                end = min(at + size, last)
                splits.append(Split(partition, start, stop, (at, end), end - at))
        return splits

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """See `Source.read`."""
        name = str(split.partition)
        why = why_broken(split.upper)
        if why is not None:
            raise SourceBroken(explain(name, why), offset=split.lower)
        file = open_store(self.url, self.guard).open(name)
        if file is None:
            raise SourceBroken(f"file {name!r} went away before it was read", offset=split.lower)
        try:
            yield from self._read(file, split)
        finally:
            file.close()

    def _read(self, file: FileReader, split: Split) -> Iterator[pa.RecordBatch]:
        self._check(file, split)
        first, last = (int(bound) for bound in split.piece)
        whole = (position_of(split.lower), position_of(split.upper))
        checked = False
        for piece in self.form.records(file, (first, last), whole):
            if not checked:
                # Again, now that the bytes are here: an object may be replaced while it is read.
                self._check(file, split)
                checked = True
            yield self._batch(split, piece)

    def _check(self, file: FileReader, split: Split) -> None:
        end = position_of(split.upper)
        short = isinstance(self.form, Lines) and file.size() < end
        if short or not split.piece or self.form.evidence(file, end) != split.upper:
            why = Broken.SHRUNK if short else Broken.REPLACED
            raise SourceBroken(
                f"{explain(str(split.partition), why)}, before it was read",
                offset=split.lower,
            )

    def _batch(self, split: Split, piece: Piece) -> pa.RecordBatch:
        offsets = record_offsets(piece.positions)
        if piece.reason is not None:
            rows = [(int(offset), None, None, piece.reason) for offset in offsets]
            return error_batch("name", split.partition, rows, output=0)
        schema = record_schema(self, 0)
        arrays = points("name", split.partition, pa.array(offsets), 0)
        for column in schema.names[3:]:
            made = piece.columns.get(column)
            arrays.append(_column(made, schema.field(column).type, column, len(offsets)))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(made: Any, kind: pa.DataType, name: str, count: int) -> pa.Array:
    if name == "_diff":
        return pa.repeat(pa.scalar(1, pa.int64()), count)
    if made is None:
        return pa.nulls(count, kind)
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made
