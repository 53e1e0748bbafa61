"""Compaction: batches rewritten as one, with the same contents from since on.

Logical: times before since become since, and updates that cancel vanish. Physical: sorted runs
are merged into one. Both happen in one pass, in bounded memory, and are committed as a swap that
conserves the sum of diffs; a reader that planned before goes on with the old parts, which outlive
it (`gc`).

Which batches: small ones go together as soon as there are many (size tiers), so each row is
rewritten a logarithmic number of times, and a read opens a logarithmic number of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Protocol

import pyarrow as pa

from noonmark.persist.config import Config
from noonmark.persist.log import command as c
from noonmark.persist.log.state import Batch, Collection
from noonmark.persist.part import run
from noonmark.persist.part.part import Part
from noonmark.persist.part.ranges import KeyRange
from noonmark.persist.part.store import PartStore
from noonmark.persist.read.updates import inline_table, upgrade
from noonmark.persist.runtime import Runtime

_TIER_BASE = 4
_TIER_ROWS = 1024


def choose(collection: Collection, config: Config) -> tuple[Batch, ...]:
    """The batches that are worth rewriting as one now; none most of the time."""
    inline = [batch for batch in collection.batches if batch.inline is not None]
    inline_bytes = sum(batch.bytes for batch in inline)
    if len(inline) >= config.inline_batches_max or inline_bytes >= config.inline_total_bytes_max:
        return tuple(inline)
    runs = sorted((b for b in collection.batches if b.inline is None), key=lambda b: b.rows)
    tiers: dict[int, int] = {}
    for batch in runs:
        tiers[_tier(batch.rows)] = tiers.get(_tier(batch.rows), 0) + 1
    full = [tier for tier, count in tiers.items() if count >= config.merge_fan_in]
    if full:
        chosen = [batch for batch in runs if _tier(batch.rows) <= max(full)]
        return tuple(chosen[: config.merge_fan_in_max])
    return tuple(batch for batch in runs if _has_dead_history(batch, collection))[:1]


def _tier(rows: int) -> int:
    tier = 0
    while rows > _TIER_ROWS:
        rows //= _TIER_BASE
        tier += 1
    return tier


def _has_dead_history(batch: Batch, collection: Collection) -> bool:
    """Several times, all before since by now, and something to cancel: one rewrite ends that."""
    settled = not collection.since.less_equal(batch.time_max) and batch.time_min < batch.time_max
    return settled and any(part.diff_min < 0 for part in batch.parts)


class Compactor(Protocol):
    """An engine for compactions that are too big for this process (Spark)."""

    #: It is given compactions of at least this many stored bytes; smaller ones stay in process.
    bytes_min: int

    async def rewrite(self, collection: Collection, batches: tuple[Batch, ...]) -> c.Swap:
        """Like the function `rewrite`. Runs on the persist loop and does not hold it up."""


async def rewrite(
    collection: Collection,
    batches: tuple[Batch, ...],
    parts: PartStore,
    config: Config,
    within: KeyRange | None = None,
) -> c.Swap:
    """Write the merged run and return the swap that puts it in place.

    With `within`, only the rows of a key range: the swaps of all ranges are to be joined.
    """
    runtime = parts.runtime
    schema_id = len(collection.schemas) - 1
    fetch = await _fetcher(runtime, parts, batches)
    since = collection.since.only()
    runs = [
        _run(collection, parts_of(batch, within), fetch, config, within)
        for batch in batches
        if batch.parts
    ]
    inline = [
        confine(inline_table(collection, batch), within)
        for batch in batches
        if batch.inline is not None
    ]
    if inline:
        runs.append(iter([run.sort(pa.concat_tables(inline), collection.key)]))
    merged = run.merge(runs, collection.key, since, config.merge_rows_max)
    written: list[Part] = []
    while (first := await runtime.offload(_next_rows, merged)) is not None:
        piece = chain([first], _rows_up_to(merged, config.part_rows_max - first.num_rows))
        written.append(
            await parts.write_sorted(
                collection.id, collection.key, schema_id, piece, consolidated=True
            )
        )
    return swap(collection, batches, written)


def swap(collection: Collection, batches: tuple[Batch, ...], written: Sequence[Part]) -> c.Swap:
    """The command that puts the written run in the place of the batches."""
    return c.Swap(
        collection=collection.id,
        removed=tuple(batch.id for batch in batches),
        since=collection.since,
        rows=sum(part.rows for part in written),
        bytes=sum(part.bytes for part in written),
        time_min=min((part.time_min for part in written), default=0),
        time_max=max((part.time_max for part in written), default=0),
        diff_sum=sum(part.diff_sum for part in written),
        parts=tuple(written),
    )


def parts_of(batch: Batch, within: KeyRange | None) -> tuple[Part, ...]:
    """The parts of a batch that can hold rows of the range."""
    return tuple(part for part in batch.parts if within is None or within.may_hold(part))


def confine(table: pa.Table, within: KeyRange | None) -> pa.Table:
    """The rows of the range, in the order they had."""
    mask = None if within is None else within.mask(table)
    return table if mask is None else table.filter(mask)


async def _fetcher(
    runtime: Runtime, parts: PartStore, batches: tuple[Batch, ...]
) -> Callable[[Part], bytes]:
    """How a worker gets a part's bytes: by waiting for the loop, or, in place, fetched before."""
    if not runtime.in_place:
        return lambda part: runtime.submit(parts.fetch(part)).result()
    ahead = {part.key: await parts.fetch(part) for batch in batches for part in batch.parts}
    return lambda part: ahead[part.key]


def _run(
    collection: Collection,
    parts: tuple[Part, ...],
    fetch: Callable[[Part], bytes],
    config: Config,
    within: KeyRange | None,
) -> Iterator[pa.Table]:
    for part in parts:
        table = upgrade(PartStore.decode(part, fetch(part), None), collection)
        table = confine(table, within)
        for start in range(0, table.num_rows, config.merge_rows_max):
            yield table.slice(start, config.merge_rows_max)


def _next_rows(tables: Iterator[pa.Table]) -> pa.Table | None:
    return next((table for table in tables if table.num_rows), None)


def _rows_up_to(tables: Iterator[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Whole tables until about `rows` rows have passed."""
    while rows > 0 and (table := next(tables, None)) is not None:
        rows -= table.num_rows
        yield table
