# ruff: noqa: E501 - tables of texts are read by line
"""A PostgreSQL source over every type: what arrives is what upstream has, as a key and as a value.

The values are those that random SQL is made of, plain and strange ones; they come with the snapshot
and with the log, are changed, deleted, truncated and read once more, as columns that the log has
whole and as keys that it alone has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from noonmark.adapter.database import Database
from support.neighbour.logical import Upstream
from support.serve.reading import Conversation, connect, database
from support.sql.any.values import CREATE_TYPE, KEYS, PLAIN, STRANGE, TYPES, quoted

#: Types that are not ours, over those that are and over none: what they are upstream, their values,
#: and what they are here.
MADE: dict[str, tuple[str, list[str], str]] = {
    "small": ("create domain small as int4range check (not upper_inf(value))", ["[1,5)", "empty"], "int4range"),
    "smaller": ("create domain smaller as small", ["[2,3)"], "int4range"),
    "code": ("create domain code as varchar(3)", ["abc", ""], "character varying"),
    "feeling": ("create domain feeling as mood", ["ok", "", "it's"], "text"),
    "pair": ("create type pair as (a int, b text)", ["(1,a)", '(,"x, y")'], "text"),
    "spans": ("create type spans as range (subtype = float8)", ["[1.5,2)", "empty"], "text"),
}  # fmt: skip
#: PostgreSQL's own that are not ours.
OTHERS = {
    "money": ["$1.50", "-$1,000.00"], "point": ["(1,2.5)"], "tsvector": ["'a':1 'b'"], "tid": ["(0,1)"],
    "name": ["a"], "oid": ["1", "4294967295"], "regtype": ["integer"], "timetz": ["10:00:00+02"],
    "int[][]": ["{}", "{1}"], "pair[]": ['{"(1,a)"}'], "mood[]": ["{ok,NULL}"],
    "small[]": ['{"[1,5)"}'], "json[]": ['{"1","{\\"a\\" : 1}"}'], "bpchar": ["a", "ab"], "bpchar[]": ['{"a "}'],
    "varbit[]": ["{1,01}"], "bit(3)[]": ["{101}"], "numrange[]": ['{"[1.50,2)"}'], "macaddr[]": ["{08:00:2b:01:02:03}"],
}  # fmt: skip


@pytest.fixture(autouse=True)
def key_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("NOONMARK_SECRET_KEY", raising=False)


def columns() -> Iterator[tuple[str, list[str]]]:
    """Every type upstream, with its values."""
    for kind, written in TYPES.items():
        yield written, [*PLAIN[kind], *STRANGE[kind]]
    for name, (_, values, _) in MADE.items():
        yield name, values
    yield from OTHERS.items()


COLUMNS = list(columns())
#: The types that are keys of tables of their own.
AS_KEYS = [(TYPES[kind], [*PLAIN[kind], *STRANGE[kind]]) for kind in KEYS]
DEPTH = max(len(values) for _, values in COLUMNS)


def filled(table: str, first: int) -> Iterator[str]:
    """A row for every depth of the values: their number, then a value of each column, or NULL."""
    for at in range(DEPTH):
        cells = [
            f"{quoted(values[at])}::{kind}" if at < len(values) else "null"
            for kind, values in COLUMNS
        ]
        yield f"insert into {table} values ({first + at}, {', '.join(cells)})"


def keyed(at: int, kind: str, values: list[str]) -> list[str]:
    made = dict.fromkeys(f"({quoted(value)}::{kind}, {n})" for n, value in enumerate(values))
    return [f"insert into key_{at} values {row} on conflict do nothing" for row in made]


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[Conversation, Database]]:
    async with asyncio.timeout(400), database(str(folder / "location")) as made:
        yield await connect(made, real_time_recency="on"), made


async def source(client: Conversation, upstream: Upstream) -> None:
    parts = urlsplit(upstream.url)
    await client.ask(
        f"create connection pg to postgres (host '{parts.hostname}', port {parts.port}, "
        f"user '{parts.username}', database '{upstream.name}')"
    )
    await client.ask("create source s from postgres connection pg (publication 'p') for all tables")


async def differing(client: Conversation, upstream: Upstream, *tables: str) -> list[object]:
    """What is not here what it is upstream, cell by cell, and what could not be read."""
    found: list[object] = await client.ask("select * from s_errors")
    for table in tables:
        for at, (kind, _) in enumerate(COLUMNS):
            cast = "::jsonb" if kind == "json" else ""
            query = "select id, c{}{}::text from {} order by 1"
            theirs = upstream.run(query.format(at, cast, table))
            mine = await client.ask(query.format(at, "", table))
            if mine != theirs:
                found.append((table, kind, mine, theirs))
    for at, (kind, _) in enumerate(AS_KEYS):
        query = f"select k::text, n from key_{at} order by n, 1"
        mine, theirs = await client.ask(query), upstream.run(query)
        if mine != theirs:
            found.append((kind, mine, theirs))
    return found


def make(upstream: Upstream) -> None:
    upstream.run(CREATE_TYPE, *(create for create, _, _ in MADE.values()))
    specs = ", ".join(f"c{at} {kind}" for at, (kind, _) in enumerate(COLUMNS))
    for table in ("whole", "part"):
        upstream.run(f"create table {table} (id int primary key, {specs})", *filled(table, 0))
    upstream.run("alter table whole replica identity full")
    for at, (kind, values) in enumerate(AS_KEYS):
        upstream.run(f"create table key_{at} (k {kind} primary key, n int)")
        upstream.run(*keyed(at, kind, values)[::2])


def changed(upstream: Upstream) -> None:
    """Rows that come, change and go, in every table."""
    for table in ("whole", "part"):
        upstream.run(
            *filled(table, 100),
            f"update {table} set id = id + 1000 where id % 3 = 0",
            f"delete from {table} where id % 3 = 1",
            *(f"update {table} set c{at} = null where id % 7 = {at % 7}"
              for at in range(len(COLUMNS))),
        )  # fmt: skip
    for at, (kind, values) in enumerate(AS_KEYS):
        upstream.run(
            *keyed(at, kind, values),
            f"update key_{at} set n = n + 100 where n % 2 = 0",
            f"delete from key_{at} where n % 3 = 0",
        )


def test_every_type_arrives_as_it_is_upstream(upstream: Upstream, tmp_path: Path) -> None:
    async def go() -> None:
        make(upstream)
        async with opened(tmp_path) as (client, _):
            await source(client, upstream)
            assert await differing(client, upstream, "whole", "part") == []
            changed(upstream)
            assert await differing(client, upstream, "whole", "part") == []
            upstream.run("truncate whole, part, key_1", *filled("whole", 0), *filled("part", 0))
            assert await differing(client, upstream, "whole", "part") == []
            for sql in (
                "alter table whole add column more int4range",
                "update whole set more = '[1,2]'",
            ):
                upstream.run(sql)
            tables = ", ".join(["whole", "part", *(f"key_{at}" for at in range(len(AS_KEYS)))])
            await client.ask(f"alter source s refresh table {tables}")
            assert await differing(client, upstream, "whole", "part") == []
            assert await client.ask("select distinct more::text from whole") == [("[1,3)",)]
            upstream.run("delete from whole where id < 9", *filled("part", 200))
            assert await differing(client, upstream, "whole", "part") == []

    asyncio.run(go())


def test_a_key_of_zeros_and_of_nan_is_one_of_bits(upstream: Upstream, tmp_path: Path) -> None:
    async def go() -> None:
        upstream.run(
            "create table zeros (k float8 primary key, n int)",
            "insert into zeros values ('-0', 1), ('NaN', 2)",
        )
        async with opened(tmp_path) as (client, _):
            await source(client, upstream)
            query = "select k::text, n from zeros order by n"
            for change in (
                "update zeros set k = 0, n = 3 where k = 0",
                "update zeros set k = '-0' where k = 0",
                "update zeros set n = n + 1",
                "delete from zeros where k = 0",
                "update zeros set n = 9",
            ):
                upstream.run(change)
                assert await client.ask(query) == upstream.run(query), change

    asyncio.run(go())


def test_an_array_of_several_dimensions_is_an_error_row(upstream: Upstream, tmp_path: Path) -> None:
    async def go() -> None:
        upstream.run("create table grid (id int primary key, a int[])")
        upstream.run("insert into grid values (1, '{1,2}'), (2, '{{1,2},{3,4}}')")
        async with opened(tmp_path) as (client, _):
            await source(client, upstream)
            assert await client.ask("select id from grid") == [(1,)]
            ((why,),) = await client.ask("select reason from s_errors")
            assert "more than one dimension" in why
            upstream.run("update grid set a = '{5}' where id = 2")
            assert await client.ask("select id from grid order by 1") == [(1,), (2,)]
            assert await client.ask("select count(*) from s_errors") == [(0,)]

    asyncio.run(go())
