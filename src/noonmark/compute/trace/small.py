"""The small batches of a collection in memory, merged as they come: a log-structured merge.

A tick appends a small batch, and a look-up asks every run: a collection with a hundred small
batches would cost a hundred look-ups. So neighbours are merged, a run into the one before it while
that is at most twice as long: of n updates there are O(log n) runs, and each update is copied
O(log n) times.

Small are batches that travel with the state, and those of few rows in parts: to make files of
such parts, and map them, takes longer than to look them up, and compaction takes them soon. So many
of the newest are kept in memory as have `ROWS_MAX` together; older ones are mapped as others are.

Law: the runs of `SmallBatches.runs(collection)` together are the updates of its small batches, each
once. A run that has a batch which is not small any more, or not there (compaction has taken it), is
not used.

Where it runs: executors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from noonmark.compute.kernel.updates import Rows, concat
from noonmark.persist.log.state import Batch, Collection

Run = TypeVar("Run")

#: A run is merged with one that is up to so many times as long.
RATIO = 2
#: The rows of a batch in parts that is small, and of all of them; and the bytes of one.
FEW, ROWS_MAX, BYTES_MAX = 16_384, 1 << 18, 1 << 20


def small(collection: Collection) -> set[int]:
    """The numbers of the batches that are kept in memory."""
    made: set[int] = set()
    rows, newest = 0, len(collection.schemas) - 1
    for each in reversed(collection.batches):
        if each.inline is None:
            few = each.rows <= FEW and each.bytes <= BYTES_MAX
            if not few or any(part.schema_id != newest for part in each.parts):
                continue
            rows += each.rows
            if rows > ROWS_MAX:
                continue
        made.add(each.id)
    return made


@dataclass(frozen=True, eq=False)
class Merged(Generic[Run]):
    """A run, and the numbers of the batches whose updates it has."""

    batches: frozenset[int]
    rows: Rows
    run: Run


@dataclass
class SmallBatches(Generic[Run]):
    """Those of one collection, in one process.

    Attributes:
        make: a run of some updates.
    """

    make: Callable[[Rows], Run]
    _merged: list[Merged[Run]] = field(default_factory=list)
    _of: Sequence[Batch] | None = None

    def runs(self, collection: Collection, decode: Callable[[Batch], Rows]) -> list[Run]:
        """The updates of the collection's small batches, in few runs."""
        if self._of is not collection.batches:
            numbers = small(collection)
            there = {each.id: each for each in collection.batches if each.id in numbers}
            usable = [each for each in self._merged if each.batches <= there.keys()]
            known = {number for each in usable for number in each.batches}
            for number, batch in there.items():
                if number not in known:
                    rows = decode(batch)
                    usable.append(Merged(frozenset([number]), rows, self.make(rows)))
            self._merged = self._together(usable, collection)
            self._of = collection.batches
        return [each.run for each in self._merged]

    def _together(self, runs: list[Merged[Run]], collection: Collection) -> list[Merged[Run]]:
        done: list[Merged[Run]] = []
        for each in runs:
            last, fresh = each, False
            while done and len(done[-1].rows) <= RATIO * len(last.rows):
                before = done.pop()
                rows = concat([before.rows, last.rows], collection.schema)
                last, fresh = Merged(before.batches | last.batches, rows, last.run), True
            done.append(Merged(last.batches, last.rows, self.make(last.rows)) if fresh else last)
        return done
