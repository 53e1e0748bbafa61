"""COMMIT of what a transaction did to the catalog: one commit, with the rows that it wrote.

What goes with the new catalog follows from the two catalogs alone, the one before and the one
after: collections of items that are gone are dropped, those of renamed ones get their new names,
those of new tables are made with the rows that the transaction wrote to them, those of new views
begin at the time of the commit. So it does not matter by which statements the transaction came from
the one to the other.

Law (all or nothing): catalog, collections and rows change in one commit of persist, or not at all.
Law (still true): see `catalog.staging`.

Not everything can wait for a COMMIT: what reaches outside (sources, sinks, connections) is refused
inside of a transaction (`alone`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.audit import ACTING
from noonmark.adapter.catalog.item import Kind
from noonmark.adapter.catalog.staging import Staging
from noonmark.adapter.schedule.definitions import view_definition
from noonmark.adapter.table.keys import first_rows
from noonmark.adapter.table.requests import Change
from noonmark.persist.client import Client
from noonmark.persist.log import command as c
from noonmark.persist.log.machine import apply
from noonmark.persist.pending import PendingClient
from noonmark.storage.description import CollectionDescription
from noonmark.storage.transaction import Transaction, completing
from noonmark.storage.transaction import creation as collection_creation

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.adapter.session.session import AdapterSession

Row = tuple[Any, ...]
Writes = Mapping[str, Sequence[tuple[Row, int]]]

#: The kinds that a transaction may make and drop.
STAGED: frozenset[Kind] = frozenset(
    ("table", "view", "materialized-view", "index", "schema", "role", "sequence", "type")
)
_VIEWS = ("materialized-view", "index")


def creation(item: Item, time: int, expected_id: int = 0) -> c.Create:
    """The command that makes the collection of an item."""
    description = CollectionDescription(item.schema, item.key, item.kind)
    return collection_creation(item.collection, description, time, expected_id)


class _Making:
    """The commands of a commit, and the state that they lead to.

    Args:
        database: where it is.
        staging: what the transaction did.
        catalog: the catalog that the commit leads to.
        before: what goes first: removals and renames.
    """

    def __init__(
        self,
        database: Database,
        staging: Staging,
        catalog: Catalog,
        before: Iterable[c.AnyCommand],
    ) -> None:
        self._database = database
        self._staging = staging
        self._catalog = catalog
        self._commands: list[c.AnyCommand] = []
        self.state = database.client.state
        self.add(*before)

    def add(self, *commands: c.AnyCommand) -> None:
        """Append commands."""
        self._commands += commands
        self.state = apply(self.state, commands, self._database.clock.now_ms())

    def make(self, time: int) -> dict[str, int]:
        """Everything new; the ids of the collections of tables, by what the transaction calls."""
        tables: dict[str, int] = {}
        for staged, item in self._staging.made(self._catalog):
            if item.kind == "table":
                ref = tables[staged.collection] = self.state.next_collection
                self.add(creation(item, time, ref))
                client = PendingClient(self._database.client, self.state)
                self.add(*completing(client, ref, time + 1))
            elif item.kind in _VIEWS:
                self.add(*self._view(item))
        return tables

    def _view(self, item: Item) -> c.Transaction:
        # door: Spark's modules: a server starts without them
        from noonmark.compute.view.view import View

        database = self._database
        client = PendingClient(database.client, self.state)
        definition = view_definition(self._catalog, item)
        return View(client, database.started_spark, definition).creation()

    def into(self, transaction: Transaction, rows: Mapping[int, pa.Table]) -> None:
        """Add the commands, and then the first rows of tables: upper moves with the commit."""
        for command in self._commands:
            transaction.add(command)
        for ref, table in rows.items():
            transaction.add_table(ref, self.state.collection(ref).key, 0, table)


async def staged_client(session: AdapterSession) -> Client:
    """The location as a statement finds it: with what its transaction made, renamed and dropped.

    Its collections are called as the transaction calls them.
    """
    from noonmark.adapter.statement.ddl.drop import removal_of  # door: it uses this module

    database, store = session.database, session.store
    if not isinstance(store, Staging) or not store.has_changed:
        return database.client
    making = _Making(database, store, store.catalog, await removal_of(database, store.gone()))
    making.make(database.clock.now_ms())
    return PendingClient(database.client, making.state)


async def commit_staged(
    database: Database,
    staging: Staging,
    *,
    writes: Writes = MappingProxyType({}),
    read_at: int | None = None,
    reads: Iterable[str] = (),
    ids: Mapping[str, int] = MappingProxyType({}),
    enforced: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Make a transaction durable that changed the catalog.

    Args:
        database: where.
        staging: what it did to the catalog.
        writes: the rows that it wrote, by collection.
        read_at: when it read.
        reads: the tables that it read.
        ids: the collections that those names meant.
        enforced: what the rows were held to when they were written.

    Raises:
        SerializationFailure: somebody else changed what it changed, needs or read.
        UniqueViolation: a key would be there twice; nothing happened.
    """
    from noonmark.adapter.statement.ddl.drop import removal_of  # door: it uses this module
    from noonmark.adapter.statement.ddl.rename import Renaming  # door: they stage, too

    store, by = database.store, ACTING.get()
    async with store.turn:
        catalog = staging.onto(store.catalog)
        gone, fresh = staging.gone(), staging.fresh()
        renaming = Renaming(database, catalog)
        removal = await removal_of(database, gone)
        numbers = [*(item.number for item in gone), *renaming.numbers]
        await database.work.remove(numbers)
        try:
            before = (*removal, *await renaming.commands())
            first = await _first_rows(database, staging, catalog, before, writes)

            def beside(transaction: Transaction, time: int) -> None:
                making = _Making(database, staging, catalog, before)
                made = making.make(time)
                making.into(transaction, {made[name]: rows(time) for name, rows in first.items()})
                store.put(transaction, catalog, time, by)

            await database.tables.commit(
                {name: rows for name, rows in writes.items() if name not in fresh},
                read_at=read_at,
                reads=frozenset(reads) - fresh,
                ids={name: met for name, met in ids.items() if name not in fresh},
                beside=beside,
                change=_change(staging, writes, lambda: store.became(catalog)),
                enforced={n: met for n, met in enforced.items() if n not in fresh},
            )
        except BaseException:
            await database.work.take_up(numbers)  # nothing was changed: it goes on
            raise
        made = [item.number for _, item in staging.made(catalog)]
        await database.work.take_up([*renaming.numbers, *made])


def _change(staging: Staging, writes: Writes, became: Callable[[], None]) -> Change:
    """What the committer is told of the catalog: also the rows of tables that are new."""
    fresh = staging.fresh()
    first = {name: rows for name, rows in writes.items() if name in fresh}
    return Change(staging.catalog, first, fresh, became)


async def _first_rows(
    database: Database,
    staging: Staging,
    catalog: Catalog,
    before: Iterable[c.AnyCommand],
    writes: Writes,
) -> dict[str, Callable[[int], pa.Table]]:
    """What was written to tables that the transaction made, by what it calls them."""
    making = _Making(database, staging, catalog, before)
    made = making.make(database.clock.now_ms())
    found: dict[str, Callable[[int], pa.Table]] = {}
    for name, ref in made.items():
        if rows := writes.get(name):
            collection = making.state.collection(ref)
            found[name] = await asyncio.to_thread(first_rows, collection, rows)
    return found
