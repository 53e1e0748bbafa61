"""Reads that need Spark: large inputs, maintained views, audits; and what EXPLAIN says of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from noonmark.adapter.peek import answer
from noonmark.errors import DivisionByZero, EvaluationError
from noonmark.sql.meaning.relation import evaluate
from noonmark.sql.parse import plan_query
from noonmark.sql.rules import simplify
from support.serve.reading import connect, database, insert
from support.sql import queries as sql_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = (
    "select a, b from t where a > 1",
    "select a, count(*), sum(c) from t group by a",
    "select t.a, u.x from t left join u on t.a = u.a",
    "select z, l, j from v",
)


async def _exhaust(chunks: Any) -> None:
    async for _ in chunks:
        pass


def shown(rows: Any) -> Counter[str]:
    return Counter(repr([list(x) if isinstance(x, tuple) else x for x in row]) for row in rows)


def test_spark_gives_the_same_answers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        answer, "path_of", lambda *_, **__: answer.Path("spark", "this test says so")
    )

    async def go() -> None:
        async with asyncio.timeout(120), database(str(tmp_path), spark) as opened:
            client = await connect(opened)
            for name, schema in sql_queries.SCHEMAS.items():
                columns = ", ".join(f"{column.name} {column.type}" for column in schema)
                await client.ask(f"create table {name} ({columns})")
                rows = [
                    tuple(list(x) if isinstance(x, tuple) else x for x in row)
                    for row, count in sql_queries.ROWS[name].items()
                    for _ in range(count)
                ]
                await insert(opened, name, *rows)
            for sql in QUERIES:
                plan = simplify(plan_query(sql, sql_queries.SCHEMAS).relation)
                wanted = evaluate(plan, sql_queries.ROWS)
                counted = [row for row, count in wanted.items() for _ in range(count)]
                assert shown(await client.ask(sql)) == shown(counted), sql
            with pytest.raises(DivisionByZero):
                await client.ask("select 1 / (x - 10) from u")

    asyncio.run(go())


def test_views_are_read_at_times_and_audited(spark: SparkSession, tmp_path: Path) -> None:
    async def go() -> None:
        async with asyncio.timeout(180), database(str(tmp_path), spark) as opened:
            client = await connect(opened)
            await client.ask("create table sale (item int, price int)")
            await client.ask("create table item (id int, name text)")
            await client.ask(
                "create materialized view total as select i.name, sum(s.price) as sum, "
                "sum(100 / s.price) as odd from sale s join item i on s.item = i.id group by i.name"
            )
            await insert(opened, "item", (1, "lamp"), (2, "desk"))
            stream = await (await connect(opened)).stream("subscribe total")
            first = await insert(opened, "sale", (1, 10), (1, 20), (2, 50))
            assert sorted(await client.ask("select name, sum from total")) == [
                ("desk", 50), ("lamp", 30),
            ]  # fmt: skip
            second = await insert(opened, "sale", (2, 25))
            assert await client.ask("select sum from total where name = 'desk'") == [(75,)]
            assert await client.ask(f"select sum(sum) from total as of {first}") == [(80,)]
            assert await client.ask("audit materialized view total") == []
            lines = [line for (line,) in await client.ask("explain materialized view total")]
            assert lines[0] == "view total"
            assert any("by key" in line for line in lines)
            await _indexed(opened, client)
            await _fails_and_recovers(opened, client, second)
            chunks = aiter(stream.chunks)
            with pytest.raises(EvaluationError, match="division by zero"):
                await asyncio.wait_for(_exhaust(chunks), 30)
            await stream.chunks.aclose()

    async def _indexed(opened: Any, client: Any) -> None:
        await client.ask("create view dear as select * from sale where price > 15")
        await client.ask("create index dear_by_item on dear (item)")
        await opened.work.bring(
            ["dear_by_item"], opened.client.state.collection("sale").upper.only()
        )
        lines = [line for (line,) in await client.ask("explain select * from dear where item = 2")]
        assert "  Scan dear_by_item" in lines
        assert any("dear_by_item by (item)" in line for line in lines)
        assert sorted(await client.ask("select price from dear where item = 2")) == [(25,), (50,)]

    async def _fails_and_recovers(opened: Any, client: Any, before: int) -> None:
        await insert(opened, "sale", (1, 0))
        with pytest.raises(DivisionByZero) as caught:
            await client.ask("select * from total")
        assert caught.value.detail == '"total" has no answer at this time.'
        assert await client.ask(f"select count(*) from total as of {before}") == [(2,)]
        await insert(opened, "sale", (1, 0), diff=-1)
        assert await client.ask("select sum from total where name = 'lamp'") == [(30,)]

    asyncio.run(go())
