"""The state of a storage location: what a rollup holds and what the log's entries change.

Everything here is a frozen value. A `State` is a function of the log alone: replaying entries
1..n on `EMPTY` gives the state at n on every machine (`machine.apply_entry`); a rollup is that
state written down.

    State
    ├── collections   id -> Collection: schemas, since, upper, batches, definite errors
    ├── holds         id -> Hold: a durable right to read, which keeps since and parts back
    ├── lock          who may write, with the epoch that fences everybody before
    ├── eras          the last commit of earlier writers, to settle what they could not
    └── garbage       parts that no state refers to any more, waiting for their readers to leave
"""

from __future__ import annotations

from typing import Any

import msgspec

from noonmark.errors import UnknownCollection
from noonmark.persist.log.definite import ErrorChange
from noonmark.persist.part.part import Part
from noonmark.rows.schema import Schema
from noonmark.tvc import EMPTY as EMPTY_FRONTIER
from noonmark.tvc import Antichain

Frontier = Antichain[int]
ORIGIN: Frontier = Antichain.of(0)


class Inline(msgspec.Struct, frozen=True, array_like=True):
    """A small batch that lives in the log itself: one Arrow record batch, without its schema."""

    data: bytes
    schema_id: int


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """Updates that were appended, or rewritten by compaction, together.

    The parts of one batch are one run: sorted by the collection's key, part after part. Times are
    at or beyond the upper that the collection had when the batch was appended, or its since when
    rewritten.
    """

    id: int
    rows: int
    bytes: int
    time_min: int
    time_max: int
    #: The sum of all diffs, which no rewriting may change.
    diff_sum: int
    parts: tuple[Part, ...] = ()
    inline: Inline | None = None


class WireColumn(msgspec.Struct, frozen=True, array_like=True):
    """One column of a stored schema."""

    name: str
    type: str
    nullable: bool


class Collection(msgspec.Struct, frozen=True):
    """One named collection: exact for every time t with ``since <= t`` and not ``upper <= t``."""

    id: int
    name: str
    key: tuple[str, ...]
    schemas: tuple[tuple[WireColumn, ...], ...]
    since: Frontier = ORIGIN
    upper: Frontier = ORIGIN
    #: How far `allow_compaction` let since go; holds may keep it behind.
    allowed: Frontier = ORIGIN
    batches: tuple[Batch, ...] = ()
    next_batch: int = 1
    #: What a higher layer wants to remember about the collection; opaque here.
    annotation: bytes = b""
    #: When it has no rows but an error, and when it has rows again; see `definite`.
    errors: tuple[ErrorChange, ...] = ()

    @property
    def schema(self) -> Schema:
        """The newest schema."""
        return self.schema_at(len(self.schemas) - 1)

    def schema_at(self, schema_id: int) -> Schema:
        """The schema that a part or inline batch was written with."""
        return schema_from_wire(self.schemas[schema_id])


class Hold(msgspec.Struct, frozen=True, array_like=True):
    """A durable right to read `collection` at `frontier` and later, until `expires_ms`.

    It keeps since at or before `frontier`, and keeps every part that left the state at or after
    `seqno` from being deleted, so that a reader who planned at that state can finish. With
    `writes` it is the right to write at `frontier` and later instead: it keeps upper there.
    """

    id: str
    collection: int
    frontier: Frontier
    expires_ms: int
    seqno: int
    owner: str
    writes: bool = False


class Lock(msgspec.Struct, frozen=True):
    """The write lock. `epoch` grows with every acquisition and is in every entry of its holder."""

    epoch: int
    reentrance_id: str
    holder: str
    taken_ms: int
    expires_ms: int
    #: Where readers can ask to be notified of commits; empty when the writer does not listen.
    address: str = ""
    released: bool = False
    #: Whether its holder notes how far the log is (`persist.head`).
    noted: bool = False


class Era(msgspec.Struct, frozen=True, array_like=True):
    """The last commit of one writer, kept so that its fate is known after it was fenced."""

    epoch: int
    seqno: int
    token: str


class Garbage(msgspec.Struct, frozen=True, array_like=True):
    """A part that left the state: of which collection, at which entry, when."""

    key: str
    bytes: int
    collection: int
    seqno: int
    removed_ms: int


class State(msgspec.Struct, frozen=True):
    """All that is known of a location after entry `seqno`."""

    seqno: int = 0
    now_ms: int = 0
    next_collection: int = 1
    collections: dict[int, Collection] = {}
    names: dict[str, int] = {}
    holds: dict[str, Hold] = {}
    lock: Lock | None = None
    eras: tuple[Era, ...] = ()
    garbage: tuple[Garbage, ...] = ()

    def collection(self, ref: int | str) -> Collection:
        """The collection of that id or name, or `UnknownCollection`."""
        found = self.names.get(ref) if isinstance(ref, str) else ref
        collection = self.collections.get(found) if found is not None else None
        if collection is None:
            known = ", ".join(sorted(self.names)[:10])
            raise UnknownCollection(
                f'collection "{ref}" does not exist',
                detail=f"This location has {len(self.names)} collections"
                + (f": {known}." if known else "."),
                hint="Check the name, or create it: as a writer, with a schema.",
                collection=ref,
            )
        return collection

    @property
    def epoch(self) -> int:
        """The epoch of the newest writer; 0 before the first."""
        return self.lock.epoch if self.lock else 0


EMPTY = State()


def schema_to_wire(schema: Schema) -> tuple[WireColumn, ...]:
    """A schema as it is stored."""
    return tuple(WireColumn(*column) for column in schema.to_wire())


def schema_from_wire(columns: tuple[WireColumn, ...]) -> Schema:
    """A stored schema, parsed; equal inputs share one parsed object."""
    cached = _SCHEMAS.get(columns)
    if cached is None:
        cached = _SCHEMAS[columns] = Schema.from_wire(
            [(c.name, c.type, c.nullable) for c in columns]
        )
    return cached


_SCHEMAS: dict[tuple[WireColumn, ...], Schema] = {}


def _to_plain(value: Any) -> Any:
    if isinstance(value, Antichain):
        return list(value.elements)
    raise TypeError(f"{type(value).__name__} is not stored in the state")


def _from_plain(kind: Any, value: Any) -> Any:
    if getattr(kind, "__origin__", kind) is Antichain:
        return Antichain.of(value[0]) if value else EMPTY_FRONTIER
    raise TypeError(f"{kind} is not stored in the state")


encoder = msgspec.msgpack.Encoder(enc_hook=_to_plain)
state_decoder = msgspec.msgpack.Decoder(State, dec_hook=_from_plain)


def decoder(kind: type[Any]) -> msgspec.msgpack.Decoder[Any]:
    """A decoder for another struct that has frontiers in it."""
    return msgspec.msgpack.Decoder(kind, dec_hook=_from_plain)
