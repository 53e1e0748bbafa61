"""A backup: one commit of a location, in a store of its own.

    part/...           the parts, under the names that they have in the location
    backup/<seqno>     the state after that entry, framed as a rollup is

Law (one commit): a backup is the location as it was after one entry, whole: its state, and every
part that the state names. The state is put last, so what is not whole is no backup.
Law (incremental): parts are immutable, and shared by the backups of a store: a backup copies what
no earlier one has.

The location is written to meanwhile. A part may go while it is waited for, when compaction replaced
it: then the backup begins anew from the newest state, with what it has copied.

Where it runs: the loop of a client that only reads.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from noonmark.backup.copies import Copied, copy, parts_of
from noonmark.errors import MissingObject, UsageError
from noonmark.persist.client import Client
from noonmark.persist.location import Blob
from noonmark.persist.log.frame import ROLLUP, open_frame, seal_frame
from noonmark.persist.log.state import State, encoder, state_decoder
from noonmark.persist.part.store import PART_PREFIX
from noonmark.progress import Progress

PREFIX = "backup/"
#: How often a backup begins anew because a part went.
_ROUNDS_MAX = 10


@dataclass(frozen=True)
class Made:
    """A backup that was made."""

    state: State
    copied: Copied


def key_of(seqno: int) -> str:
    """The key of the backup of an entry."""
    return f"{PREFIX}{seqno:020d}"


async def make(client: Client, target: Blob, progress: Progress) -> Made:
    """Back a location up. `client` reads it."""
    for at in range(_ROUNDS_MAX):
        state = await client.journal.refresh()
        try:
            copied = await copy(parts_of(state), client.blob, target, progress)
            break
        except MissingObject:
            if at + 1 == _ROUNDS_MAX:
                raise
    key = key_of(state.seqno)
    await target.put(key, seal_frame(key, ROLLUP, encoder.encode(state)))
    return Made(state, copied)


async def backups(store: Blob) -> list[int]:
    """The entries that a store has backups of, oldest first."""
    return [int(entry.key.removeprefix(PREFIX)) for entry in await store.list(PREFIX)]


async def state_of(store: Blob, seqno: int | None) -> State:
    """The state of a backup; of the newest one by default.

    Raises:
        UsageError: there is no such backup.
        Corrupt: it is not what was stored.
    """
    known = await backups(store)
    wanted = seqno if seqno is not None else (known[-1] if known else 0)
    data = await store.get(key_of(wanted)) if wanted in known else None
    if data is None:
        raise UsageError(
            "there is no backup here" if not known else f"there is no backup of entry {wanted}",
            hint="Entries that have one: " + (", ".join(map(str, known)) or "none") + ".",
        )
    return state_decoder.decode(open_frame(key_of(wanted), ROLLUP, data))


async def keep(store: Blob, count: int) -> int:
    """Keep the newest `count` backups; returns how many objects went."""
    known = await backups(store)
    kept = known[-count:]
    needed = {part.key for each in kept for part in parts_of(await state_of(store, each))}
    gone = 0
    for seqno in known[:-count]:
        await store.delete(key_of(seqno))
        gone += 1
    for entry in await store.list(PART_PREFIX) if gone else ():
        if entry.key not in needed:
            with suppress(MissingObject):
                await store.delete(entry.key)
            gone += 1
    return gone
