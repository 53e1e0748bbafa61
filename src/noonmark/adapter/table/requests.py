"""What waits for the committer of tables: writes, and wishes that tables become complete.

Each has a future, told exactly once what became of it: `resolve`, or `refuse` with the reason. See
`noonmark.adapter.table.committer` for the laws of the committer.

Where it runs: the adapter's loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from noonmark import defect
from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import Item
from noonmark.adapter.table.constraints import Foreign
from noonmark.errors import NoonmarkError, SerializationFailure
from noonmark.persist.part.run import DIFF, TIME
from noonmark.storage.transaction import Transaction

Row = tuple[Any, ...]
Write = tuple[Row, int]
#: Adds to a commit, given its time.
Beside = Callable[[Transaction, int], None]


@dataclass(frozen=True)
class Encoded:
    """Rows of one table as they are stored, still without a time."""

    collection: int
    data: pa.Table
    diffs: pa.Array

    @classmethod
    def of(cls, collection: int, data: pa.Table, writes: Sequence[Write]) -> Encoded:
        """Rows with their own diffs."""
        return cls(collection, data, pa.array([diff for _, diff in writes], pa.int64()))

    @classmethod
    def inserted(cls, collection: int, data: pa.Table) -> Encoded:
        """Rows that come in, each once."""
        return cls(collection, data, pa.repeat(pa.scalar(1, pa.int64()), data.num_rows))


@dataclass(frozen=True)
class Change:
    """A change of the catalog that is part of a commit.

    Attributes:
        catalog: the catalog that it leads to, as the transaction calls its collections.
        fresh: the first rows of the tables that it makes.
        made: the collections of those tables, as the transaction calls them.
        became: called when it is durable, before anything else is committed.
    """

    catalog: Catalog
    fresh: Mapping[str, Sequence[Write]]
    made: frozenset[str]
    became: Callable[[], None]


@dataclass(eq=False)
class Request:
    """A write that waits, and the future of who waits for it.

    Attributes:
        writes: (row, diff) by collection.
        encoded: the same as they are stored.
        read_at: the time at which they were computed, if from something.
        reads: the tables that they were computed from.
        ids: the collections that names meant when they were computed, where that was earlier.
        beside: adds more to the commit, which is then of this alone.
        change: the change of the catalog that goes with it.
        enforced: what the rows of each table were held to when they were computed.
        seen: when a table was looked at, where that is another time than `read_at`.
    """

    writes: Mapping[str, Sequence[Write]]
    encoded: Mapping[str, Encoded]
    read_at: int | None
    reads: frozenset[str]
    ids: Mapping[str, int]
    beside: Beside | None = None
    change: Change | None = None
    enforced: Mapping[str, Any] = field(default_factory=dict)
    seen: Mapping[str, int] = field(default_factory=dict)
    done: asyncio.Future[int] = field(default_factory=asyncio.Future)

    def seen_at(self) -> Iterator[tuple[str, int]]:
        """The tables that must be as they were at a time, and that time."""
        yield from self.seen.items()
        if self.read_at is not None:
            for name in self.reads or self.writes:
                if name not in self.seen:
                    yield name, self.read_at


@dataclass(eq=False)
class Try:
    """Rows that a transaction would write, to be told what is wrong with them.

    Attributes:
        writes: (row, diff) by collection.
        before: what the transaction wrote before.
        pending: the same, counted already, where it is (`noonmark.adapter.table.tries`).
        change: what the transaction did to the catalog.
        waits: whether a foreign key is deferred.
    """

    writes: Mapping[str, Sequence[Write]]
    before: Mapping[str, Sequence[Write]]
    pending: Any
    change: Change | None
    waits: Callable[[Item, Foreign], bool]
    done: asyncio.Future[Any] = field(default_factory=asyncio.Future)


@dataclass(eq=False)
class Advance:
    """A wish that tables become complete at a time."""

    time: int
    names: frozenset[str]
    done: asyncio.Future[None] = field(default_factory=asyncio.Future)


@dataclass(frozen=True)
class Draft:
    """A transaction that is ready to be committed, and who waits for it."""

    time: int
    transaction: Transaction
    accepted: list[Request]
    advances: list[Advance]
    written: frozenset[int]
    happened: Callable[[], None] = lambda: None


class NotDrafted(Exception):
    """Requests could not be put together; the cause says why. Nothing was committed."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def updates_at(time: int, parts: list[Encoded]) -> pa.Table:
    """The rows as updates at one time."""
    # One that was encoded before a column was added lacks it: there it is NULL.
    table = pa.concat_tables([part.data for part in parts], promote_options="default")
    diffs = pa.concat_arrays([part.diffs for part in parts])
    times = pa.repeat(pa.scalar(time, pa.int64()), len(diffs))
    names = [*table.column_names, TIME, DIFF]
    # Not `append_column`: a table without columns has lost how many rows it has.
    return pa.table([*table.columns, times, diffs], names)


def written(name: str, time: int) -> SerializationFailure:
    """A table is not what it was when something was computed from it."""
    return SerializationFailure(
        "could not serialize access due to concurrent update",
        detail=f'"{name}" was written after {time}.',
        hint="The transaction might succeed if it is run again.",
    )


def moved(name: str) -> SerializationFailure:
    """A name means another collection than it did when rows were computed."""
    return SerializationFailure(
        "could not serialize access due to a concurrent change of the catalog",
        detail=f'"{name}" was renamed or dropped meanwhile.',
        hint="The transaction might succeed if it is run again.",
    )


def refuse(future: asyncio.Future[Any], error: NoonmarkError) -> None:
    """Tell who waits why it did not happen, unless it was told already."""
    if not future.done():
        future.set_exception(error)


def refuse_all(
    group: Sequence[Request | Try], advances: Sequence[Advance], error: Exception
) -> None:
    """Tell everybody; what nobody foresaw has its traceback in the log."""
    why = error.cause if isinstance(error, NotDrafted) else error
    if not isinstance(why, NoonmarkError):
        why = defect.report(why, "a commit of tables")
    waiting: list[asyncio.Future[Any]] = [each.done for each in group]
    waiting += [each.done for each in advances]
    for each in waiting:
        refuse(each, why)


def resolve(future: asyncio.Future[Any], value: Any) -> None:
    """Tell who waits that it is durable, unless it was told already."""
    if not future.done():
        future.set_result(value)


async def none_before() -> None:
    """Nothing comes before a commit."""
