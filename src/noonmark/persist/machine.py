"""The state machine: ``(state, transaction, now) -> state``, or an error and no change.

Pure: no clock, no storage. The writer applies a transaction before it is committed, to refuse
what is wrong; everybody applies committed entries with the same functions, to follow. So a
reader's state equals the writer's at the same entry.

Law (since): for every collection, ``since = allowed ^ upper ^ (every hold's frontier)``, where
``^`` is meet, and since never goes back: a hold is only given at or beyond since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from noonmark.errors import (
    BelowUpper,
    CapabilityInvalid,
    Corrupt,
    Fenced,
    FrontierRegression,
    LockHeld,
    NameTaken,
    SchemaMismatch,
    UsageError,
)
from noonmark.persist import command as c
from noonmark.persist.invariants import check
from noonmark.persist.refusals import before_since, format_frontier
from noonmark.persist.state import (
    Batch,
    Collection,
    Era,
    Frontier,
    Garbage,
    Hold,
    State,
    schema_from_wire,
)

#: How many earlier writers' last commits are remembered.
ERAS_MAX = 16


@dataclass
class Draft:
    """A state being changed: the maps are copied when they are first written to."""

    state: State
    now_ms: int
    changed: dict[int, Collection | None] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        """A field as changed so far."""
        return self.changes.get(name, getattr(self.state, name))

    def own(self, name: str) -> dict[Any, Any]:
        """A map of the state, as a copy that may be written to."""
        if name not in self.changes:
            self.changes[name] = dict(getattr(self.state, name))
        mapping: dict[Any, Any] = self.changes[name]
        return mapping

    def collection(self, ref: int) -> Collection:
        """A collection as changed so far."""
        if ref in self.changed:
            changed = self.changed[ref]
            return changed if changed is not None else State().collection(ref)
        return self.state.collection(ref)

    def view(self) -> State:
        """The state as changed so far."""
        if not self.changed and not self.changes:
            return self.state
        changes = dict(self.changes)
        if self.changed:
            collections = dict(self.state.collections)
            for ref, collection in self.changed.items():
                if collection is None:
                    collections.pop(ref, None)
                else:
                    collections[ref] = collection
            changes["collections"] = collections
        return msgspec.structs.replace(self.state, **changes)

    def update(self, collection: Collection, **changes: Any) -> None:
        """Replace fields of one collection."""
        self.changed[collection.id] = msgspec.structs.replace(collection, **changes)

    def discard(self, collection: int, batches: Iterable[Batch]) -> None:
        """The parts of these batches leave the state."""
        fresh = tuple(
            Garbage(part.key, part.bytes, collection, self.state.seqno + 1, self.now_ms)
            for batch in batches
            for part in batch.parts
        )
        if fresh:
            self.changes["garbage"] = self.get("garbage") + fresh


def apply(state: State, transaction: c.Transaction, now_ms: int) -> State:
    """All commands of one transaction, or the first error and no change. Does not advance seqno."""
    draft = Draft(state, max(now_ms, state.now_ms))
    for command in transaction:
        _HANDLERS[type(command)](draft, command)
    touched = tuple(draft.changed)
    for ref in touched:
        _follow_since(draft, ref)
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
        after = apply(after, transaction, entry.now_ms)
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
        if all(isinstance(command, c.READER_COMMANDS) for command in commands):
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
    )


def _follow_since(draft: Draft, ref: int) -> None:
    collection = draft.changed.get(ref)
    if collection is None:
        return
    since = collection.allowed.meet(collection.upper)
    for hold in draft.get("holds").values():
        if hold.collection == ref:
            since = since.meet(hold.frontier)
    if since != collection.since and since.at_or_beyond(collection.since):
        draft.update(collection, since=since)


def _create(draft: Draft, command: c.Create) -> None:
    names = draft.own("names")
    if command.name in names:
        raise NameTaken(f'collection "{command.name}" already exists', collection=command.name)
    schema = schema_from_wire(command.schema)
    unknown = [name for name in command.key if name not in schema.names]
    if unknown:
        raise SchemaMismatch(
            f'key column "{unknown[0]}" is not a column of "{command.name}"',
            detail=f"Its columns are {', '.join(schema.names)}.",
            column=unknown[0],
        )
    ref = draft.get("next_collection")
    draft.changes["next_collection"] = ref + 1
    names[command.name] = ref
    draft.changed[ref] = Collection(
        id=ref,
        name=command.name,
        key=command.key,
        schemas=(command.schema,),
        since=command.frontier,
        upper=command.frontier,
        allowed=command.frontier,
        annotation=command.annotation,
    )


def _evolve(draft: Draft, command: c.Evolve) -> None:
    collection = draft.collection(command.collection)
    old, new = collection.schema, schema_from_wire(command.schema)
    if new.columns[: len(old.columns)] != old.columns:
        raise SchemaMismatch(
            f'the new schema of "{collection.name}" does not begin with the old one',
            detail=f"Old: {', '.join(old.names)}. New: {', '.join(new.names)}.",
            hint="A schema evolves by nullable columns added at its end.",
            collection=collection.name,
        )
    old.extend(new.columns[len(old.columns) :])
    draft.update(collection, schemas=(*collection.schemas, command.schema))


def _annotate(draft: Draft, command: c.Annotate) -> None:
    draft.update(draft.collection(command.collection), annotation=command.annotation)


def _rename(draft: Draft, command: c.Rename) -> None:
    collection = draft.collection(command.collection)
    names = draft.own("names")
    if command.name in names:
        raise NameTaken(f'collection "{command.name}" already exists', collection=command.name)
    del names[collection.name]
    names[command.name] = collection.id
    draft.update(collection, name=command.name)


def _drop(draft: Draft, command: c.Drop) -> None:
    collection = draft.collection(command.collection)
    del draft.own("names")[collection.name]
    holds = draft.own("holds")
    for hold in [h for h in holds.values() if h.collection == collection.id]:
        del holds[hold.id]
    draft.discard(collection.id, collection.batches)
    draft.changed[collection.id] = None


def _append(draft: Draft, command: c.Append) -> None:
    collection = draft.collection(command.collection)
    if not collection.upper.less_equal(command.time_min):
        raise BelowUpper(
            f'cannot write to "{collection.name}" at time {command.time_min}',
            detail=f"Its upper is {format_frontier(collection.upper)}: "
            "times before that are complete.",
            hint="Write at a time at or beyond upper.",
            collection=collection.name,
            time=command.time_min,
            upper=collection.upper,
        )
    batch = Batch(
        id=collection.next_batch,
        rows=command.rows,
        bytes=command.bytes,
        time_min=command.time_min,
        time_max=command.time_max,
        diff_sum=command.diff_sum,
        parts=command.parts,
        inline=command.inline,
    )
    draft.update(
        collection, batches=(*collection.batches, batch), next_batch=collection.next_batch + 1
    )


def _seal(draft: Draft, command: c.Seal) -> None:
    collection = draft.collection(command.collection)
    _require_forward("upper", collection, collection.upper, command.upper)
    draft.update(collection, upper=command.upper)


def _expect(draft: Draft, command: c.Expect) -> None:
    collection = draft.collection(command.collection)
    if collection.upper != command.upper:
        raise FrontierRegression(
            f'"{collection.name}" is not at the expected upper',
            detail=f"Expected {format_frontier(command.upper)}, "
            f"found {format_frontier(collection.upper)}.",
            hint="Somebody else wrote; read the upper again and redo the work from there.",
            collection=collection.name,
            expected=command.upper,
            upper=collection.upper,
        )


def _allow(draft: Draft, command: c.AllowCompaction) -> None:
    collection = draft.collection(command.collection)
    _require_forward("since", collection, collection.allowed, command.since)
    draft.update(collection, allowed=command.since)


def _require_forward(axis: str, collection: Collection, old: Frontier, new: Frontier) -> None:
    if not new.at_or_beyond(old):
        raise FrontierRegression(
            f'cannot move the {axis} of "{collection.name}" back',
            detail=f"It is at {format_frontier(old)}, {format_frontier(new)} was asked for.",
            collection=collection.name,
            current=old,
            asked=new,
        )


def _swap(draft: Draft, command: c.Swap) -> None:
    collection = draft.collection(command.collection)
    removed = set(command.removed)
    gone = [batch for batch in collection.batches if batch.id in removed]
    if len(gone) != len(removed):
        raise UsageError(
            f'batches of "{collection.name}" were rewritten meanwhile',
            detail=f"{len(removed) - len(gone)} of {len(removed)} batches are no longer there.",
        )
    if not collection.since.at_or_beyond(command.since):
        raise before_since(collection, command.since)
    kept = [batch for batch in collection.batches if batch.id not in removed]
    if command.rows:
        kept.append(
            Batch(
                id=collection.next_batch,
                rows=command.rows,
                bytes=command.bytes,
                time_min=command.time_min,
                time_max=command.time_max,
                diff_sum=command.diff_sum,
                parts=command.parts,
            )
        )
    draft.discard(collection.id, gone)
    draft.update(collection, batches=tuple(kept), next_batch=collection.next_batch + 1)


def _acquire(draft: Draft, command: c.Acquire) -> None:
    collection = draft.collection(command.collection)
    if not command.frontier.at_or_beyond(collection.since):
        raise before_since(collection, command.frontier)
    holds = draft.own("holds")
    if command.id in holds:
        raise CapabilityInvalid(f'hold "{command.id}" exists already', hold=command.id)
    holds[command.id] = Hold(
        command.id,
        command.collection,
        command.frontier,
        command.expires_ms,
        command.seqno,
        command.owner,
    )


def _downgrade(draft: Draft, command: c.Downgrade) -> None:
    hold = _hold(draft, command.id)
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
        expires_ms=command.expires_ms,
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


_HANDLERS: dict[type[c.Command], Callable[[Draft, Any], None]] = {
    c.Create: _create,
    c.Evolve: _evolve,
    c.Annotate: _annotate,
    c.Rename: _rename,
    c.Drop: _drop,
    c.Append: _append,
    c.Seal: _seal,
    c.Expect: _expect,
    c.AllowCompaction: _allow,
    c.Swap: _swap,
    c.Acquire: _acquire,
    c.Downgrade: _downgrade,
    c.Release: _release,
    c.Expire: _expire,
    c.TakeLock: _take_lock,
    c.RenewLock: _renew_lock,
    c.ReleaseLock: _release_lock,
    c.Forget: _forget,
}
