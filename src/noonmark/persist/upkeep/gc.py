"""Garbage: what nobody can need any more is deleted, and nothing else.

A part becomes garbage when it leaves the state (`machine`), and stays listed there until it is
deleted. It is deleted when (1) its grace has passed, for readers that hold nothing, (2) no hold
on its collection belongs to a reader that may have planned before it left, and (3) no read of
this process did. Deleting is idempotent, and only then is it forgotten: a crash between the two
repeats it.

Orphans are parts that no commit ever named. Those of earlier epochs can never be committed any
more, because their writers are fenced; they are deleted when a writer starts.
"""

from __future__ import annotations

from noonmark.persist.location import Blob
from noonmark.persist.log.state import Garbage, State
from noonmark.persist.part.store import PART_PREFIX, epoch_prefix
from noonmark.persist.retry import Retries


def collectable(state: State, now_ms: int, grace_ms: int, oldest_plan: int | None) -> list[Garbage]:
    """The garbage that may be deleted now.

    Args:
        state: the newest state.
        now_ms: the time now.
        grace_ms: how long garbage is kept at least.
        oldest_plan: the entry at which the oldest read of this process planned; None for no read.
    """
    oldest: dict[int, int] = {}
    for hold in (hold for hold in state.holds.values() if not hold.writes):
        oldest[hold.collection] = min(hold.seqno, oldest.get(hold.collection, hold.seqno))

    def needed(garbage: Garbage) -> bool:
        # A reader that planned at the entry that removed the part, or later, does not know it.
        held = oldest.get(garbage.collection)
        return (held is not None and held < garbage.seqno) or (
            oldest_plan is not None and oldest_plan < garbage.seqno
        )

    return [g for g in state.garbage if now_ms - g.removed_ms >= grace_ms and not needed(g)]


async def delete(blob: Blob, retries: Retries, garbage: list[Garbage]) -> None:
    """Delete garbage from the store."""
    for item in garbage:
        await retries.run("delete part", lambda: blob.delete(item.key))  # noqa: B023


async def sweep_orphans(blob: Blob, retries: Retries, state: State) -> int:
    """Delete the parts of earlier epochs that the state does not know; returns how many."""
    known = {g.key for g in state.garbage}
    for collection in state.collections.values():
        known.update(part.key for batch in collection.batches for part in batch.parts)
    limit = epoch_prefix(state.epoch)
    swept = 0
    for entry in await retries.run("list parts", lambda: blob.list(PART_PREFIX)):
        if entry.key < limit and entry.key not in known:
            await retries.run("delete orphan", lambda: blob.delete(entry.key))  # noqa: B023
            swept += 1
    return swept
