"""Planted bugs: each breaks one promise of reads and writes, and C7 must see it.

A mutant changes the product inside of the process that asks for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from noonmark.adapter.database import Database
from noonmark.adapter.peek.mirrors import Mirrors
from noonmark.adapter.peek.reads import Reads
from noonmark.adapter.session.transaction import OpenTransaction
from noonmark.adapter.table.committer import Tables
from noonmark.adapter.timestamp.oracle import Times
from noonmark.oracle.reserved import AsyncReservedOracle
from noonmark.persist.log import journal
from noonmark.persist.log.journal import Journal

Plant = Callable[[], None]
MUTANTS: dict[str, Plant] = {}
#: Those that show only when the server is killed and another one takes over.
KILLED: set[str] = set()
_TOUCHED = (
    AsyncReservedOracle, Database, Journal, Mirrors, OpenTransaction, Reads, Tables, Times,
)  # fmt: skip


def _mutant(plant: Plant) -> Plant:
    MUTANTS[plant.__name__.strip("_").replace("_", " ")] = plant
    return plant


def _when_killed(plant: Plant) -> Plant:
    KILLED.add(plant.__name__.strip("_").replace("_", " "))
    return _mutant(plant)


def plant(name: str | None) -> None:
    """Break the product as the mutant of that name does."""
    if name is not None:
        MUTANTS[name]()


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Break the product of this process for the length of a block."""
    before = {kind: dict(vars(kind)) for kind in _TOUCHED}
    plant(name)
    try:
        yield
    finally:
        for kind, attributes in before.items():
            for attribute, value in attributes.items():
                if vars(kind).get(attribute) is not value:
                    setattr(kind, attribute, value)


@_mutant
def _reads_one_tick_early() -> None:
    """A read is served at the time before the one that it should be at."""
    asked = Reads._question

    def early(self: Reads, names: Iterable[str], wish: Any, oracle: int) -> Any:
        return asked(self, names, wish, oracle - 1)

    Reads._question = early  # type: ignore[method-assign]


@_mutant
def _lost_group_commit() -> None:
    """Of writes that are committed together the last is acknowledged and forgotten."""
    accept = Tables._accept

    async def forgetful(self: Tables, group: Any) -> Any:
        accepted, totals, happened = await accept(self, group)
        if len(accepted) > 1:
            for name in accepted[-1].writes:
                totals[name].pop()
                if not totals[name]:
                    del totals[name]
        return accepted, totals, happened

    Tables._accept = forgetful  # type: ignore[method-assign]


@_mutant
def _acknowledged_before_durable() -> None:
    """A write is acknowledged when it is queued."""
    commit = Tables.commit
    waiting: set[asyncio.Future[None]] = set()

    async def eager(self: Tables, writes: Any, **given: Any) -> int:
        waiting.add(asyncio.ensure_future(_quiet(_later(lambda: commit(self, writes, **given)))))
        return await self._times.read_ts()

    Tables.commit = eager  # type: ignore[method-assign]


async def _later(act: Callable[[], Any]) -> None:
    await asyncio.sleep(0.01)
    await act()


async def _quiet(work: Any) -> None:
    await asyncio.gather(work, return_exceptions=True)


@_mutant
def _applied_write_forgotten() -> None:
    """The oracle is not told that a write is durable: reads stay where they were."""

    async def nothing(self: Times, time: int) -> None:
        if time % 4 == 0:
            await asyncio.to_thread(self.blocking.apply_write, time)

    Times.apply_write = nothing  # type: ignore[method-assign]


@_mutant
def _mirror_falls_behind() -> None:
    """What is in memory is taken for current."""
    now = Mirrors.now

    def stale(self: Mirrors, collection: Any, time: int) -> Any:
        mirror = self._mirrors.get(collection.id)
        if mirror is not None and time % 3 == 0:
            return mirror
        return now(self, collection, time)

    Mirrors.now = stale  # type: ignore[method-assign]


@_mutant
def _transaction_reads_at_many_times() -> None:
    """Every SELECT of a transaction chooses a time of its own."""
    OpenTransaction.time = property(lambda _: None)  # type: ignore[method-assign, assignment]
    OpenTransaction.hold = lambda self, held: None  # type: ignore[method-assign]  # noqa: ARG005


@_mutant
def _transaction_commits_table_by_table() -> None:
    """The tables of a transaction are written one after the other."""
    commit = Tables.commit

    async def torn(self: Tables, writes: Mapping[str, Any], **given: Any) -> int:
        time = 0
        for name, rows in writes.items():
            time = await commit(self, {name: rows}, **given)
        return time

    Tables.commit = torn  # type: ignore[method-assign]


@_mutant
def _lost_update() -> None:
    """Nobody looks whether what an UPDATE read is still true."""
    Tables._check_read = lambda self, request, changed: None  # type: ignore[method-assign]  # noqa: ARG005


@_mutant
def _old_times_of_the_oracle() -> None:
    """A read may get a time that was right a while ago."""
    read_ts = Times.read_ts
    kept: list[int] = []

    async def forgetful(self: Times) -> int:
        kept.append(await read_ts(self))
        return kept[-8] if len(kept) > 8 and len(kept) % 3 == 0 else kept[-1]

    Times.read_ts = forgetful  # type: ignore[method-assign]


@_when_killed
def _times_reused_after_a_restart() -> None:
    """A new owner of the oracle does not ask what the last one gave."""
    take = AsyncReservedOracle._take

    async def forgetful(self: AsyncReservedOracle, alone: bool) -> None:
        await take(self, alone)
        self._read = self._write = 0

    AsyncReservedOracle._take = forgetful  # type: ignore[method-assign]
    Database._catch_up_oracle = lambda self: None  # type: ignore[method-assign]  # noqa: ARG005


@_when_killed
def _a_write_forgotten_by_a_restart() -> None:
    """Every so often a commit is acknowledged from memory, and never reaches the log.

    The next server would refuse a log that is shorter than was noted: nobody looks at the note.
    """
    journal.check_tail = lambda *_: None  # type: ignore[assignment]
    put = Journal._put
    count = 0

    async def unsafe(self: Journal, entry: Any, data: bytes) -> bool:
        nonlocal count
        count += 1
        if count > 15:
            return True
        return await put(self, entry, data)

    Journal._put = unsafe  # type: ignore[method-assign]
