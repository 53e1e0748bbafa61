"""Who did what to the catalog, and when: kept beside the catalog, written by the same commits.

An event is what tells two catalogs that follow each other apart, so no statement has to say that it
did something, and none can forget to.

Law: `differences(a, b)` is empty exactly when a and b have the same objects with the same names,
owners, rights, comments and definitions; a catalog that is changed back gives other events, never
none. Law (one commit): a change of the catalog and its events are durable together or not at all.

An event names objects. It holds no definition, and so no secret. The newest `EVENTS_MAX` are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import DATABASE, TEMPORARY, TEMPORARY_PREFIX, Item
from noonmark.persist.client import Client
from noonmark.persist.log import command as c
from noonmark.rows import jsonb
from noonmark.rows.schema import Schema
from noonmark.storage.description import CollectionDescription
from noonmark.storage.transaction import RETAIN_MS, Transaction, creation, own_capability
from noonmark.tvc import Antichain, Update

COLLECTION = "noonmark_audit"
SCHEMA = Schema.of(
    id="bigint not null",
    occurred_ms="bigint not null",
    event="text not null",
    object_type="text not null",
    details="jsonb not null",
    role="text",
)
EVENTS_MAX = 10_000

#: (id, time in milliseconds, event, kind of object, details, role)
Event = tuple[int, int, str, str, str, str | None]
Difference = tuple[str, str, dict[str, str]]

#: Whose statement is under way; None for what the server does by itself.
ACTING: ContextVar[str | None] = ContextVar("acting", default=None)


def differences(before: Catalog, after: Catalog) -> Iterator[Difference]:
    """What tells two catalogs apart: (event, kind of object, details), in the order of numbers."""
    for number in sorted({*before.by_number, *after.by_number}):
        old, new = before.by_number.get(number), after.by_number.get(number)
        if old is not new and not _is_private(new or old):
            yield from _of_item(old, new)


def _is_private(item: Item | None) -> bool:
    """Whether it belongs to one session, or comes with Noonmark."""
    assert item is not None, "it is in one of the two catalogs"
    schema = item.schema_name or item.name
    return item.kind == "system" or schema == TEMPORARY or schema.startswith(TEMPORARY_PREFIX)


def _of_item(old: Item | None, new: Item | None) -> Iterator[Difference]:
    if old is None or new is None:
        item = old or new
        assert item is not None
        yield ("create" if old is None else "drop"), item.kind, _named(item)
        return
    named = _named(new)
    if (old.schema_name, old.name) != (new.schema_name, new.name):
        yield "alter", new.kind, {**named, "old_schema": old.schema_name, "old_name": old.name}
    if old.owner != new.owner:
        yield "alter", new.kind, {**named, "old_owner": old.owner, "new_owner": new.owner}
    if _defined(old) != _defined(new):
        yield "alter", new.kind, named
    if old.comments != new.comments:
        yield "comment", new.kind, named
    for role in sorted({*old.grants, *new.grants}):
        had, has = old.grants.get(role, frozenset()), new.grants.get(role, frozenset())
        for event, rights in (("grant", has - had), ("revoke", had - has)):
            if rights:
                yield event, new.kind, {**named, "role": role, "rights": ", ".join(sorted(rights))}


def _named(item: Item) -> dict[str, str]:
    return {"id": item.id, "database": DATABASE, "schema": item.schema_name, "item": item.name}


def _defined(item: Item) -> tuple[object, ...]:
    return (
        item.kind, item.schema, item.key, dict(item.definition), item.needs, item.part_of,
        item.retain_ms,
    )  # fmt: skip


class AuditTrail:
    """The newest events, and how they are written beside a change of the catalog."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.events: deque[Event] = deque()
        #: Written by a transaction that is not known to be durable yet.
        self._pending: list[Event] = []

    @property
    def is_stored(self) -> bool:
        """Whether the location has a collection of events: older versions made none."""
        return COLLECTION in self._client.state.names

    def creation(self, start: int) -> c.Create:
        """What makes the collection."""
        return creation(COLLECTION, CollectionDescription(SCHEMA, ("id",), "audit events"), start)

    def load(self) -> None:
        """Read what is stored. Blocks."""
        read = self._client.create_or_load(COLLECTION)[1]
        upper = read.upper.only()
        assert upper is not None, "the collection of events is never closed"
        if read.since != read.upper:
            self.events = deque(sorted(read.snapshot(upper - 1).result().rows()))

    def put(
        self, transaction: Transaction, found: Iterator[Difference], time: int, by: str | None
    ) -> None:
        """Make a transaction store the events of a change."""
        first = self.events[-1][0] + 1 if self.events else 1
        self._pending = [
            (number, time, event, kind, jsonb.canonical(dict(details)), by)
            for number, (event, kind, details) in enumerate(found, first)
        ]
        if not self._pending:
            return
        surplus = max(0, len(self.events) + len(self._pending) - EVENTS_MAX)
        gone = [Update(self.events[at], time, -1) for at in range(min(surplus, len(self.events)))]
        new = [Update(each, time, 1) for each in self._pending]
        state = self._client.state
        transaction.update_and_downgrade(own_capability(state, COLLECTION), [*gone, *new], time + 1)
        horizon = Antichain.of(max(0, time - RETAIN_MS))
        transaction.let_history_go(state.names[COLLECTION], horizon)

    def became(self) -> None:
        """What was put is durable."""
        self.events.extend(self._pending)
        self._pending = []
        while len(self.events) > EVENTS_MAX:
            self.events.popleft()
