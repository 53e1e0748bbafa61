"""C7: clients over real connections, while the server is killed and started again.

One run is a folder, its servers one after the other, and eras: a number of operations with kills
among them, after which the history of the era is judged.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from noonmark.adapter.database import Database
from noonmark.errors import InternalError, NoonmarkError
from support.kill.kills import environment
from support.serve.reading import Conversation, connect
from support.strict.history import violations
from support.strict.load import (
    COUNTERS,
    Connection,
    Load,
    Lost,
    Refused,
    counted,
    now,
    set_up,
    written,
)

#: A busy machine imports slowly.
START_S = 180.0


class Wire:
    """A connection over PostgreSQL's protocol."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    async def ask(self, sql: str, *values: Any) -> list[Any]:
        try:
            cursor = await self._connection.execute(sql, values or None)
            return await cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            if error.sqlstate is None or self._connection.closed or error.sqlstate[:2] == "57":
                raise Lost(str(error)) from error
            raise Refused(str(error)) from error

    async def close(self) -> None:
        await self._connection.close()


class Inside:
    """A connection without a wire, to a database of this process."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def ask(self, sql: str, *values: Any) -> list[Any]:
        numbers = iter(range(1, 10))
        numbered = re.sub("%s", lambda _: f"${next(numbers)}", sql)
        try:
            found = await self._conversation.ask(numbered, *values)
        except InternalError as error:
            raise Lost(str(error)) from error
        except NoonmarkError as error:
            self._conversation.session.fail()
            raise Refused(str(error)) from error
        return [] if isinstance(found, str) else found

    async def close(self) -> None:
        await self._conversation.session.close()


class NotServed(AssertionError):
    """A server that was started on what the last one left does not serve."""


class Servers:
    """One server at a time, on one folder."""

    def __init__(self, folder: Path, mutant: str | None = None) -> None:
        self._folder = folder
        self._mutant = mutant
        self._child: asyncio.subprocess.Process | None = None
        self._port: asyncio.Future[int] | None = None
        self.kills = 0

    async def start(self) -> None:
        if self._port is None:
            self._port = asyncio.get_running_loop().create_future()
        arguments = [str(self._folder), *([self._mutant] if self._mutant else [])]
        self._child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "support.strict.server", *arguments,
            stdout=asyncio.subprocess.PIPE, env=environment(),
        )  # fmt: skip
        assert self._child.stdout is not None
        async with asyncio.timeout(START_S):
            line = await self._child.stdout.readline()
        if not line:
            raise NotServed("the server ended before it served")
        self._port.set_result(int(line))

    async def kill(self) -> None:
        """kill -9, and the next one at once."""
        assert self._child is not None
        # Who connects from now on waits for the next server.
        self._port = asyncio.get_running_loop().create_future()
        self._child.kill()
        await self._child.wait()
        self.kills += 1
        await self.start()

    async def connect(self) -> Connection:
        while True:
            assert self._port is not None
            port = await self._port
            try:
                found = await psycopg.AsyncConnection.connect(
                    f"host=127.0.0.1 port={port} user=noonmark dbname=noonmark sslmode=disable",
                    autocommit=True,
                )
            except psycopg.OperationalError:
                await asyncio.sleep(0.02)
                continue
            return Wire(found)

    async def stop(self) -> None:
        if self._child is not None and self._child.returncode is None:
            self._child.kill()
            await self._child.wait()


@asynccontextmanager
async def servers(folder: Path, mutant: str | None = None) -> AsyncIterator[Servers]:
    running = Servers(folder, mutant)
    await running.start()
    try:
        yield running
    finally:
        await running.stop()


async def run_killed(
    folder: Path,
    count: int,
    seed: int,
    *,
    era: int = 2_000,
    kills: int = 1,
    mutant: str | None = None,
) -> tuple[list[str], Counter[str]]:
    """So many operations, in eras with so many kills each; violations, and what was done."""
    random, faults = Random(seed), Counter[str]()
    found: list[str] = []
    async with servers(folder, mutant) as running:
        load = Load(running.connect, seed)
        first = await running.connect()
        await set_up(first)
        after = await now(first)
        await first.close()
        for start in range(0, count, era):
            size = min(era, count - start)
            # Together: who waits for a server that does not start hears of it.
            try:
                await asyncio.gather(
                    load.run(size), _kill_among(running, load, size, kills, random)
                )
            except NotServed as error:
                found.append(str(error))
                break
            watcher = await running.connect()
            found += await judge(watcher, load, after)
            after = await now(watcher)
            await watcher.close()
            faults["operations"] += size
            if found:
                break
        faults["kills"] = running.kills
    return found, faults


async def _kill_among(running: Servers, load: Load, era: int, kills: int, random: Random) -> None:
    """Kill when so many operations of an era are done."""
    for moment in sorted(random.randrange(era // 10, era * 9 // 10) for _ in range(kills)):
        while len(load.ops) < moment * 0.9:
            await asyncio.sleep(0.002)
        await asyncio.sleep(random.random() * 0.05)
        await running.kill()


async def run_inside(opened: Database, count: int, seed: int) -> list[str]:
    """The same operations on a database of this process, which nobody kills."""

    async def open_one() -> Connection:
        return Inside(await connect(opened))

    load = Load(open_one, seed)
    first = await open_one()
    await set_up(first)
    after = await now(first)
    await load.run(count)
    return await judge(await open_one(), load, after)


async def judge(connection: Connection, load: Load, after: int) -> list[str]:
    """What is wrong with the operations of an era that began after a time."""
    try:
        last = await now(connection)
        found = violations(load.ops, await written(connection, after, last))
        counters = await counted(connection)
    except Refused as error:
        return [f"what is there cannot be read: {error}"]
    for key in range(COUNTERS):
        least = load.acknowledged[key]
        if not least <= counters.get(key, 0) <= least + load.unknown[key]:
            found.append(f"counter {key} is {counters.get(key)}, acknowledged {least} times")
    return found
