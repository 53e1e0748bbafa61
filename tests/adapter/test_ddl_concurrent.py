"""Many sessions that make, change, rename and drop what others read and write.

Whatever the order: a statement succeeds, or is refused because the object is not there (or is there
already) at that moment; the catalog is what is stored; and a restart finds exactly that.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from noonmark.adapter.catalog.store import SYSTEM_COLLECTIONS
from noonmark.adapter.database import Database
from noonmark.errors import DependentObjects, NameTaken, UndefinedTable, WrongObjectType
from support.serve.reading import connect, database

SESSIONS, STATEMENTS = 8, 60
EXPECTED = (UndefinedTable, NameTaken, DependentObjects, WrongObjectType)


def statement(chance: random.Random) -> str:
    table, view, source = f"t{chance.randrange(3)}", f"v{chance.randrange(2)}", "s"
    return chance.choice(
        [
            f"create table if not exists {table} (a int primary key, b text)",
            f"drop table if exists {table} cascade",
            f"insert into {table} values ({chance.randrange(10**6)}, 'x')",
            f"select count(*) from {table}",
            f"update {table} set b = 'y' where a < 1000",
            f"delete from {table} where a < 500000",
            f"create or replace view {view} as select * from {table}",
            f"select * from {view}",
            f"alter table {table} rename to t{chance.randrange(3)}",
            f"create source if not exists {source} from load generator counter",
            f"drop source if exists {source} cascade",
            f"select count(*) from {source}",
            f"comment on table {table} is 'x'",
            "select * from noonmark.frontiers",
        ]
    )


async def one_session(opened: Database, seed: int) -> int:
    """How many statements succeeded."""
    chance, client, done = random.Random(seed), await connect(opened), 0
    for _ in range(STATEMENTS):
        try:
            await client.ask(statement(chance))
        except EXPECTED:
            continue
        done += 1
    return done


def test_ddl_beside_reads_and_writes(tmp_path: Path) -> None:
    async def work() -> dict[int, object]:
        async with asyncio.timeout(120), database(str(tmp_path)) as opened:
            done = await asyncio.gather(*(one_session(opened, seed) for seed in range(SESSIONS)))
            assert min(done) > STATEMENTS // 4
            items = list(opened.catalog.items())
            stored = {item.collection for item in items if item.is_stored}
            assert stored == set(opened.client.state.names) - SYSTEM_COLLECTIONS
            sources = {item.number for item in items if item.kind == "source"}
            assert set(opened.work.sources) == sources
            return dict(opened.catalog.by_number)

    async def again(before: dict[int, object]) -> None:
        async with database(str(tmp_path)) as opened:
            assert dict(opened.catalog.by_number) == before

    asyncio.run(again(asyncio.run(work())))
