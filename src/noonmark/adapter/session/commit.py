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
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.audit import ACTING
from noonmark.adapter.catalog.item import Kind
from noonmark.adapter.catalog.staging import Staging
from noonmark.adapter.planner import PLANNER
from noonmark.adapter.schedule.definitions import view_definition
from noonmark.adapter.table.keys import first_rows
from noonmark.adapter.table.requests import Change
from noonmark.adapter.weight import weight_of
from noonmark.compute.plan.definition import Definition
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


class _Definitions:
    """What the views stand for that a transaction made: planned beside others, and once."""

    def __init__(self, staging: Staging) -> None:
        self._staging = staging
        self._known: dict[int, tuple[list[Item], Definition]] = {}

    async def of(self, catalog: Catalog) -> dict[int, Definition]:
        """By the numbers of their items in the catalog that a commit leads to."""
        found: dict[int, Definition] = {}
        for staged, item in self._staging.made(catalog):
            if item.kind not in _VIEWS:
                continue
            # What the transaction made itself may be numbered anew; nothing else of it changes.
            first = self._staging.base.next_number
            before = [each for each in catalog.needs([item.number]) if each.number < first]
            known = self._known.get(staged.number)
            if known is None or known[0] != before:
                weight = weight_of(catalog, item.definition["query"])
                known = before, await PLANNER.run(weight, _planned, catalog, item)
                self._known[staged.number] = known
            found[item.number] = known[1]
        return found


def _planned(catalog: Catalog, item: Item) -> Definition:
    definition = view_definition(catalog, item)
    assert definition.plan is not None, "a view has a plan: it is kept with its definition"
    return definition


class _Making:
    """The commands of a commit, and the state that they lead to.

    Args:
        database: where it is.
        staging: what the transaction did.
        catalog: the catalog that the commit leads to.
        before: what goes first: removals and renames.
        definitions: what its views stand for.
    """

    def __init__(
        self,
        database: Database,
        staging: Staging,
        catalog: Catalog,
        before: Iterable[c.AnyCommand],
        definitions: Mapping[int, Definition],
    ) -> None:
        self._definitions = definitions
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
        definition = self._definitions[item.number]
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
    removal, definitions = await removal_of(database, store.gone()), _Definitions(store)
    making = _Making(database, store, store.catalog, removal, await definitions.of(store.catalog))
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

    store, by, definitions = database.store, ACTING.get(), _Definitions(staging)
    await definitions.of(staging.onto(store.catalog))  # while others change the catalog
    async with store.turn:
        views = await definitions.of(catalog := staging.onto(store.catalog))
        gone, fresh = staging.gone(), staging.fresh()
        renaming, removal = Renaming(database, catalog), await removal_of(database, gone)
        await database.work.remove(numbers := [*(each.number for each in gone), *renaming.numbers])
        try:
            before = (*removal, *await renaming.commands())
            begun = partial(_Making, database, staging, catalog, before, views)
            first = await _first_rows(database, begun(), writes)

            def beside(transaction: Transaction, time: int) -> None:
                made = (making := begun()).make(time)
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
        new = (item.number for _, item in staging.made(catalog))
        await database.work.take_up([*renaming.numbers, *new])


def _change(staging: Staging, writes: Writes, became: Callable[[], None]) -> Change:
    """What the committer is told of the catalog: also the rows of tables that are new."""
    fresh = staging.fresh()
    first = {name: rows for name, rows in writes.items() if name in fresh}
    return Change(staging.catalog, first, fresh, became)


async def _first_rows(
    database: Database, making: _Making, writes: Writes
) -> dict[str, Callable[[int], pa.Table]]:
    """What was written to tables that the transaction made, by what it calls them."""
    made = making.make(database.clock.now_ms())
    found: dict[str, Callable[[int], pa.Table]] = {}
    for name, ref in made.items():
        if rows := writes.get(name):
            collection = making.state.collection(ref)
            found[name] = await asyncio.to_thread(first_rows, collection, rows)
    return found
