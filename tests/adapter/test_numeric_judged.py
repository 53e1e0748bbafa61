"""Plain numeric against a PostgreSQL: every size, scale, NaN and infinity, digit by digit.

Laws: `noonmark.rows.numeral`, and `scale` and `fit` of `noonmark.sql.functions.number`. Both get
the same SQL, and the texts of their answers must be the same; an error is of the same class.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import psycopg
import pytest
from psycopg.pq import DiagnosticField, ExecStatus

from noonmark.adapter.database import Database
from noonmark.errors import NoonmarkError
from noonmark.rows.arrow import texts_for_numerals, to_table
from noonmark.rows.pg.text import format_value
from noonmark.rows.schema import Schema
from support.neighbour.servers import PostgresServer
from support.serve.reading import Conversation, connect, database, with_database
from support.sql.peer import connected

ODD = ("NaN", "Infinity", "-Infinity", "0", "0.00", "-0.0", "10", "10.0", "10.00", "1e-40", "1e40",
       "123456789012345678901", "99999999999999999999999999999999999999999.5", "1e131071",
       "1e-16383", "-1e-16383", "0.1", "1e3", "+.5", "5.")  # fmt: skip
OPERATORS = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "{a} % {b}", "div({a}, {b})",
             "{a} = {b}", "{a} < {b}", "{a} >= {b}", "greatest({a}, {b})",
             "{a} is distinct from {b}", "power({a}, {b})", "{a} between {b} and 7")  # fmt: skip
FUNCTIONS = ("-{a}", "abs({a})", "sign({a})", "round({a})", "round({a}, 2)", "round({a}, -1)",
             "trunc({a})", "trunc({a}, 3)", "floor({a})", "ceil({a})", "sqrt({a})", "ln({a})",
             "log({a})", "exp({a})", "{a}::text", "{a}::float8", "{a}::bigint",
             "{a}::numeric(20,4)", "scale({a})", "trim_scale({a})", "to_jsonb({a})",
             "array[{a}, 1]")  # fmt: skip
AGGREGATES = ("sum(x)", "avg(x)", "min(x) = max(x)", "count(distinct x)", "variance(x)",
              "stddev_pop(x)", "sum(x) filter (where x > 0)",
              "sum(distinct x + 0.000)")  # fmt: skip


def number(chance: random.Random) -> str:
    if chance.random() < 0.25:
        return chance.choice(ODD)
    whole = "".join(chance.choices("0123456789", k=chance.choice((0, 1, 1, 3, 8, 25, 45))))
    rest = "".join(chance.choices("00123456789", k=chance.choice((0, 0, 1, 2, 6, 20, 50))))
    text = f"{whole or '0'}.{rest}" if rest else whole or "0"
    return ("-" if chance.random() < 0.3 else "") + text


def expressions(seed: int, count: int) -> Iterator[str]:
    chance = random.Random(seed)
    for _ in range(count):
        a, b = (f"'{number(chance)}'::numeric" for _ in "ab")
        if chance.random() < 0.3:
            b = chance.choice(("2", "0.5", "10.00", "-3", "7::bigint", "0.250"))
        form = chance.choice((*OPERATORS, *FUNCTIONS))
        yield f"select {form.format(a=f'({a})', b=f'({b})')}"


async def ours(client: Conversation, sql: str) -> Any:
    try:
        prepared = await client.session.prepare(sql)
        types = [field.type for field in prepared.fields or ()]
        rows = await client.ask(sql)
    except NoonmarkError as error:
        return error.sqlstate[:2]
    return [
        tuple(None if x is None else format_value(x, k) for x, k in zip(row, types, strict=True))
        for row in rows
    ]


def theirs(peer: psycopg.Connection, sql: str) -> Any:
    result = peer.pgconn.exec_params(sql.encode(), None)
    if result.status != ExecStatus.TUPLES_OK:
        return (result.error_field(DiagnosticField.SQLSTATE) or b"??").decode()[:2]
    return [
        tuple(
            None if (x := result.get_value(row, at)) is None else x.decode()
            for at in range(result.nfields)
        )
        for row in range(result.ntuples)
    ]


@pytest.fixture
def peer(postgres_server: PostgresServer) -> Iterator[psycopg.Connection]:
    with connected(postgres_server.dsn) as connection:
        yield connection


def is_slow(sql: str) -> bool:
    """Powers, roots and quotients of numbers with thousands of digits take PostgreSQL seconds."""
    return "e131071" in sql or "e-16383" in sql


def test_scalars_have_postgresqls_digits(peer: psycopg.Connection) -> None:
    @with_database
    async def act(opened: Database) -> None:
        client = await connect(opened)
        for sql in expressions(seed=11, count=400):
            if is_slow(sql) and any(x in sql for x in ("power", "exp(", "ln(", "log(", "/")):
                continue
            assert await ours(client, sql) == theirs(peer, sql), sql

    act()


def test_aggregates_have_postgresqls_digits(peer: psycopg.Connection) -> None:
    @with_database
    async def act(opened: Database) -> None:
        client, chance = await connect(opened), random.Random(5)
        for _ in range(25):
            values = ", ".join(
                f"('{number(chance)}'::numeric)" for _ in range(chance.randint(1, 6))
            )
            if is_slow(values):
                continue
            for call in AGGREGATES:
                sql = f"select {call} from (values {values}) as t (x)"
                assert await ours(client, sql) == theirs(peer, sql), sql
            sql = f"select x = 0, count(*) from (values {values}) as t (x) group by x order by x, 2"
            assert await ours(client, sql) == theirs(peer, sql), sql

    act()


def test_a_table_keeps_what_is_written(peer: psycopg.Connection) -> None:
    """By INSERT, by parameters and by UPDATE to an equal number of another scale."""

    @with_database
    async def act(opened: Database) -> None:
        client, chance = await connect(opened), random.Random(8)
        peer.execute("create temp table n (i int primary key, x numeric)")
        await client.ask("create table n (i int primary key, x numeric)")
        for at in range(60):
            text = number(chance)
            for sql in (f"insert into n values ({at}, '{text}')",):
                peer.execute(sql)
                await client.ask(sql)
        value = Decimal("10.000")
        await client.ask("insert into n values (100, $1)", value)
        peer.execute("insert into n values (100, %s)", [value])
        for sql in (
            "update n set x = '10.00000' where x = 10",
            "update n set x = x * 1.0 where i % 7 = 0 and x < 'Infinity' and abs(x) < 1e100",
            "delete from n where x = '0' and i % 2 = 0",
        ):
            peer.execute(sql)
            await client.ask(sql)
        for sql in (
            "select i, x from n order by i",
            "select i, x from n where x = 10 order by i",
            "select i from n where x in (0, 10, 'NaN') order by i",
            "select i from n order by x desc, i limit 20",
            "select a.i, b.i from n a join n b on a.x = b.x and a.i < b.i order by 1, 2",
            "select count(*) from (select distinct x from n) as d",
        ):
            assert await ours(client, sql) == theirs(peer, sql), sql

    act()


def test_what_postgresql_cannot_hold_is_refused(peer: psycopg.Connection) -> None:
    @with_database
    async def act(opened: Database) -> None:
        client = await connect(opened)
        for text in ("1e131072", "1e-16384", "1e999999999999", "-1e200000"):
            sql = f"select '{text}'::numeric"
            assert await ours(client, sql) == theirs(peer, sql) == "22", sql

    act()


def test_a_column_of_the_old_form_goes_on(tmp_path: Path) -> None:
    """A schema that says `numeric` was stored before plain numeric had any size."""

    async def make() -> None:
        with mock.patch("noonmark.rows.schema.stored_spelling", str):
            async with database(str(tmp_path)) as opened:
                client = await connect(opened)
                await client.ask("create table o (i int primary key, x numeric, y numeric[])")

    async def use() -> None:
        async with database(str(tmp_path)) as opened:
            client = await connect(opened)
            await client.ask("insert into o values (1, 10.00, '{1.50}'), (2, '0.5', null)")
            await client.ask("insert into o select i + 2, x * 3, y from o")
            sql = "select i, x, y from o order by i"
            assert await ours(client, sql) == [
                ("1", "10", "{1.5}"), ("2", "0.5", None), ("3", "30", "{1.5}"), ("4", "1.5", None)
            ]  # fmt: skip
            assert await ours(client, "select i from o where x = '10.00'") == [("1",)]
            assert await ours(client, "select avg(x), sum(x) + 0.00 from o") == [
                ("10.5000000000000000", "42.00")
            ]
            for text, state in (("1e-40", "22"), ("NaN", "0A"), ("123456789012345678901", "22")):
                refused = f"insert into o values (9, '{text}', null)"
                assert await ours(client, refused) == state, text
            await client.ask("create table p (x numeric)")
            await client.ask("insert into p select x / 3 from o where i = 1")
            assert await ours(client, "select x from p") == [("3.3333333333333333",)]

    for step in (make, use):
        asyncio.run(step())
    asyncio.run(_reopened(tmp_path))


async def _reopened(folder: Path) -> None:
    async with database(str(folder)) as opened:
        client = await connect(opened)
        assert await ours(client, "select x from p") == [("3.3333333333333333",)]
        assert await ours(client, "select x from o where i = 1") == [("10",)]


def test_others_get_texts() -> None:
    schema = Schema.of(x="numeric", y="numeric[]", z="numeric(5,2)")
    table = to_table([(Decimal("10.00"), [Decimal("NaN"), None], Decimal("1.50"))], schema)
    shown = texts_for_numerals(table, schema)
    assert shown.to_pylist() == [{"x": "10.00", "y": ["NaN", None], "z": Decimal("1.50")}]
