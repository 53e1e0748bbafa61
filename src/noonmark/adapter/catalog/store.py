"""The catalog, durable: a collection like any other, changed in the commits that it describes.

Its rows are (number, kind, schema, name, definition as JSON). One change of the catalog is one
transaction: the rows, and the Create, Rename and Drop commands of the collections that the rows
name. So there is no moment, and no crash, between an object and its name.

Numbers are never reused: the row of number 0 keeps the next one.

A location that was made without a catalog keeps its collections, for persist and Spark to read;
SQL does not know them, and does not take their names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from noonmark.adapter.catalog import audit
from noonmark.adapter.catalog.audit import ACTING, AuditTrail, differences
from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import KINDS, Item
from noonmark.errors import NewerFormat
from noonmark.oracle import TimestampOracle
from noonmark.persist.client import Client
from noonmark.persist.log import command as c
from noonmark.rows.domain import Domain
from noonmark.rows.schema import Schema
from noonmark.storage.description import CollectionDescription
from noonmark.storage.transaction import RETAIN_MS, Transaction, creation, own_capability
from noonmark.tvc import Antichain, Update

COLLECTION = "noonmark_catalog"
#: What the catalog itself is stored in.
SYSTEM_COLLECTIONS = frozenset((COLLECTION, audit.COLLECTION))
SCHEMA = Schema.of(
    number="bigint not null",
    kind="text not null",
    schema="text not null",
    name="text not null",
    definition="text not null",
)
_COUNTER = "next-number"


class Stored(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the JSON of a row holds."""

    columns: list[tuple[str, str, bool]] = []
    key: tuple[str, ...] = ()
    definition: dict[str, Any] = {}
    needs: tuple[int, ...] = ()
    part_of: int = 0
    owner: str = ""
    retain_ms: int | None = None
    comments: dict[str, str] = {}
    grants: dict[str, list[str]] = {}
    domains: dict[str, str] = {}


Row = tuple[int, str, str, str, str]


def to_row(item: Item) -> Row:
    """An item as a row of the collection."""
    stored = Stored(
        item.schema.to_wire(),
        item.key,
        dict(item.definition),
        item.needs,
        item.part_of,
        item.owner,
        item.retain_ms,
        dict(item.comments),
        {role: sorted(rights) for role, rights in sorted(item.grants.items())},
        {each.name: each.domain.uid for each in item.schema if each.domain is not None},
    )
    text = msgspec.json.encode(stored, order="deterministic").decode()
    return item.number, item.kind, item.schema_name, item.name, text


def from_row(row: Row) -> Item:
    """The item in a row.

    Raises:
        NewerFormat: a kind that this version does not know.
    """
    number, kind, schema_name, name, text = row
    found = next((each for each in KINDS if each == kind), None)
    if found is None:
        raise NewerFormat(
            f'the catalog has a {kind} ("{name}"), which this version does not know',
            hint="Use a newer version of Noonmark.",
        )
    stored = msgspec.json.decode(text, type=Stored)
    return Item(
        number=number,
        kind=found,
        schema_name=schema_name,
        name=name,
        schema=_declared(Schema.from_wire(stored.columns), stored.domains),
        key=stored.key,
        definition=stored.definition,
        needs=stored.needs,
        part_of=stored.part_of,
        owner=stored.owner,
        retain_ms=stored.retain_ms,
        comments=stored.comments,
        grants={role: frozenset(rights) for role, rights in stored.grants.items()},
    )


def _declared(schema: Schema, domains: Mapping[str, str]) -> Schema:
    """The columns with their domains, by uid: a catalog binds them."""
    if not domains:
        return schema
    own = {name: Domain(uid) for name, uid in domains.items()}
    return Schema(tuple(replace(each, domain=own.get(each.name)) for each in schema))


class CatalogStore:
    """The newest catalog, and the one way to change it. One change at a time."""

    def __init__(self, client: Client, oracle: TimestampOracle, system: Sequence[Item]) -> None:
        self._client = client
        self._oracle = oracle
        self._system = tuple(system)
        self._rows: dict[int, Row] = {}
        self.catalog = Catalog.of(self._system)
        self.audit = AuditTrail(client)
        #: Held by whoever changes the catalog, from planning to commit.
        self.turn = asyncio.Lock()

    def load(self) -> None:
        """Read what is stored; make an empty catalog where there is none. Blocks."""
        client = self._client
        missing: list[Callable[[int], c.Create]] = []
        if COLLECTION not in client.state.names:
            description = CollectionDescription(SCHEMA, ("number",), "catalog")
            missing.append(partial(creation, COLLECTION, description))
        if not self.audit.is_stored:
            missing.append(self.audit.creation)
        if missing:
            start = self._oracle.write_ts()
            client.submit(tuple(make(start) for make in missing)).result()
        self.read()

    def read(self) -> None:
        """Read what is stored. Blocks."""
        client = self._client
        if self.audit.is_stored:
            self.audit.load()
        read = client.create_or_load(COLLECTION)[1]
        upper = read.upper.only()
        assert upper is not None, "the catalog is never closed"
        if read.since == read.upper:
            return
        rows: list[Row] = read.snapshot(upper - 1).result().rows()
        self._rows = {row[0]: row for row in rows}
        counter = self._rows.get(0)
        items = [from_row(row) for number, row in self._rows.items() if number]
        self.catalog = Catalog.of(
            [*self._system, *items], int(counter[4]) if counter is not None else 1
        )

    async def settled(self) -> None:
        """Return when a change that is under way is known."""
        async with self.turn:
            pass

    async def change(
        self,
        added: Sequence[Item] = (),
        removed: Iterable[int] = (),
        beside: Callable[[int], Iterable[c.AnyCommand]] = lambda _: (),
    ) -> Catalog:
        """Replace the catalog, durably; the caller holds `turn`.

        Args:
            added: new and changed items.
            removed: the numbers of items to take away.
            beside: what else the transaction does, given its time.
        """
        after = self.catalog.changed(added, removed)
        time = await asyncio.to_thread(self._oracle.write_ts)
        transaction = Transaction(self._client)
        for command in beside(time):
            transaction.add(command)
        self.put(transaction, after, time, ACTING.get())
        # Nobody may change the catalog before it is known which one is stored.
        await transaction.decide(patient=True)
        self.became(after)
        await asyncio.to_thread(self._oracle.apply_write, time)
        return after

    def put(self, transaction: Transaction, after: Catalog, time: int, by: str | None) -> None:
        """Make a transaction replace the stored catalog; the caller holds `turn`.

        Args:
            transaction: what it is part of.
            after: the new catalog.
            time: of the transaction.
            by: the role whose statement it is, for the audit trail.
        """
        self._append_rows(transaction, self._rows_of(after), time)
        self.audit.put(transaction, differences(self.catalog, after), time, by)

    def became(self, after: Catalog) -> None:
        """A transaction that `put` it is durable: this is the catalog now."""
        self._rows = self._rows_of(after)
        self.catalog = after
        self.audit.became()

    def _rows_of(self, after: Catalog) -> dict[int, Row]:
        """The rows of another catalog; an item that is the same object has the row it had."""
        rows: dict[int, Row] = {0: (0, _COUNTER, "", "", str(after.next_number))}
        before = self.catalog.by_number
        for number, item in after.by_number.items():
            if item.kind != "system":
                same = before.get(number) is item
                rows[number] = self._rows[number] if same else to_row(item)
        return rows

    def _append_rows(self, transaction: Transaction, rows: dict[int, Row], time: int) -> None:
        """What changes the stored rows from the old ones to the new ones."""
        changed = {n for n in {*rows, *self._rows} if rows.get(n) != self._rows.get(n)}
        old = [Update(self._rows[n], time, -1) for n in sorted(changed) if n in self._rows]
        new = [Update(rows[n], time, 1) for n in sorted(changed) if n in rows]
        state = self._client.state
        own = own_capability(state, COLLECTION)
        transaction.update_and_downgrade(own, [*old, *new], time + 1)
        horizon = Antichain.of(max(0, time - RETAIN_MS))
        transaction.let_history_go(state.names[COLLECTION], horizon)
