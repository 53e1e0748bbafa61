"""Clients that append to lists and read them, whatever happens to the server.

Lists live in two tables, so that a transaction may write to both. Each client is a connection of
its own that does one transaction at a time:

    append     one INSERT, or BEGIN with several over both tables
    read       one list, with its time (mz_now) or without (the shortest way through the server)
    follow     one list through a temporal filter, which is asked at the clock's time
    several    BEGIN, lists of both tables one after the other, COMMIT
    both       BEGIN, read one list, append to another, COMMIT
    increment  UPDATE of a counter, alone or in BEGIN and COMMIT: reads and writes at once

Readers are clients that only read, perhaps through another server.

Counters check lost updates: each has as many as were acknowledged, and at most those that may have
happened besides.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Protocol

from noonmark.clock import SYSTEM
from support.strict.history import Op

LISTS_PER_ERA = 12
COUNTERS = 2
TABLES = ("even", "odd")
SETUP = (
    "create table if not exists even (k int, v int)",
    "create table if not exists odd (k int, v int)",
    "create table if not exists counter (k int, n int)",
)


class Lost(Exception):
    """The connection ended: what was sent last may have happened."""


class Refused(Exception):
    """The server said no: nothing happened."""


class Connection(Protocol):
    """One client's connection."""

    async def ask(self, sql: str, *values: Any) -> list[Any]:
        """Rows; raises `Lost` or `Refused`."""

    async def close(self) -> None: ...


Connect = Callable[[], Awaitable[Connection]]


class Load:
    """Clients over one server, or over all that come one after the other."""

    def __init__(
        self, connect: Connect, seed: int, clients: int = 12, readers: Sequence[Connect] = ()
    ) -> None:
        self._connect = connect
        self._random = Random(seed)
        self._clients = clients
        self._readers = readers
        self._next = 0
        self.era = 0
        self.ops: list[Op] = []
        self.acknowledged: Counter[int] = Counter()
        self.unknown: Counter[int] = Counter()

    async def run(self, count: int) -> list[Op]:
        """So many operations more; returns those of this era, whose lists are never used again."""
        return await self._run(iter(range(count)))

    async def run_until(self, done: asyncio.Event) -> list[Op]:
        """Operations until an event is set, in an era of their own."""
        return await self._run(iter(done.is_set, True))

    async def _run(self, left: Iterator[Any]) -> list[Op]:
        self.era += 1
        self.ops = []
        writing = (self._client(left, self._connect) for _ in range(self._clients))
        reading = (self._client(left, connect, reads=True) for connect in self._readers)
        await asyncio.gather(*writing, *reading)
        return self.ops

    async def _client(self, left: Iterator[Any], connect: Connect, reads: bool = False) -> None:
        connection = await connect()
        operation = self._any_read if reads else self._operation
        for _ in left:
            try:
                await operation(connection)
            except Lost:
                with suppress(Lost):
                    await connection.close()
                connection = await connect()
        await connection.close()

    async def _any_read(self, connection: Connection) -> None:
        kind = self._random.random()
        if kind < 0.3:
            await self._read(connection)
        elif kind < 0.7:
            await self._read_quickly(connection)
        else:
            await self._read_several(connection)

    async def _operation(self, connection: Connection) -> None:
        kind = self._random.random()
        if kind < 0.25:
            await self._append(connection)
        elif kind < 0.36:
            await self._read(connection)
        elif kind < 0.40:
            await self._read(connection, " and mz_now() >= k")
        elif kind < 0.80:
            await self._read_quickly(connection)
        elif kind < 0.88:
            await self._read_several(connection)
        elif kind < 0.93:
            await self._read_then_append(connection)
        else:
            await self._increment(connection)

    def _list(self) -> int:
        return self.era * LISTS_PER_ERA + self._random.randrange(LISTS_PER_ERA)

    def _value(self) -> int:
        self._next += 1
        return self._next

    async def _append(self, connection: Connection) -> None:
        several = self._random.random() < 0.4
        keys = [self._list() for _ in range(3 if several else 1)]
        op = Op(0, 0, "unknown", tuple((key, self._value()) for key in keys))
        self.ops.append(op)

        async def go() -> None:
            if several:
                await connection.ask("begin")
            for key, value in op.appends:
                await connection.ask(f"insert into {TABLES[key % 2]} values (%s, %s)", key, value)
            if several:
                await connection.ask("commit")

        await self._timed(connection, op, go)

    async def _read(self, connection: Connection, where: str = "") -> None:
        key = self._list()
        op = Op(0, 0, "unknown")

        async def go() -> None:
            sql = f"select mz_now(), array_agg(v) from {TABLES[key % 2]} where k = %s{where}"
            ((time, values),) = await connection.ask(sql, key)
            op.time, op.reads = int(time), {key: frozenset(values or ())}

        await self._timed(connection, op, go)
        self.ops.append(op)

    async def _read_quickly(self, connection: Connection) -> None:
        key = self._list()
        op = Op(0, 0, "unknown")

        async def go() -> None:
            rows = await connection.ask(f"select v from {TABLES[key % 2]} where k = %s", key)
            op.reads = {key: frozenset(value for (value,) in rows)}

        await self._timed(connection, op, go)
        self.ops.append(op)

    async def _read_several(self, connection: Connection) -> None:
        keys = sorted({self._list() for _ in range(3)})
        op = Op(0, 0, "unknown")

        async def go() -> None:
            reads = {}
            await connection.ask("begin")
            for key in keys:
                sql = f"select mz_now(), array_agg(v) from {TABLES[key % 2]} where k = %s"
                ((time, values),) = await connection.ask(sql, key)
                op.time, reads[key] = int(time), frozenset(values or ())
            await connection.ask("commit")
            op.reads = reads

        await self._timed(connection, op, go)
        self.ops.append(op)

    async def _read_then_append(self, connection: Connection) -> None:
        """Two of these that read each other's list and do not see each other are a cycle."""
        source, target = self._list(), self._list()
        op = Op(0, 0, "unknown", ((target, self._value()),))
        self.ops.append(op)

        async def go() -> None:
            await connection.ask("begin")
            sql = f"select mz_now(), array_agg(v) from {TABLES[source % 2]} where k = %s"
            ((time, values),) = await connection.ask(sql, source)
            (_, value) = op.appends[0]
            await connection.ask(f"insert into {TABLES[target % 2]} values (%s, %s)", target, value)
            await connection.ask("commit")
            op.time, op.reads = int(time), {source: frozenset(values or ())}

        await self._timed(connection, op, go)

    async def _increment(self, connection: Connection) -> None:
        key = self._random.randrange(COUNTERS)
        self.unknown[key] += 1
        op = Op(0, 0, "unknown")

        explicit = self._random.random() < 0.5

        async def go() -> None:
            if explicit:
                await connection.ask("begin")
            await connection.ask("update counter set n = n + 1 where k = %s", key)
            if explicit:
                await connection.ask("commit")

        await self._timed(connection, op, go)
        if op.outcome != "unknown":
            self.unknown[key] -= 1
        if op.outcome == "ok":
            self.acknowledged[key] += 1

    async def _timed(
        self, connection: Connection, op: Op, go: Callable[[], Awaitable[None]]
    ) -> None:
        op.began = SYSTEM.monotonic()
        try:
            await go()
            op.outcome = "ok"
        except Refused:
            op.outcome = "refused"
            await connection.ask("rollback")
        finally:
            op.ended = SYSTEM.monotonic()


async def set_up(connection: Connection) -> None:
    """The tables, and counters at zero."""
    for sql in SETUP:
        await connection.ask(sql)
    if not await connection.ask("select k from counter"):
        for key in range(COUNTERS):
            await connection.ask("insert into counter values (%s, %s)", key, 0)


async def now(connection: Connection) -> int:
    """A time at or after everything that was answered before."""
    ((time,),) = await connection.ask("select mz_now()")
    return int(time)


async def written(connection: Connection, after: int, last: int) -> dict[int, int]:
    """The time of every value that was written after one time, up to another."""
    found: dict[int, int] = {}
    for table in TABLES:
        sql = f"subscribe {table} with (snapshot = false) as of {after} up to {last + 1}"
        for time, _, _, value in await connection.ask(sql):
            found[value] = int(time)
    return found


async def counted(connection: Connection) -> dict[int, int]:
    """The counters as they are."""
    return dict(await connection.ask("select k, n from counter"))
