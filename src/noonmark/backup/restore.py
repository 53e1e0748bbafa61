"""A location from a backup.

The parts are copied and compared with their checksums; then the state is written as the rollup of
a log with one entry. Until `detach` has been done the copy is locked by the restoring process, so
nobody opens a copy that would touch the upstream of the original: a restore that was killed is
begun again, in an empty place.

What of the state is about the old log is left behind: garbage, the fate of earlier writers, who
writes, and the rights of sinks, which do not come along.

Where it runs: any event loop.
"""

from __future__ import annotations

from msgspec.structs import replace

from noonmark.backup.copies import Copied, copy, parts_of
from noonmark.clock import Clock
from noonmark.errors import UsageError
from noonmark.persist.client import Client
from noonmark.persist.location import Blob, Consensus
from noonmark.persist.log.command import Entry, TakeLock, encode_entry
from noonmark.persist.log.frame import ENTRY, ROLLUP, seal_frame
from noonmark.persist.log.journal import ROLLUP_PREFIX
from noonmark.persist.log.state import Lock, State, encoder
from noonmark.progress import Progress

#: Whose the copy is until it is detached.
HOLDER = "noonmark restore, which has not finished: restore again, to an empty place"
_SINKS = "sink/"
_FIRST = 1
#: Not the end of a lock that ends with its process, which a later process on the machine may take.
_LOCKED_MS = (1 << 62) - 1


async def restore(
    state: State,
    store: Blob,
    target: tuple[Blob, Consensus],
    ticket: str,
    *,
    clock: Clock,
    progress: Progress,
) -> Copied:
    """Make a location that has the state of a backup.

    Args:
        state: of the backup.
        store: where the backup is.
        target: the blobs and the log of the location to be; both are empty.
        ticket: with this reentrance id the copy can be opened to write, and with no other.
        clock: the door to time.
        progress: told of parts that are done, and of all.

    Raises:
        UsageError: the target has something.
        Corrupt: the backup is damaged; nothing can be opened at the target.
    """
    blob, log = target
    if await log.head() or await blob.list(ROLLUP_PREFIX):
        raise UsageError(
            "the place to restore to is not empty",
            hint="Give --data a place without a storage location.",
        )
    copied = await copy(parts_of(state), store, blob, progress)
    first = _renumbered(state, ticket)
    key = f"{ROLLUP_PREFIX}{_FIRST:020d}"
    await blob.put(key, seal_frame(key, ROLLUP, encoder.encode(first)))
    entry = Entry(_FIRST, first.epoch, clock.fresh_id(), first.now_ms, ())
    if not await log.append(_FIRST, seal_frame(f"log/{_FIRST}", ENTRY, encode_entry(entry))):
        raise UsageError("somebody else writes to the place to restore to")
    return copied


def _renumbered(state: State, ticket: str) -> State:
    """The state as the first of a log of its own."""
    holds = {
        name: replace(hold, seqno=_FIRST)
        for name, hold in state.holds.items()
        if not name.startswith(_SINKS)
    }
    lock = _locked(state, ticket)
    return replace(state, seqno=_FIRST, holds=holds, lock=lock, eras=(), garbage=())


def _locked(state: State, ticket: str) -> Lock:
    return Lock(state.epoch + 1, ticket, HOLDER, state.now_ms, _LOCKED_MS)


async def lock_again(client: Client, ticket: str) -> None:
    """A copy that could not be detached: nobody is to open it, also when `client` ends."""
    lock = _locked(client.state, ticket)
    await client.journal.commit(lock.epoch, [(TakeLock(lock, orphaned=False),)])
