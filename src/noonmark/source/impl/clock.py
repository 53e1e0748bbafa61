"""LOAD GENERATOR CLOCK: one row, the time of the last tick.

Law: after offset n the collection is {start + n ticks}: what the tick before inserted is retracted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noonmark.rows.schema import Schema
from noonmark.source.contract import Output, Split
from noonmark.source.impl.generator import Generator

_OUTPUTS = (Output("clock", Schema.of(time="timestamptz not null"), ("time",)),)
_INSTANT = pa.timestamp("us", "UTC")


@dataclass(frozen=True, kw_only=True)
class ClockTicks(Generator):
    """See the module."""

    @property
    def outputs(self) -> tuple[Output, ...]:
        """See `Source.outputs`."""
        return _OUTPUTS

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """See `Source.read`."""
        for start, stop in self.steps(split):
            pairs = np.stack([np.arange(start - 1, stop - 1), np.arange(start, stop)], axis=1)
            there = pairs.ravel() >= 0
            micros = (self.start_ms + pairs.ravel()[there] * self.tick_ms) * 1000
            offsets = np.repeat(np.arange(start, stop), 2)[there]
            diffs = np.tile([-1, 1], stop - start)[there]
            columns = {"_diff": diffs, "time": pa.array(micros).cast(_INSTANT)}
            yield self.batch(0, split.partition, offsets, columns)
