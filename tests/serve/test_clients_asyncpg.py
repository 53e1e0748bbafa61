"""asyncpg: everything binary, prepared and pipelined; binary COPY, cursors, a pool, a timeout."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import uuid

import asyncpg
import pytest

from support.serve.host import DatabaseHost

ROW = (
    1,
    "x",
    decimal.Decimal("1.50"),
    dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC),
    uuid.UUID(int=9),
    '{"a": 1}',
)


async def script(host: DatabaseHost) -> None:
    async with asyncpg.create_pool(
        host=host.host, port=host.port, user="noonmark", database="noonmark", min_size=1, max_size=2
    ) as pool:
        async with pool.acquire() as line:
            columns = "a int primary key, b text, c numeric(8,2), d timestamptz, e uuid, f jsonb"
            await line.execute(f"create table ap ({columns})")
            insert = "insert into ap values ($1, $2, $3, $4, $5, $6)"
            assert await line.execute(insert, *ROW) == "INSERT 0 1"
            assert [tuple(row) for row in await line.fetch("select * from ap")] == [ROW]
            keys = [(key, str(key)) for key in range(2, 50)]
            await line.executemany("insert into ap (a, b) values ($1, $2)", keys)
            async with line.transaction():
                cursor = line.cursor("select a from ap order by a", prefetch=10)
                assert [row["a"] async for row in cursor] == list(range(1, 50))
            copied = await line.copy_records_to_table(
                "ap", records=[(100, "z")], columns=["a", "b"]
            )
            assert copied == "COPY 1"
            with pytest.raises(asyncpg.UndefinedTableError):
                await line.fetch("select * from nowhere")
            with pytest.raises(TimeoutError):
                await line.execute("subscribe ap", timeout=0.3)
            assert await line.fetchval("select count(*) from ap") == 50
        async with pool.acquire() as line:  # the same connection, after the pool reset it
            assert await line.fetchval("select b from ap where a = $1", 100) == "z"


ARRAYS: dict[str, list[object]] = {
    "boolean": [True, None, False],
    "smallint": [1, -2],
    "integer": [1, None, 3],
    "bigint": [1 << 40],
    "real": [1.5],
    "double precision": [0.1, None],
    "numeric(8,2)": [decimal.Decimal("1.50"), None],
    "text": ["a", "", 'q"uo,te{}', None],
    "varchar(9)": ["b"],
    "bytea": [b"\\0", b""],
    "date": [dt.date(2024, 2, 29)],
    "time": [dt.time(12, 30)],
    "timestamp": [dt.datetime(2024, 2, 29, 12)],
    "timestamptz": [dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)],
    "interval": [dt.timedelta(days=1, hours=2)],
    "uuid": [uuid.UUID(int=9)],
    "jsonb": ['{"a": 1}', None],
}


async def arrays(host: DatabaseHost) -> None:
    """asyncpg asks the catalog what an array is, once, and then speaks binary."""
    line = await asyncpg.connect(
        host=host.host, port=host.port, user="noonmark", database="noonmark"
    )
    columns = ", ".join(f"c{at} {kind}[]" for at, kind in enumerate(ARRAYS))
    await line.execute(f"create table of_arrays ({columns})")
    marks = ", ".join(f"${at + 1}" for at in range(len(ARRAYS)))
    await line.execute(f"insert into of_arrays values ({marks})", *ARRAYS.values())
    (row,) = await line.fetch("select * from of_arrays")
    assert list(row.values()) == list(ARRAYS.values())
    found = await line.fetch("select c2 from of_arrays where c2[1] = any($1::int[])", [5, 1])
    assert [list(each) for each in found] == [[ARRAYS["integer"]]]
    await line.close()


def test_arrays(database_host: DatabaseHost) -> None:
    asyncio.run(arrays(database_host))


def test_a_script(database_host: DatabaseHost) -> None:
    asyncio.run(script(database_host))
