"""Reclocking in bulk: the bindings of a remap as sorted arrays, and one search per record.

Per partition p the bindings are a staircase: pairs (u, t), strictly ascending in both, where t is
the first time at which p was complete below u. The time of the record at (p, o) is the t of the
first step with u > o; after the last step it is not bound yet.

Law (reference): for every point, `TimeTable.of(remap).times(p, [o])` is `reclock_time` of it.
Law (range): a table made with `lower` agrees with the whole one on every point in `lower`.

Why one search serves many bindings: a staircase over n bindings costs log(n) comparisons a record,
and bindings that a partition did not move in are not in it.

Frontiers here are those of `partition_frontier`, and the empty one (the source has finished: then
every partition, known or not, ends with an infinite step). Where it runs: made on the driver, small
enough to travel with the job; used on executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.errors import Unsupported
from noonmark.remap.binding import Remap
from noonmark.tvc import Antichain, Partition, Partitioned, known_partitions

Longs = npt.NDArray[np.int64]

TIME = "_time"
_INFINITE = np.iinfo(np.int64).max
_UNBOUND = -1


@final
@dataclass(frozen=True, slots=True)
class Staircase:
    """Ascending offsets, each with the first time at which all below it is complete."""

    uppers: Longs
    times: Longs

    def __call__(self, offsets: Longs) -> Longs:
        """The time of each offset; `_UNBOUND` for those beyond the last step."""
        if len(self.uppers) == 1:
            return np.where(offsets < self.uppers[0], self.times[0], _UNBOUND)
        padded = np.append(self.times, _UNBOUND)
        return padded[np.searchsorted(self.uppers, offsets, side="right")]


@final
@dataclass(frozen=True, slots=True)
class TimeTable:
    """A staircase per partition, and one for the partitions that no binding has named."""

    steps: Mapping[Partition, Staircase]
    other: Staircase

    @classmethod
    def of(
        cls, remap: Remap[Partitioned], lower: Antichain[Partitioned] | None = None
    ) -> TimeTable:
        """The table of all bindings, or of those alone that points in `lower` need."""
        ends = {} if lower is None else known_partitions(lower)
        uppers: dict[Partition, list[int]] = {}
        times: dict[Partition, list[int]] = {}
        seen: frozenset[Partitioned] = frozenset()
        finished: list[int] = []
        for time, frontier in remap.bindings:
            if frontier.is_empty():
                finished = [time]
                break
            now = frozenset(frontier.elements)
            for partition, offset in _moved(now - seen):
                if offset > ends.get(partition, 0):
                    uppers.setdefault(partition, []).append(offset)
                    times.setdefault(partition, []).append(time)
            seen = now
        last = [_INFINITE] if finished else []
        steps = {p: _stairs(uppers[p] + last, times[p] + finished) for p in uppers}
        return cls(steps, _stairs(last, finished))

    def times(self, partition: Partition, offsets: Longs) -> Longs:
        """The time of each offset of one partition; -1 where it is not bound yet."""
        return self.steps.get(partition, self.other)(offsets)

    def assign(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with a column `_time`, without the records that are not bound yet."""
        times = self._times_of(batch.column("_partition"), batch.column("_offset"))
        timed = batch.append_column(TIME, pa.array(times))
        bound = times != _UNBOUND
        return timed if bound.all() else timed.filter(pa.array(bound))

    def _times_of(self, partitions: pa.Array, offsets: pa.Array) -> Longs:
        points: Longs = offsets.to_numpy()
        if len(points) == 0:
            return points
        # Batches of one partition are the rule, and comparing is cheaper than grouping.
        first = partitions[0]
        if pc.all(pc.equal(partitions, first)).as_py():
            return self.times(first.as_py(), points)
        encoded = partitions.dictionary_encode()
        codes = encoded.indices.to_numpy()
        times = np.empty(len(points), np.int64)
        for code, partition in enumerate(encoded.dictionary.to_pylist()):
            rows = codes == code
            times[rows] = self.times(partition, points[rows])
        return times


def _moved(elements: Iterable[Partitioned]) -> Iterable[tuple[Partition, int]]:
    """The partitions that a binding brings forward, each with its new offset."""
    for element in elements:
        if not element.offset:
            continue  # a gap between known partitions: nothing is complete there
        partition = element.interval.partition()
        if partition is None:
            raise Unsupported(
                f"{element!r} is about many partitions at once",
                detail="A staircase is per partition.",
                hint="Make frontiers of a source with partition_frontier.",
            )
        yield partition, element.offset


def _stairs(uppers: list[int], times: list[int]) -> Staircase:
    return Staircase(np.array(uppers, np.int64), np.array(times, np.int64))
