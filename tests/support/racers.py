"""Writers in processes of their own that all want the same numbers, or the same keys.

Functions here run in spawned children: they take and return only what pickles, and open their own
handles.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from typing import Any

from noonmark.persist.impl.open import open_blob, open_consensus


def race(
    body: Callable[[str, str, int], Any], url: str, racers: int, rounds: int
) -> dict[str, Any]:
    """Run `body(url, name, rounds)` in so many processes at once; what each returned, by name."""
    names = [f"racer-{index}" for index in range(racers)]
    with multiprocessing.get_context("spawn").Pool(racers) as pool:
        results = pool.starmap(body, [(url, name, rounds) for name in names], chunksize=1)
    return dict(zip(names, results, strict=True))


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
