"""Trials of real-time recency: upstream gets a row, then a SELECT arrives; is the row in it?

Upstreams are a folder of files and a generator, whose upstream is the clock. A trial is stale when
the answer lacks what upstream had before the SELECT was sent.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

from noonmark.adapter.database import Database
from support.serve.reading import Conversation, connect, database

TICK_MS = 5
#: A source of files lists its folder: a new folder now and then keeps trials alike.
_TRIALS_PER_FOLDER = 100


async def count_stale(folder: Path, trials: int, *, consistent: bool, seed: int = 1) -> int:
    """How many of so many trials gave a stale answer."""
    random, stale = Random(seed), 0
    for start in range(0, trials, _TRIALS_PER_FOLDER):
        own = folder / str(start)
        own.mkdir()
        async with database() as opened:
            world = await _World.open(opened, own, consistent)
            for _ in range(min(_TRIALS_PER_FOLDER, trials - start)):
                stale += await world.trial(random)
    return stale


class _World:
    def __init__(self, opened: Database, folder: Path, client: Conversation) -> None:
        self._clock = opened.clock
        self._folder = folder
        self._client = client
        self._files = 0
        self._start_ms = 0

    @classmethod
    async def open(cls, opened: Database, folder: Path, consistent: bool) -> _World:
        client = await connect(opened)
        world = cls(opened, folder, client)
        await client.ask(
            f"create source f (n bigint, of text) from files '{folder}/*.csv' format csv"
        )
        await client.ask(
            f"create source c from load generator counter (tick interval '{TICK_MS} ms')"
        )
        query = "select n as x from f union all select counter from c"
        await client.ask(f"create view together as {query}")
        await client.ask("create table other (n bigint)")
        item = next(each for each in opened.catalog.items("source") if each.name == "c")
        world._start_ms = item.definition["start_ms"]
        client.session.variables["real_time_recency"] = "on" if consistent else "off"
        client.session.variables["real_time_recency_timeout"] = "60000"
        return world

    async def trial(self, random: Random) -> bool:
        """One trial; whether its answer was stale."""
        await asyncio.sleep(random.choice([0, 0, 0.003]))
        kind = random.choice(["file", "clock", "both"])
        if kind != "clock":
            self._write()
        ticks = (self._clock.now_ms() - self._start_ms) // TICK_MS + 1
        if kind == "file":
            return await self._one("select count(distinct n) from f") < self._files
        if kind == "clock":
            # A table beside the source: its reads are at the same time.
            sql = "select max(counter) + 1 + (select count(*) from other) from c"
            return await self._one(sql) < ticks
        return await self._one("select count(*) from together") < ticks + self._files

    def _write(self) -> None:
        """A file that appears whole, as an upstream that acknowledged it."""
        draft = self._folder / "draft"
        draft.write_text(f"{self._files},upstream\n")
        draft.rename(self._folder / f"{self._files:06}.csv")
        self._files += 1

    async def _one(self, sql: str) -> int:
        ((value,),) = await self._client.ask(sql)
        return int(value or 0)
