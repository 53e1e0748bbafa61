"""LOAD GENERATOR KEY VALUE: a fixed set of keys whose values are written again and again.

Key k is in partition ``k % partitions``. Offsets ``0 .. snapshot_rounds - 1`` write every key once
each and are complete from the start; every later offset is one tick and writes `batch` keys. A key
comes again only after all others of its partition. Value number v of key k is `value_bytes` of
noise from (seed, k, v): to retract it nothing has to be remembered.

Law: after the snapshot the collection always has each key exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noonmark.errors import ConfigError
from noonmark.rows.schema import Schema
from noonmark.source.contract import Output, Split
from noonmark.source.impl.chance import Longs, draw, stride
from noonmark.source.impl.columns import noise
from noonmark.source.impl.generator import BATCH_ROWS, SPLIT_ROWS, Generator
from noonmark.tvc import Partition

_OUTPUTS = (
    Output("key_value", Schema.of(key="bigint not null", value="bytea not null"), ("key",)),
)
_BATCH_BYTES = 64 << 20
SNAPSHOT_SPLITS_MAX = 100_000


@dataclass(frozen=True, kw_only=True)
class KeyValue(Generator):
    """See the module."""

    keys: int = 1_000
    partitions: int = 1
    value_bytes: int = 64
    snapshot_rounds: int = 1
    batch_keys: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.partitions < 1 or self.keys % self.partitions or self.keys < self.partitions:
            raise ConfigError(f"PARTITIONS {self.partitions} must divide KEYS {self.keys}")
        if not 1 <= self.batch_keys <= self.partition_keys:
            raise ConfigError(f"BATCH SIZE must be 1 to {self.partition_keys}: {self.batch_keys}")
        if self.snapshot_rounds < 1 or self.value_bytes < 0:
            raise ConfigError("SNAPSHOT ROUNDS is at least 1, VALUE SIZE at least 0")
        splits = self.snapshot_rounds * (self.partitions + self.keys // SPLIT_ROWS)
        if splits > SNAPSHOT_SPLITS_MAX:
            raise ConfigError("the snapshot is too large: less KEYS, PARTITIONS or SNAPSHOT ROUNDS")

    @property
    def partition_keys(self) -> int:
        """The keys of one partition."""
        return self.keys // self.partitions

    @property
    def outputs(self) -> tuple[Output, ...]:
        """See `Source.outputs`."""
        return _OUTPUTS

    def reached(self, ticks: int) -> dict[Partition, int]:
        """The snapshot is there from the start; then one offset a tick."""
        offset = self.snapshot_rounds + ticks - 1 if ticks else 0
        return dict.fromkeys(range(self.partitions), offset)

    def rows_per_offset(self) -> int:
        """Of a tick: each key is retracted and inserted."""
        return 2 * self.batch_keys

    def cut(self, partition: Partition, start: int, stop: int) -> list[Split]:
        """Rounds of the snapshot are cut by key, the rest is cut by offset."""
        pieces = []
        for round_ in range(start, min(stop, self.snapshot_rounds)):
            for first in range(0, self.partition_keys, SPLIT_ROWS):
                last = min(first + SPLIT_ROWS, self.partition_keys)
                pieces.append(Split(partition, round_, round_ + 1, (first, last), last - first))
        start = max(start, self.snapshot_rounds)
        return pieces + (super().cut(partition, start, stop) if start < stop else [])

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """See `Source.read`."""
        rows = max(1, min(BATCH_ROWS, _BATCH_BYTES // max(1, self.value_bytes)) // 2)
        if split.piece:
            first, last = (int(bound) for bound in split.piece)
            for at in range(first, last, rows):
                slots = np.arange(at, min(at + rows, last))
                yield self._batch(split, np.full(len(slots), split.lower), slots, split.lower)
            return
        # Numbered from 0, the writes of all ticks walk through the keys in strides.
        first = (split.lower - self.snapshot_rounds) * self.batch_keys
        last = (split.upper - self.snapshot_rounds) * self.batch_keys
        for at in range(first, last, rows):
            writes = np.arange(at, min(at + rows, last))
            offsets = self.snapshot_rounds + writes // self.batch_keys
            slots = writes % self.partition_keys * stride(self.partition_keys) % self.partition_keys
            yield self._batch(
                split, offsets, slots, self.snapshot_rounds + writes // self.partition_keys
            )

    def _batch(
        self, split: Split, offsets: Longs, slots: Longs, version: int | Longs
    ) -> pa.RecordBatch:
        """Version v of each key replaces version v - 1; version 0 replaces nothing."""
        keys = slots * self.partitions + int(split.partition)
        versions = np.stack([version - np.ones_like(keys), version + np.zeros_like(keys)], axis=1)
        there = versions.ravel() >= 0
        keys = np.repeat(keys, 2)[there]
        bits = draw(self.seed, keys, versions.ravel()[there])
        diffs = np.tile(np.array([-1, 1]), len(offsets))[there]
        columns = {"_diff": diffs, "key": keys, "value": noise(bits, self.value_bytes)}
        return self.batch(0, split.partition, np.repeat(offsets, 2)[there], columns)
