"""LOAD GENERATOR COUNTER: offset n inserts n; with MAX CARDINALITY it also retracts the oldest.

Law: after offset n the collection is {0, ..., n}, or its last MAX CARDINALITY numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noonmark.errors import ConfigError
from noonmark.rows.schema import Schema
from noonmark.source.contract import Output, Split
from noonmark.source.impl.generator import Generator

_OUTPUTS = (Output("counter", Schema.of(counter="bigint not null"), ("counter",)),)


@dataclass(frozen=True, kw_only=True)
class Counter(Generator):
    """See the module."""

    max_cardinality: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_cardinality is not None and self.max_cardinality < 1:
            raise ConfigError(f"MAX CARDINALITY must be at least 1, not {self.max_cardinality}")

    @property
    def outputs(self) -> tuple[Output, ...]:
        """See `Source.outputs`."""
        return _OUTPUTS

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """See `Source.read`."""
        for start, stop in self.steps(split):
            numbers = np.arange(start, stop)
            offsets, diffs = numbers, np.ones(len(numbers), np.int64)
            if self.max_cardinality is not None:
                pairs = np.stack([numbers - self.max_cardinality, numbers], axis=1)
                there = pairs.ravel() >= 0
                numbers = pairs.ravel()[there]
                offsets = np.repeat(offsets, 2)[there]
                diffs = np.tile([-1, 1], stop - start)[there]
            columns = {"_diff": diffs, "counter": numbers}
            yield self.batch(0, split.partition, offsets, columns)
