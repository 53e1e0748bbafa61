"""A key is one when PostgreSQL says that it is: every type, hostile values, the same statements.

Laws: `noonmark.adapter.table.committer` (key), `noonmark.adapter.table.key_query` (complete),
`noonmark.rows.identity`. The judge is a PostgreSQL that gets the same statements.
"""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest

from noonmark.adapter.database import Database
from noonmark.errors import NoonmarkError
from support.neighbour.servers import PostgresServer
from support.serve.reading import Conversation, connect, with_database
from support.sql.peer import connected

#: Values of each type, among them such as are equal in SQL and not the same.
VALUES = {
    "numeric": ["0", "-0.00", "10", "10.0", "10.00", "NaN", "Infinity", "1e-40", "1e40", "0.1"],
    "boolean": ["t", "f", "true"],
    "smallint": ["0", "-1", "32767"],
    "integer": ["0", "-0", "7"],
    "bigint": ["0", "9223372036854775807"],
    "real": ["0", "-0", "NaN", "Infinity", "1e-45", "0.1"],
    "double precision": ["0", "-0", "NaN", "-NaN", "Infinity", "-Infinity", "1", "5e-324"],
    "numeric(10,2)": ["0", "-0", "1.00", "1", "1.005", "1.01"],
    "text": ["", "a", "a ", "A", "ä", "a,b", '"', "{a}"],
    "varchar(4)": ["a", "a ", "a   ", "ab"],
    "char(4)": ["a", "a ", "a   ", "ab", ""],
    "bytea": ["\\x", "\\x00", "\\x0000", "\\xff"],
    "date": ["2024-01-01", "infinity", "-infinity", "0044-03-15 BC"],
    "time": ["00:00", "24:00", "12:00:00.000001"],
    "timestamp": ["2024-01-01", "2024-01-01 00:00:00", "infinity"],
    "timestamptz": ["2024-01-01 00:00+00", "2024-01-01 05:00+05", "-infinity"],
    "interval": ["1 mon", "30 days", "720:00", "1 day", "24:00", "0", "-1 day", "-24:00"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "{00000000000000000000000000000000}"],
    "jsonb": ["1", "1.0", "1.00", '{"a": 1, "b": [1.0]}', '{"b": [1], "a": 1.0}', '"1"', "null"],
    "integer[]": ["{}", "{1}", "{1,NULL}", "{1,2}", "{NULL}"],
    "double precision[]": ["{0}", "{-0}", "{NaN}", "{0,-0}", "{-0,0}"],
    "interval[]": ["{1 mon}", "{30 days}", "{}", '{"1 day",24:00}', '{24:00,"1 day"}'],
    "text[]": ["{a}", "{a,b}", "{NULL}", '{"NULL"}', "{}"],
}  # fmt: skip


async def outcome(client: Conversation, sql: str) -> Any:
    try:
        return await client.ask(sql)
    except NoonmarkError as error:
        return error.sqlstate


def judged(peer: psycopg.Connection, sql: str) -> Any:
    try:
        done = peer.execute(sql)
    except psycopg.Error as error:
        return error.sqlstate
    return done.fetchall() if done.description else done.statusmessage


def statements(kind: str, key: str, seed: int, count: int) -> list[str]:
    """Random writes and look-ups of a table whose key begins with that type."""
    chance = random.Random(seed)
    made = []
    for at in range(count):
        value = "'" + chance.choice(VALUES[kind]).replace("'", "''") + "'"
        other = "'" + chance.choice(VALUES[kind]).replace("'", "''") + "'"
        made.append(
            chance.choice(
                (
                    f"insert into t values ({value}, 1, {at})",
                    f"insert into t values ({value}, {at % 2}, {at})",
                    f"insert into t values ({value}, 1, {at}) on conflict ({key}) do nothing",
                    f"insert into t values ({value}, 1, {at}) on conflict ({key}) "
                    f"do update set v = excluded.v",
                    f"insert into t values ({value}, 2, {at}), ({other}, 2, {at})",
                    f"update t set k = {value} where k = {other} and n = 1",
                    f"update t set v = {at} where k = {value}",
                    f"delete from t where k = {value} and n = {at % 2}",
                )
            )
        )
        made.append(f"select k::text, n, v from t where k = {value} order by n, v")
    return made


async def run(opened: Database, peer: psycopg.Connection, kind: str, key: str, count: int) -> None:
    client = await connect(opened)
    peer.execute("drop table if exists t")
    made = f"create table t (k {kind}, n int, v int, primary key ({key}))"
    assert judged(peer, made) == "CREATE TABLE" == await outcome(client, made)
    for sql in statements(kind, key, len(key), count):
        assert await outcome(client, sql) == judged(peer, sql), sql
        whole = "select k::text, n, v from t order by n, v, 1"
        assert await outcome(client, whole) == judged(peer, whole), sql
    groups = "select count(*), min(v) from t group by k order by 2, 1"
    assert await outcome(client, groups) == judged(peer, groups)
    distinct = "select count(*) from (select distinct k from t) as d"
    assert await outcome(client, distinct) == judged(peer, distinct)
    pairs = "select count(*) from t as a join t as b on a.k = b.k"
    assert await outcome(client, pairs) == judged(peer, pairs)


@pytest.mark.parametrize("kind", VALUES)
def test_a_key_is_equal_as_postgresql_says(kind: str, postgres_server: PostgresServer) -> None:
    with connected(postgres_server.dsn) as peer:
        for key in ("k", "k, n", "n, k"):

            @with_database
            async def act(opened: Database, key: str = key) -> None:
                await run(opened, peer, kind, key, count=12)

            act()
