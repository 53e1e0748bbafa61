"""Commands: everything that can change a location's state, as data.

A transaction is a tuple of commands, applied all or not at all. An entry of the log is the
transactions that were committed together, already checked against the state before it: replay
needs no second opinion.
"""

from __future__ import annotations

import msgspec

from noonmark.persist.log.definite import Failure
from noonmark.persist.log.state import (
    ORIGIN,
    Frontier,
    Inline,
    Lock,
    WireColumn,
    decoder,
    encoder,
)
from noonmark.persist.part.part import Part


class Command(msgspec.Struct, frozen=True, tag_field="op"):
    """The base of all commands."""


class Create(Command, frozen=True, tag="create", omit_defaults=True):
    """Bind a new collection to `name`."""

    name: str
    key: tuple[str, ...]
    schema: tuple[WireColumn, ...]
    frontier: Frontier = ORIGIN
    annotation: bytes = b""
    #: The id that the rest of the transaction counts on; 0 when none does.
    expected_id: int = 0


class Evolve(Command, frozen=True, tag="evolve"):
    """Give a collection a newer schema: the old one and nullable columns after it."""

    collection: int
    schema: tuple[WireColumn, ...]


class Annotate(Command, frozen=True, tag="annotate"):
    """Replace what a higher layer remembers about a collection."""

    collection: int
    annotation: bytes


class Rename(Command, frozen=True, tag="rename"):
    """Give a collection another name."""

    collection: int
    name: str


class Drop(Command, frozen=True, tag="drop"):
    """Remove a collection; its id is never used again."""

    collection: int


class Close(Command, frozen=True, tag="close"):
    """End a collection: every hold on it is void, both of its frontiers become empty."""

    collection: int


class Append(Command, frozen=True, tag="append", omit_defaults=True):
    """Add a batch of updates, none of them at a time that is already complete."""

    collection: int
    rows: int
    bytes: int
    time_min: int
    time_max: int
    diff_sum: int
    parts: tuple[Part, ...] = ()
    inline: Inline | None = None


class SetError(Command, frozen=True, tag="error"):
    """From a time on, which is not complete yet, there are no rows but an error; None retracts."""

    collection: int
    time: int
    error: Failure | None


class Seal(Command, frozen=True, tag="seal"):
    """Advance upper: times not at or beyond it are complete."""

    collection: int
    upper: Frontier


class Expect(Command, frozen=True, tag="expect"):
    """Refuse the transaction unless upper is exactly this: a compare-and-append."""

    collection: int
    upper: Frontier


class AllowCompaction(Command, frozen=True, tag="allow"):
    """Let since advance to this frontier, as far as holds permit."""

    collection: int
    since: Frontier


class Swap(Command, frozen=True, tag="swap"):
    """Replace batches by one that has the same contents from `since` on."""

    collection: int
    removed: tuple[int, ...]
    since: Frontier
    rows: int
    bytes: int
    time_min: int
    time_max: int
    diff_sum: int
    parts: tuple[Part, ...]


class Acquire(Command, frozen=True, tag="acquire", omit_defaults=True):
    """Take a hold on a collection at a frontier that is still readable, or still writable."""

    id: str
    collection: int
    frontier: Frontier
    expires_ms: int
    seqno: int
    owner: str
    writes: bool = False


class Downgrade(Command, frozen=True, tag="downgrade", omit_defaults=True):
    """Move a hold forward, renew its lease, and say from which state its owner reads now.

    With `stated`, it is refused unless the hold is exactly there.
    """

    id: str
    frontier: Frontier
    expires_ms: int
    seqno: int
    stated: Frontier | None = None


class Release(Command, frozen=True, tag="release"):
    """Give up a hold."""

    id: str


class Expire(Command, frozen=True, tag="expire"):
    """Remove holds whose lease has run out."""

    ids: tuple[str, ...]


class TakeLock(Command, frozen=True, tag="lock"):
    """Become the writer. `orphaned`: the taker knows that the last holder is dead."""

    lock: Lock
    orphaned: bool = False


class RenewLock(Command, frozen=True, tag="renew"):
    """Say that the writer lives."""

    expires_ms: int


class ReleaseLock(Command, frozen=True, tag="unlock"):
    """Stop being the writer, in good order."""


class Forget(Command, frozen=True, tag="forget"):
    """Garbage that has been deleted from the blob store."""

    keys: tuple[str, ...]


AnyCommand = (
    Create
    | Evolve
    | Annotate
    | Rename
    | Drop
    | Close
    | Append
    | SetError
    | Seal
    | Expect
    | AllowCompaction
    | Swap
    | Acquire
    | Downgrade
    | Release
    | Expire
    | TakeLock
    | RenewLock
    | ReleaseLock
    | Forget
)

#: What a process without the write lock may commit: rights to read, which bind nobody's writes.
READER_COMMANDS = (Acquire, Downgrade, Release)

Transaction = tuple[AnyCommand, ...]


class Entry(msgspec.Struct, frozen=True):
    """One entry of the log.

    `epoch` is the writer's, or 0 for a reader that only manages its holds. `token` is unique to
    this attempt: finding it at `seqno` settles an append whose answer was lost. `now_ms` is the
    writer's clock, by which leases end; a reader's entry has 0: it is judged by the newest time
    that a writer wrote.
    """

    seqno: int
    epoch: int
    token: str
    now_ms: int
    transactions: tuple[Transaction, ...]


_entries = decoder(Entry)


def encode_entry(entry: Entry) -> bytes:
    """An entry as the payload of a frame."""
    return encoder.encode(entry)


def decode_entry(payload: bytes) -> Entry:
    """The entry in a verified payload."""
    entry: Entry = _entries.decode(payload)
    return entry
