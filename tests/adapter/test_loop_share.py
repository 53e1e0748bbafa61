"""What one statement may take of the adapter's loop, in one piece: everybody waits for that long.

Measured is the processor time of the loop's own thread in each callback, so that what threads,
workers and other processes do does not count.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from noonmark.adapter.database import Database
from noonmark.errors import QueryCanceled, Unsupported
from support.house.longest_piece import longest_piece
from support.serve.reading import connect, with_database

pytestmark = pytest.mark.alone

#: Four times what is seen: collections of garbage and first imports are among it.
PIECE_MAX_S = 0.12
ROWS = 6_000

#: What is many or long, and the table that is made for it.
SETUP = (
    "create table kv (k int primary key, v int)",
    f"insert into kv select g, g from generate_series(1, {ROWS}) g",
    "create table told (n int, s text)",
    "create table narrow (a int, " + ", ".join(f"g{i} int generated always as (a + {i}) stored"
    for i in range(20)) + ")",
)  # fmt: skip
STATEMENTS = {
    "a template": "select length(to_char(1, repeat('9', 20000)))",
    "a path": f"select jsonb_path_exists('{'[' * 60}{']' * 60}'::jsonb, '$.**.**.** ? (@ == 5)')",
    "digits": f"select length((0.{'7' * 1200} ^ 3.3)::text)",
    "grouping sets": "select count(*) from kv group by cube(" + ", ".join(
        f"k + {i}" for i in range(24)) + ")",
    "upserts": f"insert into kv select g, g from generate_series(1, {ROWS}) g "
    "on conflict (k) do update set v = kv.v + excluded.v where kv.v > 5 returning v",
    "skipped": f"insert into kv select g, g from generate_series(1, {ROWS}) g on conflict "
    "do nothing",
    "generated values": f"insert into narrow select g from generate_series(1, {ROWS // 4}) g",
    "generated columns": "create table wide (a int, " + ", ".join(
        f"g{i} int generated always as (a + {i}) stored" for i in range(200)) + ")",
    "their first row": "insert into wide values (1)",
    "a long check": "create table checked (k int check (k in (" + ", ".join(
        map(str, range(5_000))) + ")))",
    "its first row": "insert into checked values (1)",
}  # fmt: skip


@pytest.mark.timeout(180, method="signal")
@with_database
async def test_no_statement_has_the_loop_for_long(opened: Database) -> None:
    client = await connect(opened)
    for sql in SETUP:
        await client.ask(sql)
    await opened.workers.warm()
    late: dict[str, float] = {}
    for name, sql in STATEMENTS.items():
        await client.ask("set statement_timeout = '10s'")
        with longest_piece() as piece, suppress(QueryCanceled, Unsupported):
            await client.ask(sql)
        if piece[0] > PIECE_MAX_S:
            late[name] = round(piece[0], 2)
    assert late == {}
    assert await client.ask("select count(*), min(v), max(v) from kv") == [(ROWS, 1, 2 * ROWS)]
