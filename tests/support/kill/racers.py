"""Writers in processes of their own that all want the same numbers, or the same keys.

`race(body, url, rounds)` runs ``body(url, name, rounds)`` in `RACERS` processes at once and gives
what each returned, by name. The processes are started once for the whole run and meet at a barrier
before each race, so that it is one.

Bodies run in spawned children: they take and return only what pickles, and open their own handles.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Barrier
from typing import Any

import pytest

from noonmark.persist.impl.open import open_blob, open_consensus

RACERS = 3
START_SECONDS_MAX = 120

Body = Callable[[str, str, int], Any]
Race = Callable[[Body, str, int], dict[str, Any]]

_start: Barrier | None = None


@pytest.fixture(scope="session")
def race() -> Iterator[Race]:
    context = multiprocessing.get_context("spawn")
    names = [f"racer-{index}" for index in range(RACERS)]
    with context.Pool(RACERS, _keep_start, (context.Barrier(RACERS),)) as pool:

        def run(body: Body, url: str, rounds: int) -> dict[str, Any]:
            calls = [(body, url, name, rounds) for name in names]
            return dict(zip(names, pool.starmap(_start_together, calls, 1), strict=True))

        yield run


def _keep_start(start: Barrier) -> None:
    global _start  # noqa: PLW0603 - a barrier reaches a child only when the child starts
    _start = start


def _start_together(body: Body, url: str, name: str, rounds: int) -> Any:
    assert _start is not None
    _start.wait(START_SECONDS_MAX)
    return body(url, name, rounds)


def entry_of(name: str, seqno: int) -> bytes:
    return f"{name} {seqno}".encode()


def append_all(url: str, name: str, rounds: int) -> list[int]:
    """Try to append every number from 1 on; the numbers that this racer won."""

    async def run() -> list[int]:
        consensus = open_consensus(url)
        won = [n for n in range(1, rounds + 1) if await consensus.append(n, entry_of(name, n))]
        await consensus.close()
        return won

    return asyncio.run(run())


def put_all(url: str, name: str, rounds: int) -> list[int]:
    """Try to put every key if absent; the numbers of those that this racer won."""

    async def run() -> list[int]:
        blob = open_blob(url)
        keys = {n: f"race/{n:04d}" for n in range(1, rounds + 1)}
        won = [n for n, key in keys.items() if await blob.put_if_absent(key, entry_of(name, n))]
        await blob.close()
        return won

    return asyncio.run(run())
