"""Hostile and polite clients of one server, and what they see.

A hostile client sends one hostile statement after the other, each with a `statement_timeout`; what
counts is how long after that time it ends, and with what. Polite clients do what everybody does;
what counts is how long that takes, with and without the hostile ones. They are a process of their
own (`polite_process`), and memory is measured in a thread: what they see is what the server does,
not what the hostile clients of the same program do.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from noonmark.clock import SYSTEM
from support.hostile.polite_process import KINDS, ROWS, connected, p99, polite_apart
from support.hostile.statements import Hostile, Statement

#: Errors that say that a statement was ended, refused or failed by what it asked for.
FINE = ("57014", "53200", "54000", "54001", "0A000")


@dataclass
class Seen:
    """What one run saw."""

    late_s: list[tuple[float, Statement]] = field(default_factory=list)
    states: dict[str, int] = field(default_factory=dict)
    wrong: list[tuple[str, str, Statement]] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)

    def worst_late_s(self) -> float:
        """How long after its timeout the last statement ended."""
        return max((late for late, _ in self.late_s), default=0.0)


async def prepare(port: int) -> None:
    """The tables that everybody uses."""
    async with await connected(port) as connection:
        await connection.execute("create table kv (k int primary key, v text)")
        values = ",".join(f"({k}, 'value {k}')" for k in range(ROWS))
        await connection.execute(f"insert into kv values {values}".encode())
        await connection.execute("create table sink (k int, v text)")
        await connection.execute("insert into sink values (1, 'a'), (2, 'b')")
        await connection.execute("create table log (n int, what text)")
        query = "select what, count(*) as n from log group by what"
        await connection.execute(f"create view busy as {query}".encode())


async def hostile(port: int, seed: int, until: float, seen: Seen) -> None:
    """One hostile client."""
    made = Hostile(seed)
    timeouts = (100, 300, 700)
    at = 0
    connection = await connected(port)
    while SYSTEM.monotonic() < until:
        statement, timeout_ms = made.statement(), timeouts[at % len(timeouts)]
        at += 1
        try:
            await _send(connection, statement, timeout_ms, seen)
        except psycopg.OperationalError as error:
            if connection.closed:
                seen.wrong.append(("closed", str(error), statement))
                connection = await connected(port)
    await connection.close()


async def _send(
    connection: psycopg.AsyncConnection, statement: Statement, timeout_ms: int, seen: Seen
) -> None:
    seen.kinds.add(statement.kind)
    await connection.execute(f"set statement_timeout = {timeout_ms}")
    if statement.begin:
        await connection.execute("begin")
    begun = SYSTEM.monotonic()
    state, message = "00000", ""
    limit = asyncio.timeout(timeout_ms / 1000 + 30)
    try:
        async with limit:
            await _run(connection, statement)
    except psycopg.Error as error:
        state, message = error.sqlstate or "08006", str(error)
    except TimeoutError:
        state, message = "never", "it did not end"
    # Several statements in one text have the time each; there are at most three.
    allowed = timeout_ms / 1000 * (1 + statement.text.count("; "))
    seen.late_s.append((SYSTEM.monotonic() - begun - allowed, statement))
    seen.states[state] = seen.states.get(state, 0) + 1
    if state != "00000" and state not in FINE and state[:2] not in ("22", "42", "34"):
        seen.wrong.append((state, message, statement))
    if state == "never":
        await connection.close()
        raise psycopg.OperationalError("it did not end")
    if statement.begin or connection.info.transaction_status.name != "IDLE":
        await connection.execute("rollback")


async def _run(connection: psycopg.AsyncConnection, statement: Statement) -> None:
    text = statement.text
    if text.startswith(("copy", "subscribe")):
        copied = text if text.startswith("copy") else f"copy ({text}) to stdout"
        async with connection.cursor() as cursor, cursor.copy(copied.encode()) as copy:
            async for _ in copy:
                pass
        return
    for each in text.split("; "):
        async with connection.cursor() as cursor:
            await cursor.execute(each.encode())


@dataclass
class Run:
    """A whole run: polite clients alone, then with hostile ones."""

    seen: Seen
    idle_p99: dict[str, float]
    busy_p99: dict[str, float]
    memory_mb: int
    left: list[str]


async def hostile_run(
    port: int, server: int, seconds: float, *, seed: int, clients: int, view: bool
) -> Run:
    """Polite clients alone, then beside hostile ones; then what is left."""
    await prepare(port)
    if view:
        async with await connected(port) as connection:
            await connection.execute("drop view busy")
            query = "select what, count(*) as n from log group by what"
            await connection.execute(f"create materialized view busy as {query}".encode())
            await connection.execute("select * from busy")
    await polite_apart(port, KINDS, min(15.0, seconds / 4))
    idle = await polite_apart(port, KINDS, max(3.0, min(20.0, seconds / 5)))
    seen, until = Seen(), SYSTEM.monotonic() + seconds
    measuring = asyncio.ensure_future(_memory(server))
    busy, *_ = await asyncio.gather(
        polite_apart(port, KINDS, seconds),
        *(hostile(port, 1_000 * seed + client, until, seen) for client in range(clients)),
    )
    measuring.cancel()
    left = await _left(port, server, view)
    peak = max(_PEAK, default=0)
    return Run(seen, _p99s(idle), _p99s(busy), peak >> 20, left)


def _p99s(found: dict[str, list[float]]) -> dict[str, float]:
    return {kind: p99(values) for kind, values in found.items() if values}


_PEAK: list[int] = []


async def _memory(server: int) -> None:
    """Note how much memory the server and its workers have, again and again."""
    _PEAK.clear()
    while True:
        _PEAK.append(await asyncio.to_thread(_all_resident, server))
        await asyncio.sleep(0.5)


def _all_resident(server: int) -> int:
    return sum(map(_resident, _python_processes(server)))


def _children(pid: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(folder.name))
    return found


def _python_processes(server: int) -> list[int]:
    """The server, the process that forks workers, and the workers; not Spark's."""
    zygotes = [pid for pid in _children(server) if b"zygote" in _command(pid)]
    return [server, *zygotes, *(worker for pid in zygotes for worker in _children(pid))]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _resident(pid: int) -> int:
    """What a process has of memory and shares with nobody."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    sizes = [line.split() for line in text.splitlines() if line.startswith("Private_")]
    return sum(int(size[1]) << 10 for size in sizes)


async def _left(port: int, server: int, view: bool) -> list[str]:
    """What goes on, or is wrong, when everybody has gone."""
    await asyncio.sleep(1)
    left = []
    busy = _python_processes(server)[2:]
    before = {pid: _ticks(pid) for pid in busy}
    await asyncio.sleep(1)
    left += [f"worker {pid} works" for pid in busy if _ticks(pid) > before[pid] + 5]
    async with await connected(port) as connection:
        if view:
            found = await (await connection.execute("audit materialized view busy")).fetchall()
            left += [f"audit: {row}" for row in found]
        count = await (await connection.execute("select count(*) from kv")).fetchone()
        left += [] if count == (ROWS,) else [f"kv has {count}"]
    return left


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])
