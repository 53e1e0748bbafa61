"""The state machine: ``(state, transaction, now) -> state``, or an error and no change.

Pure: no clock, no storage. The writer applies a transaction before it is committed, to refuse
what is wrong; everybody applies committed entries with the same functions, to follow. So a
reader's state equals the writer's at the same entry.

Law (since): for every collection, ``since = allowed ^ upper ^ (every read hold's frontier)``, where
``^`` is meet, and since never goes back: a hold is only given at or beyond since.
Law (upper): where there are write holds, ``upper`` is at or before each of their frontiers, and
follows their meet; a seal moves upper, and is refused where it would pass one of them.
"""

from __future__ import annotations

import msgspec

from noonmark.errors import Corrupt, Fenced
from noonmark.persist.log import command as c
from noonmark.persist.log import on_collection, on_hold
from noonmark.persist.log.draft import Draft, Handlers
from noonmark.persist.log.invariants import check
from noonmark.persist.log.state import Era, State

#: How many earlier writers' last commits are remembered.
ERAS_MAX = 16

_HANDLERS: Handlers = {**on_collection.HANDLERS, **on_hold.HANDLERS}


def apply(
    state: State, transaction: c.Transaction, now_ms: int, *, is_committed: bool = False
) -> State:
    """All commands of one transaction, or the first error and no change. Does not advance seqno."""
    draft = Draft(state, max(now_ms, state.now_ms), is_committed)
    for command in transaction:
        _HANDLERS[type(command)](draft, command)
    touched = tuple(draft.changed)
    for ref in touched:
        on_hold.follow_holds(draft, ref)
    after = draft.view()
    check(state, after, touched)
    return after


def apply_entry(state: State, entry: c.Entry) -> State:
    """The state after a committed entry."""
    if entry.seqno != state.seqno + 1:
        raise Corrupt(
            f"log entry {entry.seqno} found where {state.seqno + 1} belongs", object="log"
        )
    check_epoch(state, entry)
    after = state
    for transaction in entry.transactions:
        after = apply(after, transaction, entry.now_ms, is_committed=True)
    return advance(after, entry)


def advance(after: State, entry: c.Entry) -> State:
    """Note that `entry` is in the log."""
    eras = after.eras
    if entry.epoch:
        mine = Era(entry.epoch, entry.seqno, entry.token)
        earlier = eras[:-1] if eras and eras[-1].epoch == entry.epoch else eras
        eras = (*earlier, mine)[-ERAS_MAX:]
    return msgspec.structs.replace(
        after, seqno=entry.seqno, now_ms=max(after.now_ms, entry.now_ms), eras=eras
    )


def check_epoch(state: State, entry: c.Entry) -> None:
    """Refuse an entry by somebody who is not (or no longer) the writer.

    Raises:
        Fenced: the entry's writer lost the lock.
    """
    commands = [command for transaction in entry.transactions for command in transaction]
    first = commands[0] if commands else None
    if entry.epoch == 0:
        if all(_binds_no_writer(state, command) for command in commands):
            return
        raise Fenced("a reader cannot change collections", epoch=0)
    if isinstance(first, c.TakeLock) and entry.epoch == first.lock.epoch == state.epoch + 1:
        return
    lock = state.lock
    if lock is not None and entry.epoch == lock.epoch and not lock.released:
        return
    raise Fenced(
        f"writer of epoch {entry.epoch} was fenced by epoch {state.epoch}",
        detail=f'The write lock is held by "{lock.holder}".' if lock else None,
        hint="Nothing of this process was committed since; start it again to take the lock back.",
        epoch=entry.epoch,
        current=state.epoch,
        holder=lock.holder if lock else None,
    )


def _binds_no_writer(state: State, command: c.AnyCommand) -> bool:
    """Rights to read are anybody's to take and to give up; a right to write moves upper."""
    if not isinstance(command, c.READER_COMMANDS):
        return False
    hold = state.holds.get(command.id)
    return not getattr(command, "writes", False) and (hold is None or not hold.writes)
