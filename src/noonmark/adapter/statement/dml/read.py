"""What a statement that writes reads first, and how nothing is lost in between.

A statement that computes what it writes from tables (UPDATE, DELETE, INSERT ... SELECT) reads at a
time T and commits with ``read_at = T``. The commit is refused when one of the tables that were read
was written after T; then the statement, if it is alone, is run again at a newer time. Statements of
this kind on the same table wait for each other, so that they do not drive each other around.

Law (no lost update): what is committed is computed from tables that are unchanged at the time of
the commit.

Law (columns): what a statement takes out of a table has every column that the table had when it was
read. A statement that was planned before a column was added is planned again.

Only tables, and views over tables alone, may be read so: nobody can say that a source is unchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.peek.gather import Given, Multiset, columns_of, own_rows
from noonmark.adapter.session.transaction import (
    OpenTransaction,
    domain,
    weighed,
    writing,
)
from noonmark.errors import Overtaken, SerializationFailure, Unsupported
from noonmark.rows.schema import Schema

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.adapter.session.session import AdapterSession

Row = tuple[Any, ...]
Write = tuple[Row, int]
Writes = Mapping[str, Sequence[Write]]

#: How often a statement is run again when others wrote in between.
TRIES_MAX = 100

_LOCKS: WeakKeyDictionary[Database, dict[str, asyncio.Lock]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Reading:
    """A read of one time, that sees what its transaction has written.

    Attributes:
        session: who reads.
        time: when.
        pending: the transaction's own writes, by collection.
        fresh: the collections that the transaction made, of which nothing is stored.
        given: of those that only the statement has, their columns.
    """

    session: AdapterSession
    time: int
    pending: Writes
    fresh: frozenset[str] = frozenset()
    given: Mapping[str, Schema] = field(default_factory=dict)

    @property
    def now(self) -> int:
        """What mz_now() is: what is read is true until the commit."""
        return max(self.time, self.session.database.clock.now_ms())

    async def multiset(self, peek: Peek) -> Multiset:
        """The rows of a peek."""
        reads, system = self.session.database.reads, self.session.system_rows
        if not any(self.pending.get(n) or n in self.fresh for n in peek.collections):
            return await reads.multiset(peek, self.time, system)
        stored = [name for name in peek.collections if name not in self.fresh]
        await reads.complete(stored, self.time)
        await reads.check_errors(stored, self.time)
        given: dict[str, Given] = {}
        for leaf in peek.shape.leaves:
            rows: Given = ()
            if leaf.collection not in self.fresh:
                rows = await reads.answers.leaf(leaf, peek, self.time, system)
            own = self.pending.get(leaf.collection)
            if own:
                schema = self._schema(leaf.collection)
                filled = [(schema.fill(row), count) for row, count in own]
                rows = [*rows, *own_rows(leaf, columns_of(leaf, schema, filled))]
            given[leaf.name] = rows
        return await reads.answers.computed(peek, given)

    def _schema(self, collection: str) -> Schema:
        if collection in self.given:
            return self.given[collection]
        item = self.session.catalog.of_collection(collection)
        assert item is not None, "only tables of the catalog are written"
        return item.schema


@dataclass(frozen=True)
class Needs:
    """The tables that a statement reads, and whether it reads nothing else (no views of them)."""

    tables: frozenset[str]
    only_tables: bool = True


def tables_read(catalog: Catalog, leaves: Iterable[Item], position: int | None = None) -> set[str]:
    """The collections of all tables below what is read.

    Raises:
        Unsupported: a source is among it.
    """
    tables, source = checked(catalog, leaves)
    if source is not None:
        raise Unsupported(
            f'a statement that writes cannot read source "{source}"',
            detail="It may have changed by the time of the write, and nobody would know.",
            hint="Read tables, or views over tables alone.",
            position=position,
        )
    return tables


def checked(catalog: Catalog, leaves: Iterable[Item]) -> tuple[set[str], str | None]:
    """The collections of all tables below what is read, and a source below it, if there is one."""
    numbers = [item.number for item in leaves if not item.is_virtual]
    tables: set[str] = set()
    source: str | None = None
    for item in catalog.needs(numbers):
        if item.kind in ("source", "subsource", "progress", "errors"):
            source = item.name
        elif item.kind == "table":
            tables.add(item.collection)
    return tables, source


#: Computes what is written, and what the statement gives, from one read.
Compute = Callable[[Reading], Awaitable[tuple[Writes, Any]]]


async def read_then_write(session: AdapterSession, needs: Needs, compute: Compute) -> Any:
    """Compute and commit; in a transaction, compute and leave it to COMMIT."""
    transaction, reads = await writing(session), needs.tables
    if transaction is not None:
        fresh = transaction.fresh
        reads -= fresh
        time = await time_inside(session, transaction, reads)
        writes, result = await compute(Reading(session, time, transaction.pending, fresh))
        await transaction.write(writes, time, reads)
        return result
    async with _turn(session.database, reads):
        for attempt in range(TRIES_MAX):
            ids = session.database.tables.ids(reads)
            time = await _time(session, needs)
            writes, result = await compute(Reading(session, time, {}))
            if not any(writes.values()):
                return result
            try:
                with session.account.holding("changes", await weighed(writes)):
                    await session.database.tables.commit(writes, read_at=time, reads=reads, ids=ids)
            except SerializationFailure:
                if attempt == TRIES_MAX - 1:
                    raise
            else:
                return result
    raise AssertionError("the last attempt returns or raises")


async def time_inside(
    session: AdapterSession, transaction: OpenTransaction, reads: frozenset[str]
) -> int:
    """The time at which a transaction reads; chosen now if this is its first read."""
    if transaction.time is not None:
        return transaction.time
    # Later statements of the transaction read there too, and other tables.
    all_ = partial(domain, session, reads)
    choice, held = await session.database.reads.choose_held(sorted(reads), domain=all_)
    transaction.hold(held)
    return choice.time


async def read_then_insert(
    session: AdapterSession,
    needs: Needs,
    name: str,
    compute: Callable[[int], Awaitable[pa.Table | None]],
) -> int | None:
    """Compute rows as columns at one time, and commit them; how many there were.

    None where that cannot be done, or others wrote meanwhile: nothing has happened then.
    """
    tables = session.database.tables
    async with _turn(session.database, needs.tables):
        ids = tables.ids(needs.tables)
        time = await _time(session, needs)
        data = await compute(time)
        if data is None or not data.num_rows:
            return None if data is None else 0
        with session.account.holding("changes", data.nbytes):
            done = await tables.insert(name, data, read_at=time, reads=needs.tables, ids=ids)
        return None if done is None else int(data.num_rows)


def check_columns(session: AdapterSession, *items: Item) -> None:
    """Called after a read: the rows that were read have all the columns of their tables.

    Raises:
        Overtaken: a column was added since the statement was planned.
    """
    state = session.database.client.state
    for item in items:
        found = state.names.get(item.collection)
        if found is not None and len(state.collection(found).schema) != len(item.schema):
            raise Overtaken(f'columns were added to "{item.name}" meanwhile')


async def _time(session: AdapterSession, needs: Needs) -> int:
    """When to read: now where tables need not be made complete for it, else as a SELECT would."""
    if needs.only_tables:
        time = session.database.tables.settled_at(needs.tables)
        if time is not None:
            return time
    return (await session.database.reads.choose(sorted(needs.tables))).time


@asynccontextmanager
async def _turn(database: Database, tables: Iterable[str]) -> AsyncIterator[None]:
    """Wait for other statements that read and write these tables."""
    locks = _LOCKS.setdefault(database, {})
    async with AsyncExitStack() as stack:
        for name in sorted(tables):  # always in one order: nobody waits in a circle
            await stack.enter_async_context(locks.setdefault(name, asyncio.Lock()))
        yield


async def write(session: AdapterSession, writes: Writes, *items: Item) -> None:
    """Commit what was computed from nothing; in a transaction, leave it to COMMIT.

    Args:
        session: whose.
        writes: (row, diff) by collection.
        items: the tables as they were when it was computed.
    """
    transaction = await writing(session)
    if transaction is not None:
        await transaction.write(writes)
    elif any(writes.values()):
        check_columns(session, *items)
        with session.account.holding("changes", await weighed(writes)):
            await session.database.tables.commit(writes)
