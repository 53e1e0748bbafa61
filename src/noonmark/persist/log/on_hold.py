"""What commands do to holds, to the write lock and to garbage, and how frontiers follow holds."""

from __future__ import annotations

import functools

import msgspec

from noonmark.errors import CapabilityInvalid, FrontierRegression, LockHeld
from noonmark.persist.log import command as c
from noonmark.persist.log.definite import compacted
from noonmark.persist.log.draft import Draft, Handlers
from noonmark.persist.log.refusals import before_since, below_upper, format_frontier
from noonmark.persist.log.state import Hold
from noonmark.tvc import Antichain


def follow_holds(draft: Draft, ref: int) -> None:
    """Both laws: upper first, since it bounds since."""
    collection = draft.changed.get(ref)
    if collection is None:
        return
    holds = draft.holds_on(ref)
    writers = [hold.frontier for hold in holds if hold.writes]
    upper = functools.reduce(Antichain.meet, writers) if writers else collection.upper
    if not upper.at_or_beyond(collection.upper):
        upper = collection.upper
    readers = [hold.frontier for hold in holds if not hold.writes]
    since = functools.reduce(Antichain.meet, readers, collection.allowed.meet(upper))
    if not since.at_or_beyond(collection.since):
        since = collection.since
    if (since, upper) != (collection.since, collection.upper):
        errors = compacted(collection.errors, since.only())
        draft.update(collection, since=since, upper=upper, errors=errors)
    if since.is_empty() and collection.batches:
        # Closed: no time can be read any more, so nothing has to be kept.
        draft.discard(ref, collection.batches)
        draft.update(draft.collection(ref), batches=())


def _acquire(draft: Draft, command: c.Acquire) -> None:
    collection = draft.collection(command.collection)
    if not command.writes and not command.frontier.at_or_beyond(collection.since):
        raise before_since(collection, command.frontier)
    if command.writes and not command.frontier.at_or_beyond(collection.upper):
        raise below_upper(collection, command.frontier.only())
    holds = draft.own("holds")
    hold = Hold(
        command.id,
        command.collection,
        command.frontier,
        command.expires_ms,
        command.seqno,
        command.owner,
        command.writes,
    )
    # The very same hold is ours: its entry was truncated before we learned that it was appended.
    if holds.get(command.id, hold) != hold:
        raise CapabilityInvalid(f'hold "{command.id}" exists already', hold=command.id)
    holds[command.id] = hold


def _downgrade(draft: Draft, command: c.Downgrade) -> None:
    hold = _hold(draft, command.id)
    if command.stated is not None and command.stated != hold.frontier:
        raise CapabilityInvalid(
            f'hold "{hold.id}" is not where it is said to be',
            detail=f"It is at {format_frontier(hold.frontier)}, "
            f"{format_frontier(command.stated)} was stated.",
            hint="Somebody else moved it; acquire the capability again.",
            hold=hold.id,
            frontier=hold.frontier,
            stated=command.stated,
        )
    if not command.frontier.at_or_beyond(hold.frontier):
        raise FrontierRegression(
            f'cannot move hold "{hold.id}" back',
            detail=f"It is at {format_frontier(hold.frontier)}, "
            f"{format_frontier(command.frontier)} was asked for.",
            current=hold.frontier,
            asked=command.frontier,
        )
    draft.own("holds")[hold.id] = msgspec.structs.replace(
        hold,
        frontier=command.frontier,
        expires_ms=max(hold.expires_ms, command.expires_ms),
        seqno=max(hold.seqno, command.seqno),
    )
    _touch(draft, hold.collection)


def _release(draft: Draft, command: c.Release) -> None:
    hold = _hold(draft, command.id)
    del draft.own("holds")[hold.id]
    _touch(draft, hold.collection)


def _hold(draft: Draft, ref: str) -> Hold:
    hold: Hold | None = draft.get("holds").get(ref)
    if hold is None or hold.expires_ms <= draft.now_ms:
        raise CapabilityInvalid(
            f'hold "{ref}" is not valid',
            detail="It expired or was dropped." if hold is None else "Its lease has run out.",
            hint="Acquire it again; what it protected may be gone.",
            hold=ref,
        )
    return hold


def _expire(draft: Draft, command: c.Expire) -> None:
    holds = draft.own("holds")
    for ref in command.ids:
        hold = holds.get(ref)
        if hold is not None and hold.expires_ms <= draft.now_ms:
            del holds[ref]
            _touch(draft, hold.collection)


def _touch(draft: Draft, ref: int) -> None:
    """Have since follow what a hold let go."""
    draft.changed.setdefault(ref, draft.collection(ref))


def _take_lock(draft: Draft, command: c.TakeLock) -> None:
    old, new = draft.get("lock"), command.lock
    free = (
        old is None
        or old.released
        or old.reentrance_id == new.reentrance_id
        or old.expires_ms <= draft.now_ms
        or command.orphaned
    )
    if not free:
        raise LockHeld(
            f'the location is being written by "{old.holder}"',
            detail=f"It took the write lock (epoch {old.epoch}) at {old.taken_ms} ms; "
            f"its lease runs until {old.expires_ms} ms.",
            hint="Stop that process, or open the location read-only.",
            holder=old.holder,
            epoch=old.epoch,
            reentrance_id=old.reentrance_id,
        )
    draft.changes["lock"] = new


def _renew_lock(draft: Draft, command: c.RenewLock) -> None:
    lock = draft.get("lock")
    draft.changes["lock"] = msgspec.structs.replace(lock, expires_ms=command.expires_ms)


def _release_lock(draft: Draft, command: c.ReleaseLock) -> None:  # noqa: ARG001
    draft.changes["lock"] = msgspec.structs.replace(draft.get("lock"), released=True)


def _forget(draft: Draft, command: c.Forget) -> None:
    deleted = set(command.keys)
    draft.changes["garbage"] = tuple(g for g in draft.get("garbage") if g.key not in deleted)


HANDLERS: Handlers = {
    c.Acquire: _acquire,
    c.Downgrade: _downgrade,
    c.Release: _release,
    c.Expire: _expire,
    c.TakeLock: _take_lock,
    c.RenewLock: _renew_lock,
    c.ReleaseLock: _release_lock,
    c.Forget: _forget,
}
