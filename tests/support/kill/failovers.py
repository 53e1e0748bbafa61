"""Servers that stand by for each other, and clients that reconnect, judged as C7 judges.

One server writes, one stands by, and perhaps one only reads; the writer is killed, and another
standby is started at its place. Clients of C7 (`strict.load`) know both addresses, as libpq does;
readers ask the read-only server with strict isolation. The whole history, over all failovers, is
what `strict.history` judges: nothing acknowledged is lost, every read is the fold of the writes at
or before its time, times respect real time, no cycle. Besides, a violation is

    late      a client that no server answered for longer than `BACK_S`
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import IO, Any

import psycopg

from noonmark.clock import SYSTEM
from support.neighbour.servers import free_ports
from support.serve.process import command
from support.strict.load import Connection, Load, Refused, now, set_up
from support.strict.run import Wire, judge

BACK_S = 10.0
#: Failovers of one era, whose history is judged when it ends.
ERA = 5


@dataclass
class Pair:
    """Two places for servers on one location, and one for a server that only reads.

    Attributes:
        options: where the location is.
        ports: of PostgreSQL's protocol, one a place.
        running: the process at each place.
        waits_s: how long clients had to wait for an answer after they were cut off.
    """

    options: tuple[str, ...]
    ports: list[int]
    log: IO[bytes]
    running: dict[int, asyncio.subprocess.Process] = field(default_factory=dict)
    waits_s: list[float] = field(default_factory=list)

    async def start(self, place: int, mode: str = "--standby") -> None:
        """A server; a standby writes as soon as nobody else does."""
        listen = ("--pg", f"127.0.0.1:{self.ports[place]}", "--http", "127.0.0.1:0")
        self.running[place] = await asyncio.create_subprocess_exec(
            *command(*self.options, *listen, mode), stdout=subprocess.PIPE, stderr=self.log
        )

    async def await_ready(self, place: int) -> None:
        """Until the server at a place serves."""
        stdout = self.running[place].stdout
        assert stdout is not None
        line = await stdout.readline()
        if not line.startswith(b"ready"):
            self.log.seek(0)
            raise AssertionError(f"no ready line, but {line!r}: {self.log.read()[-2000:]!r}")

    async def kill(self, place: int, how: signal.Signals = signal.SIGKILL) -> None:
        """At once, without a word; or by asking it to stop, as for an upgrade."""
        process = self.running.pop(place)
        if process.returncode is None:
            process.send_signal(how)
        await process.wait()

    async def connect(self) -> Connection:
        """A connection to whoever answers of those that write, as libpq looks for one."""
        return await self._connect(self.ports[:2])

    async def connect_reader(self) -> Connection:
        """A connection to the server that only reads, which asks the writer's oracle."""
        return await self._connect(self.ports[2:])

    async def _connect(self, ports: Sequence[int]) -> Connection:
        began = SYSTEM.monotonic()
        while True:
            try:
                found = await psycopg.AsyncConnection.connect(
                    host=",".join("127.0.0.1" for _ in ports),
                    port=",".join(map(str, ports)),
                    user="me",
                    dbname="noonmark",
                    autocommit=True,
                    connect_timeout=5,
                )
                await found.execute("set transaction_isolation = 'strict serializable'")
                return _Waited(Wire(found), self.waits_s, began)
            except psycopg.OperationalError:
                await asyncio.sleep(0.05)


class _Waited:
    """A connection that notes how long its client was without an answer."""

    def __init__(self, inner: Connection, waits_s: list[float], began: float) -> None:
        self._inner = inner
        self._waits_s = waits_s
        self._without_answer_since: float | None = began

    async def ask(self, sql: str, *values: Any) -> list[Any]:
        try:
            found = await self._inner.ask(sql, *values)
        except Refused:
            if self._without_answer_since is None:
                self._without_answer_since = SYSTEM.monotonic()
            await asyncio.sleep(0.05)
            raise
        if self._without_answer_since is not None and sql.startswith(("select", "insert", "upd")):
            self._waits_s.append(SYSTEM.monotonic() - self._without_answer_since)
            self._without_answer_since = None
        return found

    async def close(self) -> None:
        await self._inner.close()


@asynccontextmanager
async def pair(*options: str, reader: bool = True) -> AsyncIterator[Pair]:
    """Two places, of which the first writes; and one that reads."""
    with tempfile.TemporaryFile() as log:
        made = Pair(options, free_ports(3 if reader else 2), log)
        try:
            await made.start(0)
            await made.await_ready(0)
            await made.start(1)
            if reader:
                await made.start(2, "--read-only")
                await made.await_ready(2)
            yield made
        finally:
            for place in list(made.running):
                await made.kill(place)


async def fail_over(
    made: Pair, times: int, seed: int = 1, clients: int = 4
) -> tuple[list[str], Counter[str]]:
    """Kill the writer so many times; returns violations, and what was done."""
    random, done = Random(seed), Counter[str]()
    readers = [made.connect_reader] * 2 if len(made.ports) > 2 else []
    load = Load(made.connect, seed, clients, readers)
    first = await made.connect()
    await set_up(first)
    after = await now(first)
    await first.close()
    wrong: list[str] = []
    for start in range(0, times, ERA):
        kills = range(start, min(times, start + ERA))
        over = asyncio.Event()
        ops, _ = await asyncio.gather(load.run_until(over), _kill(made, kills, load, random, over))
        watcher = await made.connect()
        wrong += await judge(watcher, load, after)
        after = await now(watcher)
        await watcher.close()
        done["writers killed"] += len([each for each in kills if _how(each) is signal.SIGKILL])
        done["writers stopped"] += len([each for each in kills if _how(each) is signal.SIGTERM])
        done["operations"] += len(ops)
        done["strict reads refused while nobody wrote"] += sum(
            op.outcome == "refused" for op in ops
        )
        if wrong:
            break
    wrong += [f"late: a client waited {each:.1f} s" for each in made.waits_s if each > BACK_S]
    return wrong, done


def _how(number: int) -> signal.Signals:
    """Every fifth writer is stopped in good order: a planned switch, as for a new version."""
    return signal.SIGTERM if number % 5 == 2 else signal.SIGKILL


async def _kill(made: Pair, kills: range, load: Load, random: Random, over: asyncio.Event) -> None:
    """Kill who writes, let the other take over, start another standby; then a little more load."""
    try:
        for number in kills:
            await asyncio.sleep(0.3 + random.random())
            await made.kill(number % 2, _how(number))
            await made.await_ready(1 - number % 2)
            await made.start(number % 2)
            served = len(load.ops)
            while len(load.ops) < served + 20:
                await asyncio.sleep(0.02)
    finally:
        over.set()
