"""Collections as they were before the tick, by key.

Law: ``find(place, key, probes)`` gives all pairs of a probe and an update of the collection at a
time up to `as_of` whose key has the values of the probe (NULL equals NULL). Updates that cancel
each other may be among them: their diffs sum to what the collection holds.

A collection is its batches; their parts are looked up in the cache of this machine, several at a
time; small batches, which travel with the state, are merged in memory (`trace.small`).

Where it runs: executors.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from noonmark.compute.kernel import index as ix
from noonmark.compute.kernel.scalar import ask
from noonmark.compute.kernel.updates import BEFORE, Ints, Rows, concat, from_table
from noonmark.compute.trace.cache import Cached, TooLong, pieces
from noonmark.compute.trace.small import SmallBatches, small
from noonmark.errors import Unsupported
from noonmark.persist import task
from noonmark.persist.log.state import Batch, Collection
from noonmark.persist.part.part import Part
from noonmark.persist.part.run import DIFF, TIME
from noonmark.persist.read.updates import inline_table
from noonmark.rows.arrow import arrow_type
from noonmark.sql.ir.encoding import fingerprint
from noonmark.sql.ir.scalar import Scalar, columns_of

#: Of how many collections the small batches stay decoded in a process.
_SMALL_MAX = 1024
#: How many labels of indexes are remembered.
_LABELS_MAX = 4096
#: How many pieces of runs stay mapped in a process.
_OPEN_MAX = 1024


@lru_cache(_LABELS_MAX)
def label_of(*parts: Hashable) -> str:
    """What an index by these parts is called: asked at every look-up, made once."""
    return fingerprint(*parts)


@dataclass(frozen=True)
class CollectionAt:
    """A collection at a time, for a task.

    Attributes:
        place: where its parts are.
        collection: with its batches.
        as_of: the time.
        first: rows that are there too: what a view that is hydrated begins with.
        after: only what changed after this time, each update at its own; None for all there was.
    """

    place: task.TaskLocation
    collection: Collection
    as_of: int
    first: Rows | None = None
    after: int | None = None

    def known(self, rows: Rows) -> Rows:
        """Of stored updates those that count, as they are asked for."""
        if self.after is not None:
            return rows.take(np.flatnonzero((rows.time > self.after) & (rows.time <= self.as_of)))
        there = rows.time <= self.as_of
        return (rows if there.all() else rows.take(np.flatnonzero(there))).at(BEFORE)


@dataclass(frozen=True, eq=False)
class TraceRun:
    """Some updates of a collection: those of neighbouring parts, or of a small batch."""

    rows: Rows
    cached: Cached | None
    memory: dict[str, ix.Index]

    def index(self, label: str, make: Callable[[Rows], ix.Index]) -> ix.Index:
        """An index of the rows; made once for each label."""
        if self.cached is not None:
            known = self.cached.indexes.get(label)
            return known or self.cached.index(label, lambda: make(self.rows))
        if label not in self.memory:
            self.memory[label] = make(self.rows)
        return self.memory[label]


class TraceReader:
    """What one process has open of the collections that it looked into."""

    def __init__(self, root: Path) -> None:
        self.root = root
        #: How many stored updates were looked at since this process began.
        self.touched = 0
        self._pieces: dict[tuple[str, ...], Cached] = {}
        self._too_long: set[tuple[str, ...]] = set()
        self._small: dict[tuple[str, int, int], SmallBatches[TraceRun]] = {}

    def find(
        self,
        place: CollectionAt,
        key: tuple[Scalar, ...],
        probes: Sequence[pa.Array],
        columns: set[int],
    ) -> tuple[Ints, Rows]:
        """Pairs of a probe and an update; only these columns of it are there."""
        schema = place.collection.schema
        wanted = columns | _used(key)
        label = label_of(schema.names, key)
        hashes = ix.hashes_of(probes, len(probes[0]))
        order = np.argsort(hashes, kind="stable")
        given: list[Ints] = []
        found: list[Rows] = []
        for segment in self.segments(place, wanted):
            index = segment.index(label, partial(_index, key))
            places, rows = ix.matches(index, hashes[order])
            times = segment.rows.time[rows]
            known = times <= place.as_of
            if place.after is not None:
                known &= times > place.after
            places, rows = order[places[known]], rows[known]
            if not len(places):
                continue
            self.touched += len(places)
            candidates = segment.rows.take(rows)
            values, _ = ask(key, candidates)
            asked = [probe.take(pa.array(places)) for probe in probes]
            fine = ix.same(values, asked, len(places))
            if len(fine) < len(places):  # hashes that are the same, of other values
                places, candidates = places[fine], candidates.take(fine)
            given.append(places)
            found.append(place.known(candidates))
        if place.first is not None and len(place.first):
            values, _ = ask(key, place.first)
            places, rows = ix.matches(ix.build(values, len(place.first)), hashes)
            taken = [value.take(pa.array(rows)) for value in values]
            fine = ix.same(taken, [probe.take(pa.array(places)) for probe in probes], len(places))
            given.append(places[fine])
            found.append(_before(place.first.take(rows[fine])))
        places = np.concatenate(given) if given else np.zeros(0, np.int64)
        return places, concat(found, schema)

    def counts(
        self, place: CollectionAt, key: tuple[Scalar, ...], probes: Sequence[pa.Array]
    ) -> Ints:
        """Of each probe, how many updates `find` would look at."""
        label = label_of(place.collection.schema.names, key)
        hashes = ix.hashes_of(probes, len(probes[0]))
        order = np.argsort(hashes, kind="stable")
        made = np.zeros(len(hashes), np.int64)
        for segment in self.segments(place, _used(key)):
            index = segment.index(label, partial(_index, key))
            there, _, count = ix.ranges(index, hashes[order])
            made[order[there]] += count
        return made

    def everything(self, place: CollectionAt, columns: set[int]) -> Rows:
        """All updates up to the time."""
        found = [] if place.first is None else [_before(place.first)]
        for segment in self.segments(place, columns):
            found.append(place.known(segment.rows))
        self.touched += sum(map(len, found))
        return concat(found, place.collection.schema)

    def segments(self, place: CollectionAt, columns: set[int]) -> Iterator[TraceRun]:
        """The updates of a collection, piece by piece; some are later than the time."""
        numbers, is_any = small(place.collection), False
        for batch in place.collection.batches:
            if batch.time_min > place.as_of:
                continue
            if place.after is not None and batch.time_max <= place.after:
                continue
            if batch.id in numbers:
                is_any = True
                continue
            for parts in pieces(batch.parts):
                yield from self._mapped(place, parts, columns)
        if is_any:
            yield from self._of_small(place)

    def _mapped(
        self, place: CollectionAt, parts: tuple[Part, ...], columns: set[int]
    ) -> Iterator[TraceRun]:
        """The updates of parts, together; or one by one, if that is too much for one array."""
        name = (place.place.url, *(part.key for part in parts))
        if name not in self._too_long:
            # What was not used for longest is closed: what is gone frees its disk then.
            cached = self._pieces.pop(name, None) or Cached(self.root, place.place, parts)
            try:
                rows = _rows(cached, place.collection, columns)
            except TooLong as error:
                if len(parts) == 1:
                    raise Unsupported(
                        f'more than 2 GiB of text in one column of the part "{parts[0].key}"',
                        hint="Set part_rows_max lower, and compact the collection.",
                    ) from error
                self._too_long.add(name)
            else:
                while len(self._pieces) >= _OPEN_MAX:
                    self._pieces.pop(next(iter(self._pieces)))
                self._pieces[name] = cached
                yield TraceRun(rows, cached, {})
                return
        for part in parts:
            yield from self._mapped(place, (part,), columns)

    def _of_small(self, place: CollectionAt) -> Sequence[TraceRun]:
        """The updates of all small batches, in few runs."""
        collection = place.collection
        name = (place.place.url, collection.id, len(collection.schemas))
        # What was not used for longest is forgotten first.
        found = self._small.pop(name, None)
        if found is None:
            while len(self._small) >= _SMALL_MAX:
                self._small.pop(next(iter(self._small)))
            found = SmallBatches(lambda rows: TraceRun(rows, None, {}))
        self._small[name] = found
        return found.runs(collection, lambda batch: from_table(_small_table(place, batch)))


def _small_table(place: CollectionAt, batch: Batch) -> pa.Table:
    """The updates of a small batch, which has the columns of now if it is in parts."""
    if batch.inline is not None:
        return inline_table(place.collection, batch)
    store, names = place.place.open(), [*place.collection.schema.names, TIME, DIFF]
    data = [store.runtime.submit(store.fetch(part)).result() for part in batch.parts]
    pairs = zip(batch.parts, data, strict=True)
    return pa.concat_tables([store.decode(part, its, names).select(names) for part, its in pairs])


def _used(key: Sequence[Scalar]) -> set[int]:
    return {at for part in key for at in columns_of(part)}


def _index(key: Sequence[Scalar], rows: Rows) -> ix.Index:
    """Where the rows with a key are."""
    return ix.build(ask(key, rows)[0], len(rows))


def _before(rows: Rows) -> Rows:
    return rows.at(BEFORE)


def _rows(cached: Cached, collection: Collection, columns: set[int]) -> Rows:
    """The updates of parts, mapped."""
    schema = collection.schema
    names = [name for at, name in enumerate(schema.names) if at in columns]
    found = cached.columns([*names, TIME, DIFF])
    cached.touch()
    count = cached.rows
    made = [
        None
        if name not in names
        else found[name]
        if found[name] is not None
        else pa.nulls(count, arrow_type(each.type))
        for name, each in zip(schema.names, schema, strict=True)
    ]
    time, diff = found[TIME], found[DIFF]
    assert time is not None, "a part has times"
    assert diff is not None, "a part has diffs"
    return Rows(tuple(made), time.to_numpy(), diff.to_numpy())
