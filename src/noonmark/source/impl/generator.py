"""What the load generators share: a schedule, one clock, nothing upstream.

A generator's record is a pure function of its seed and its place. *Ticks* pass with wall time: at
`start_ms` the first one is complete, and another with every `tick_ms` after it, up to `up_to` ticks
if that is given; then the source is finished. A generator says which offset a number of ticks has
reached, and makes the records of any range of offsets.

Law (schedule): `latest` depends on the clock and the description alone; it never goes back behind
what was known, even if the clock does. The clock is upstream, and it is asked.

Where it runs: as `noonmark.source.contract` says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from noonmark.clock import Clock
from noonmark.errors import ConfigError
from noonmark.source.contract import (
    START,
    Frontier,
    Output,
    Split,
    points,
    ranges,
    record_schema,
)
from noonmark.source.impl.upstream import Numbered
from noonmark.tvc import EMPTY, Partition, partition_frontier

BATCH_ROWS = 65_536
SPLIT_ROWS = 1 << 18


@dataclass(frozen=True, kw_only=True)
class Generator(Numbered, ABC):
    """See `noonmark.source.contract.Source`; a subclass has `outputs` and `read`."""

    start_ms: int
    tick_ms: int = 1000
    up_to: int | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        if self.tick_ms < 1:
            raise ConfigError(f"TICK INTERVAL must be at least 1 ms, not {self.tick_ms}")
        if self.up_to is not None and self.up_to < 0:
            raise ConfigError(f"UP TO must not be negative, as {self.up_to} is")

    @property
    @abstractmethod
    def outputs(self) -> tuple[Output, ...]:
        """See `Source.outputs`."""

    def reached(self, ticks: int) -> dict[Partition, int]:
        """The offset below which each partition is complete after so many ticks: one a tick."""
        return {0: ticks}

    @abstractmethod
    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """See `Source.read`."""

    def rows_per_offset(self) -> int:
        """About how many rows one offset has, to cut splits and batches of a good size."""
        return 1

    @property
    def releases(self) -> str | None:
        """See `Source.releases`."""
        return "A load generator computes its records: there is nothing upstream to forget."

    async def release(self, frontier: Frontier) -> None:
        """Nothing to do: see `releases`."""

    async def latest(self, clock: Clock, known: Frontier = START) -> Frontier:
        """See `Source.latest`."""
        since_start = clock.now_ms() - self.start_ms
        ticks = max(0, since_start // self.tick_ms + 1)
        if self.up_to is not None and ticks >= self.up_to:
            return EMPTY
        return partition_frontier(self.reached(ticks)).join(known)

    def plan(self, lower: Frontier, upper: Frontier) -> list[Split]:
        """See `Source.plan`: any range can be cut anywhere."""
        step = max(1, SPLIT_ROWS // self.rows_per_offset())
        splits = []
        for partition, start, stop in ranges(lower, upper, self._end()):
            for at in range(start, stop, step):
                splits += self.cut(partition, at, min(at + step, stop))
        return splits

    def cut(self, partition: Partition, start: int, stop: int) -> list[Split]:
        """The splits of a range of offsets that is small enough for one, unless it has more."""
        weight = (stop - start) * self.rows_per_offset()
        return [Split(partition, start, stop, weight=weight)]

    def batch(
        self, number: int, partition: Partition, offsets: Any, columns: Mapping[str, Any]
    ) -> pa.RecordBatch:
        """A batch of updates of one output; `columns` has `_diff` and the data, by name."""
        schema = record_schema(self, number)
        names = schema.names[3:]
        arrays = points(self.partition_kind, partition, offsets, number)
        arrays += [
            pa.array(columns[name]) if _foreign(columns[name]) else columns[name] for name in names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def steps(self, split: Split) -> Iterator[tuple[int, int]]:
        """The split's offsets in ranges of about one batch each."""
        step = max(1, BATCH_ROWS // self.rows_per_offset())
        for at in range(split.lower, split.upper, step):
            yield at, min(at + step, split.upper)

    def _end(self) -> dict[Partition, int] | None:
        return None if self.up_to is None else self.reached(self.up_to)


def _foreign(column: Any) -> bool:
    return not isinstance(column, pa.Array)
