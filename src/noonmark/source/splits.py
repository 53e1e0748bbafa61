"""Reading splits, and sharing them out among tasks.

Law (errors): a `SourceBroken` that `Source.read` raises becomes an error batch, behind what was
yielded before it; the splits after it are read as if nothing had been. Any other error is raised.
Law (groups): `group_splits` keeps every split once, and no group is empty. Within a group splits
are in the order of their offsets: what follows a truncation is read behind what it emptied.

Where it runs: `group_splits` on the driver, `read_splits` on executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush

import pyarrow as pa

from noonmark.errors import SourceBroken
from noonmark.source.contract import Source, Split, error_batch

Batches = Iterator[pa.RecordBatch]


def read_splits(source: Source, splits: Iterable[Split]) -> Batches:
    """The records of the splits, one after another; what is broken comes as an error batch."""
    for split in splits:
        try:
            yield from source.read(split)
        except SourceBroken as error:
            offset = error.fields.get("offset", split.lower)
            row = (offset, None, error.fields.get("value"), error.message)
            ends = bool(error.fields.get("ends", False))
            yield error_batch(source.partition_kind, split.partition, [row], ends=ends)


def group_splits(splits: Sequence[Split], groups_max: int) -> list[list[Split]]:
    """At most so many groups of about equal weight, heaviest splits first."""
    heap: list[tuple[int, int]] = []
    groups: list[list[Split]] = [[] for _ in range(min(groups_max, len(splits)))]
    for at in range(len(groups)):
        heappush(heap, (0, at))
    for split in sorted(splits, key=lambda split: -split.weight):
        weight, at = heappop(heap)
        groups[at].append(split)
        heappush(heap, (weight + split.weight, at))
    return [sorted(group, key=lambda split: split.lower) for group in groups]
