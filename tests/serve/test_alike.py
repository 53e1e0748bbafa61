"""Statements that differ in their literals alone share a plan, and nobody can tell.

Each text is sent twice: as it is, and with a comment, which keeps it from sharing. Shapes come from
few forms, so that nearly every text is of one that was seen before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from noonmark.adapter.database import Database
from noonmark.errors import DatatypeMismatch
from noonmark.sql.statement.shape import shape_of
from support.serve.host import DatabaseHost
from support.serve.reading import connect, with_database

KINDS = (
    "smallint", "int", "bigint", "numeric", "numeric(6,2)", "double precision", "boolean", "text",
    "varchar(4)", "char(3)", "uuid", "date", "timestamp", "timestamptz", "real", "jsonb", "bytea",
    "interval", "time", "int[]",
)  # fmt: skip
NUMBERS = ("0", "1", "-1", "-0", "007", "-0.0", "1.50", "2.5", "32767", "-32768", "32768",
           "2147483648", "-2147483648", "9223372036854775807", "-9223372036854775808",
           "123456789012345678901", "123456.789", "16777217", "1e3", "0x10")  # fmt: skip
TEXTS = ("", "a", "it''s", "a  ", "abcde", "1", " 1 ", "-0", "1.5", "t", "yes", "NaN", "a b",
         "2024-02-29", "2024-02-30", "2024-02-29 10:20:30.5", "2024-02-29 10:20:30+02", "infinity",
         "5f2b3b34-1c3e-4bd7-9c2c-000000000001", "null", "{}", "{1,2}", "1 day", "é")  # fmt: skip
CELLS = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from(TEXTS).map(lambda text: f"'{text}'"),
    st.sampled_from(["null", "true", "e'a'", "default", "1 + 1", "'a' 'b'", "'1'::int"]),
)
FORMS = (
    "insert into alike ({c}) values ({x})",
    "INSERT INTO alike ({c}, k) VALUES ({x}, {y}), ({y}, {x})",
    "insert into alike (k, {c}) values (3, {x}) on conflict (k) do update set {c} = {y}",
    "insert into alike (k, {c}) values (9, {x}) returning k, {c} = {x}",
    "update alike set {c} = {x}",
    "update alike set {c} = {x} where k = {y}",
    "update alike set {c} = {x}, k = 7 where k < {y} and {c} is null;",
    "delete from alike where {c} = {x}",
    "delete from alike where {c} <> {x} or k >= {y} ",
    "select k, {c} from alike where {c} = {x}",
    "select k from alike where {c} <= {x} and k != {y} order by 1",
    "select {c} = {x}, k > {y} as larger from alike order by k limit 2",
    "select count(*), {c} = {x} from alike group by {c} = {x}",
    "select k from alike where k = {x} or {c} = {y} order by k",
    "select case when {c} = {x} then {y} else 'no' end from alike",
    "select count(*) filter (where {c} > {x}) from alike having count(*) > {y}",
    "select a.k from alike a join alike b on a.{c} = b.{c} and b.k = {y} where a.{c} = {x}",
    "select {x} = {y}",
)


@pytest.fixture(scope="module")
def connection(database_host: DatabaseHost) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_host.dsn("noonmark"), autocommit=True) as opened:
        opened.prepare_threshold = None
        columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(KINDS))
        opened.execute(f"create table alike (k int unique, {columns})".encode())
        opened.execute("insert into alike (k) values (1), (2), (3), (4)")
        for at, kind in enumerate(KINDS):
            for k, text in enumerate(TEXTS):
                try:
                    opened.execute(f"update alike set c{at} = '{text}'::{kind} where k = "
                                   f"{k % 4 + 1} and c{at} is null".encode())  # fmt: skip
                except psycopg.Error:
                    continue
        yield opened


def outcome(connection: psycopg.Connection[Any], text: str) -> Any:
    """What the statement gives and leaves, or its error."""
    try:
        with connection.transaction(force_rollback=True):
            done = connection.execute(text.encode())
            rows = done.fetchall() if done.description else []
            names = [(each.name, each.type_code) for each in done.description or ()]
            left = connection.execute("select alike::text from alike").fetchall()
            return done.statusmessage, names, sorted(map(repr, rows)), sorted(left)
    except psycopg.Error as error:
        diag = error.diag
        return (diag.sqlstate, diag.message_primary, diag.message_detail, diag.message_hint,
                diag.statement_position, diag.constraint_name)  # fmt: skip


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from(FORMS), st.integers(0, len(KINDS) - 1), st.lists(st.tuples(CELLS, CELLS),
    min_size=3, max_size=4),
)  # fmt: skip
@example(FORMS[0], 1, [("'1'", "1")] * 2 + [("'x'", "1")])
@example(FORMS[9], 13, [("'2024-02-29 10:20'", "1")] * 3)
def test_as_if_alone(
    connection: psycopg.Connection[Any], form: str, at: int, cells: list[tuple[str, str]]
) -> None:
    for x, y in cells:
        text = form.format(c=f"c{at}", x=x, y=y)
        assert outcome(connection, text) == outcome(connection, f"{text.rstrip('; ')} /**/"), text


def test_what_stays() -> None:
    """Literals that mean something by their place are part of the shape."""
    for text in (
        "select 1", "select * from t limit 5", "select * from t order by 1", "select f(1, 'a')",
        "select * from t where a in (1, 2)", "select * from t where a = 1 + 1",
        "select * from t where a = '1'::int", "select * from t where a = e'x'",
        "select * from t where a = 'x' 'y'", "select * from t where a = 1 -- b",
        "select * from t where a = $1", "select 1; select * from t where a = 1",
        "set a = 5", "select * from f(a => 5)", "select * from t where a = date '2024-01-01'",
        "select * from (values (1, 2)) v", "select * from t where a = 1e5",
    ):  # fmt: skip
        assert shape_of(text) is None, text


@with_database
async def test_planned_once(opened: Database) -> None:
    client = await connect(opened)
    session = client.session
    await client.ask("create table t (k int, v text)")

    async def shared(text: str) -> bool:
        return await session.alike.find(session, text) is not None

    assert [await shared(f"insert into t values ({k}, 'v{k}')") for k in range(3)] == [0, 1, 1]
    assert [await shared(f"select v from t where k = {k}") for k in range(3)] == [0, 1, 1]
    kept = await session.alike.find(session, "select v from t where k = 7")
    assert kept is not None
    again = await session.alike.find(session, "select v from t where k = 8")
    assert again is not None
    assert kept[0] is again[0]
    assert (kept[1], again[1]) == ([7], [8])
    # The same text means something else under another catalog: the literal is a text now.
    text = "select k from t where v = '07'"
    await session.ask(text)
    await session.ask(text)
    await client.ask("insert into t values (1, '7')")
    await client.ask("drop table t")
    await client.ask("create table t (k int, v int)")
    await client.ask("insert into t values (1, 7)")
    outcome: Any = await session.ask(text)
    assert [row async for chunk in outcome.chunks for row in chunk] == [(1,)]


@with_database
async def test_a_literal_is_not_cast_as_a_parameter_is(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (k int, b boolean, c bytea)")
    await client.ask("insert into t values (1, false, null)")
    for column in ("b", "c"):
        for number in range(4):
            with pytest.raises(DatatypeMismatch):
                await client.session.ask(f"update t set {column} = {number}")
    assert await client.ask("select * from t") == [(1, False, None)]


@with_database
async def test_another_path_is_another_plan(opened: Database) -> None:
    """Also when SET LOCAL's path ends with its transaction: the literal is of another type then."""
    client = await connect(opened)

    async def asked(value: str) -> Any:
        outcome: Any = await client.session.ask(f"select k from t where v = '{value}'")
        return [row async for chunk in outcome.chunks for row in chunk]

    await client.ask("create schema other")
    await client.ask("create table t (k int, v text)")
    await client.ask("create table other.t (k int, v int)")
    await client.ask("insert into t values (1, '07'), (2, '7')")
    await client.ask("insert into other.t values (3, 7)")
    await client.ask("begin")
    await client.ask("set local search_path = other")
    assert [await asked(each) for each in ("7", "07", " 7")] == [[(3,)]] * 3
    await client.ask("commit")
    assert [await asked(each) for each in ("7", "07", " 7")] == [[(2,)], [(1,)], []]
    await client.ask("set search_path = other")
    assert [await asked(each) for each in ("7", "07", " 7")] == [[(3,)]] * 3
