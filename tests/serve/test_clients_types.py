"""Types of PostgreSQL through psycopg's and asyncpg's own adapters: a PostgreSQL says the same."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import ipaddress
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg.types.enum import EnumInfo, register_enum
from psycopg.types.multirange import Multirange
from psycopg.types.range import Range

from support.neighbour.servers import PostgresServer
from support.serve.host import DatabaseHost

MOOD = "create type mood as enum ('sad', 'ok')"
_CATALOG = "'a'::name, 26::oid, 'x'::\"char\", array[1::oid], array['a'::name]"


@pytest.fixture
def urls(database_host: DatabaseHost, postgres_server: PostgresServer) -> Iterator[list[str]]:
    with psycopg.connect(postgres_server.dsn, autocommit=True) as beside:
        beside.execute("create database adapters")
        own = f"postgresql://noonmark@{database_host.host}:{database_host.port}/noonmark"
        yield [own, f"{postgres_server.dsn.rpartition('/')[0]}/adapters?options=-ctimezone%3DUTC"]
        beside.execute("drop database adapters with (force)")


class Mood(enum.Enum):
    """Labels of the enum."""

    sad = "sad"
    ok = "ok"


def by_psycopg(url: str, *, binary: bool) -> list[Any]:
    mark = "%b" if binary else "%t"
    day = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    with psycopg.connect(url, autocommit=True) as connection:
        info = EnumInfo.fetch(connection, "mood")
        assert info is not None
        register_enum(info, connection, Mood)
        cursor = connection.cursor(binary=binary)
        asked: list[tuple[str, list[Any]]] = [
            ("int4range, {}::tstzrange, {}::numrange",
             [Range(1, 5), Range(day, None), Range(Decimal("1.5"), Decimal(2))]),
            ("int4multirange", [Multirange([Range(1, 3), Range(5, 7)])]),
            ("int4range[]", [[Range(1, 2), None]]),
            ("inet, {}::cidr",
             [ipaddress.ip_interface("10.0.0.1/8"), ipaddress.ip_network("10.0.0.0/8")]),
            ("mood, {}::mood[]", [Mood.ok, [Mood.sad]]),
            (f"text, b'101'::bit(3), point '(1,2)', box '(1,1),(0,0)', {_CATALOG}", ["x"]),
        ]  # fmt: skip
        if binary and "noonmark" in url:
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="Cast it to text"):
                cursor.execute("select 'int4'::regtype")
        return [
            cursor.execute(f"select {{}}::{text}".replace("{}", mark).encode(), values).fetchall()
            for text, values in asked
        ]


async def by_asyncpg(url: str) -> list[Any]:
    connection = await asyncpg.connect(url)
    asked: list[tuple[str, list[Any]]] = [
        ("$1::int4range, $2::daterange, $3::numrange",
         [asyncpg.Range(1, 5), asyncpg.Range(dt.date(2020, 1, 1)), asyncpg.Range(empty=True)]),
        ("$1::int4multirange", [[asyncpg.Range(1, 5)]]),
        ("$1::bit(3), $2::varbit", [asyncpg.BitString("101"), asyncpg.BitString("1")]),
        ("$1::point, $2::box, $3::circle, $4::lseg",
         [asyncpg.Point(1, 2), asyncpg.Box((1, 1), (0, 0)), asyncpg.Circle((0, 0), 2),
          asyncpg.LineSegment((0, 0), (1, 1))]),
        ("$1::inet, $2::cidr, $3::macaddr",
         [ipaddress.ip_address("10.0.0.1"), ipaddress.ip_network("10.0.0.0/8"),
          "08:00:2b:01:02:03"]),
        ("$1::mood, $2::mood[]", ["ok", ["sad"]]),
        (f"{_CATALOG}, 'int4'::regtype, 'pg_class'::regclass, pg_typeof(1)", []),
        ("pg_notify('a', 'b')", []),
        ("relname from pg_class where relname = $1 and oid = any($2::oid[])", ["pg_class", [1259]]),
    ]  # fmt: skip
    try:
        return [
            [tuple(row.values()) for row in await connection.fetch(f"select {text}", *values)]
            for text, values in asked
        ]
    finally:
        await connection.close()


@pytest.mark.server
def test_adapters_of_drivers_read_and_write_the_types(urls: list[str]) -> None:
    for url in urls:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(MOOD)
    for binary in (False, True):
        ours, theirs = (by_psycopg(url, binary=binary) for url in urls)
        assert ours == theirs
    ours, theirs = (asyncio.run(by_asyncpg(url)) for url in urls)
    assert ours == theirs
