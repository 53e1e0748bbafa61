"""The numbers of persist, with what each one trades."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    """Settings trade cost against cost; none changes what a read answers."""

    #: A batch up to this size travels inside its log entry: a file per small write is slower.
    inline_bytes_max: int = 64 * 1024
    #: Rows in one part: large enough to scan well, small enough to hold in memory while merging.
    part_rows_max: int = 1_000_000
    #: A rollup is written after this many entries ...
    rollup_entries: int = 512
    #: ... or when the entries since the last one outweigh it, but not for less than this.
    rollup_bytes_min: int = 1024 * 1024
    #: Inline batches of one collection are merged into a part beyond this many, or these bytes.
    inline_batches_max: int = 64
    inline_total_bytes_max: int = 4 * 1024 * 1024
    #: Batches of similar size are merged when there are this many: amplification against read cost.
    merge_fan_in: int = 4
    #: No more than this many batches are merged at once: bounds memory.
    merge_fan_in_max: int = 16
    #: Rows that a merge holds per step.
    merge_rows_max: int = 128 * 1024
    #: Parts of one read are fetched at once up to this size; beyond it they are streamed.
    prefetch_bytes_max: int = 64 * 1024 * 1024
    #: Memory for parts and page indexes read from the blob store.
    cache_bytes_max: int = 128 * 1024 * 1024
    #: A part that left the state is deleted this long after, when no hold needs it: time for
    #: readers that hold nothing.
    garbage_grace_ms: int = 60_000
    #: How long a writer's lock, and a reader's hold, lasts without renewal.
    lock_lease_ms: int = 15_000
    hold_lease_ms: int = 60_000
    #: How often a reader without notifications looks for new entries.
    poll_s: float = 0.1
    #: Backoff of retries: first, largest, and when the error is given to the caller.
    retry_first_s: float = 0.01
    retry_largest_s: float = 1.0
    retry_deadline_s: float = 30.0


DEFAULT = Config()
