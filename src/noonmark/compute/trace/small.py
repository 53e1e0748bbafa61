"""The small batches of a collection in memory, merged as they come: a log-structured merge.

A tick appends a small batch, and a look-up asks every run: a collection with a hundred small
batches would cost a hundred look-ups. So neighbours are merged, a run into the one before it while
that is at most twice as long: of n updates there are O(log n) runs, and each update is copied
O(log n) times.

Law: the runs of `SmallBatches.runs(collection)` together are the updates of its inline batches,
each once. A run that has a batch which is not there any more (compaction has taken it) is not used.

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
        """The updates of the collection's inline batches, in few runs."""
        if self._of is not collection.batches:
            there = {each.id: each for each in collection.batches if each.inline is not None}
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
