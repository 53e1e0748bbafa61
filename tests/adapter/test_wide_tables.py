"""Tables of many columns: writing a row takes time as its columns do."""

from __future__ import annotations

import time

import pyarrow as pa

from noonmark.adapter.database import Database
from noonmark.rows.conform import conform
from noonmark.rows.schema import Schema
from support.serve.reading import connect, with_database


def conformed_s(width: int) -> float:
    """The processor time of fitting one row."""
    names = [f"c{at}" for at in range(width)]
    schema = Schema.of(**dict.fromkeys(names, "integer"))
    table = pa.table({name: pa.array([1], pa.int32()) for name in names})
    found = []
    for _ in range(3):
        begun = time.thread_time()
        assert conform(table, schema) is table
        found.append(time.thread_time() - begun)
    return min(found)


def test_a_row_is_fitted_in_time_that_is_linear_in_its_columns() -> None:
    assert conformed_s(4_000) < 30 * conformed_s(500) + 0.05, "a quadratic one takes 64 times"


@with_database
async def test_an_insert_into_2000_columns_is_a_second_of_work(opened: Database) -> None:
    client = await connect(opened)
    width = range(2_000)
    await client.ask(f"create table w ({', '.join(f'c{at} int' for at in width)})")
    text = f"insert into w values ({', '.join(map(str, width))})"
    took = []
    for _ in range(3):  # the first reads modules
        begun = time.process_time()
        assert await client.ask(text) == "INSERT 0 1"
        took.append(time.process_time() - begun)
    assert min(took) < 1.5, took
    assert await client.ask("select c1999 from w") == [(1999,)] * 3
