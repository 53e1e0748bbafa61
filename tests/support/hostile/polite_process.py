"""Polite clients, as a process of their own: what they see is not what other clients wait for.

    python -m support.hostile.polite_process PORT SECONDS KIND...

prints how long everything took, in milliseconds, as JSON. Each client does one kind of thing, again
and again, with a little pause. `NOTHING` is a client that only sleeps: how long that takes longer
than it should is what the machine makes everybody wait, and no server could help it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg

from noonmark.clock import SYSTEM

ROWS = 300
POLITE: dict[str, str] = {
    "one": "select 1",
    "by key": "select v from kv where k = {n}",
    "insert": "insert into log values ({n}, 'polite')",
    "view": "select n from busy where what = 'polite'",
    "worker": "select count(*) from generate_series(1, 4000)",
}
NOTHING = "nothing"
KINDS = (*POLITE, "ddl")


async def connected(port: int) -> psycopg.AsyncConnection:
    return await psycopg.AsyncConnection.connect(
        host="127.0.0.1", port=port, user="me", dbname="noonmark", autocommit=True
    )


async def polite(port: int, kind: str, until: float, note: Callable[[str, float], None]) -> None:
    """One polite client, which does one kind of thing again and again."""
    at = 0
    async with await connected(port) as connection:
        while SYSTEM.monotonic() < until:
            at += 1
            begun = SYSTEM.monotonic()
            if kind == "ddl":
                await connection.execute("create table made (a int)")
                await connection.execute("drop table made")
            else:
                text = POLITE[kind].format(n=at % ROWS)
                await connection.execute(text.encode())
            note(kind, 1000 * (SYSTEM.monotonic() - begun))
            await asyncio.sleep(0.02)


async def nothing(until: float, note: Callable[[str, float], None]) -> None:
    """How late one is who asks nobody."""
    while SYSTEM.monotonic() < until:
        begun = SYSTEM.monotonic()
        await asyncio.sleep(0.01)
        note(NOTHING, 1000 * (SYSTEM.monotonic() - begun) - 10)


async def polite_all(port: int, kinds: Sequence[str], seconds: float) -> dict[str, list[float]]:
    """How long everything polite takes, in milliseconds."""
    found: dict[str, list[float]] = {kind: [] for kind in (*kinds, NOTHING)}
    until = SYSTEM.monotonic() + seconds

    def note(kind: str, took_ms: float) -> None:
        found[kind].append(took_ms)

    await asyncio.gather(nothing(until, note), *(polite(port, k, until, note) for k in kinds))
    return found


async def polite_apart(port: int, kinds: Sequence[str], seconds: float) -> dict[str, list[float]]:
    """The same, in a process of its own."""
    command = (sys.executable, "-m", __name__, str(port), str(seconds), *kinds)
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).resolve().parents[2]
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, "the polite clients failed"
    found: dict[str, list[float]] = json.loads(out)
    return found


def p99(values: list[float]) -> float:
    """The 99th percentile."""
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]


if __name__ == "__main__":
    _port, _seconds, *_kinds = sys.argv[1:]
    print(json.dumps(asyncio.run(polite_all(int(_port), _kinds, float(_seconds)))))
