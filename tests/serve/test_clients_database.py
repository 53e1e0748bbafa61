"""Real clients against a real database: psycopg, psql, HTTP, `noonmark sql`; without Spark."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import http.client
import json
import shutil
import subprocess
import threading
import uuid
from typing import Any, LiteralString

import psycopg
import pytest
from click.testing import CliRunner
from psycopg import errors as pg
from websockets.sync.client import connect as connect_socket

from noonmark import cli
from support.serve.host import DatabaseHost

TYPES: list[tuple[LiteralString, Any]] = [
    ("boolean", False),
    ("smallint", -3),
    ("integer", 7),
    ("bigint", 2**62),
    ("real", 0.25),
    ("double precision", 1e300),
    ("numeric(12,3)", decimal.Decimal("-1.250")),
    ("text", "zwölf\t\\N"),
    ("bytea", b"\0\x01"),
    ("date", dt.date(2000, 1, 1)),
    ("timestamp", dt.datetime(2000, 1, 1, 1, 1, 1, 1)),
    ("timestamptz", dt.datetime(2000, 1, 1, tzinfo=dt.UTC)),
    ("interval", dt.timedelta(hours=25)),
    ("uuid", uuid.UUID(int=1)),
    ("integer[]", [1, None]),
]


@pytest.fixture
def connection(database_host: DatabaseHost) -> Any:
    with psycopg.connect(database_host.dsn("noonmark"), autocommit=True) as opened:
        yield opened


def fresh(connection: psycopg.Connection[Any], columns: str = "a int primary key, b text") -> str:
    """A table that no other test has."""
    name = f"t{uuid.uuid1().hex}"  # noqa: TID251 - a name for a test, nothing depends on it
    connection.execute(f"create table {name} ({columns})".encode())
    return name


def test_every_type_through_a_table(connection: psycopg.Connection[Any]) -> None:
    columns = ", ".join(f"c{n} {spelling}" for n, (spelling, _) in enumerate(TYPES))
    table = fresh(connection, columns)
    values = [value for _, value in TYPES]
    for form in ("%s", "%b", "%t"):
        marks = ", ".join(form for _ in TYPES)
        connection.execute(f"insert into {table} values ({marks})".encode(), values)
    connection.execute(f"insert into {table} values ({', '.join('null' for _ in TYPES)})".encode())
    for binary in (False, True):
        cursor = connection.cursor(binary=binary)
        rows = cursor.execute(f"select * from {table}".encode()).fetchall()
        nulls = tuple(None for _ in TYPES)
        assert sorted(rows, key=str) == sorted([tuple(values)] * 3 + [nulls], key=str)


def test_reads_by_key_in_every_mode(connection: psycopg.Connection[Any]) -> None:
    table = fresh(connection)
    with connection.cursor() as cursor:
        rows = [(n, f"row {n}") for n in range(200)]
        cursor.executemany(f"insert into {table} values (%s, %s)".encode(), rows)
        text = f"select a, b from {table} where a = %s".encode()
        for binary in (False, True):
            for prepare in (False, True):
                found = cursor.execute(text, [17], prepare=prepare, binary=binary).fetchall()
                assert found == [(17, "row 17")]
        with connection.pipeline():
            cursors = [connection.execute(text, [n]) for n in range(50)]
        assert [c.fetchone() for c in cursors] == rows[:50]


def test_an_array_whose_type_the_client_leaves_open(
    connection: psycopg.Connection[Any],
) -> None:
    """As drivers of other languages send it: text, of no type."""
    result = connection.pgconn.exec_params(b"select $1::int[], $1", [b"{1,NULL,3}"])
    assert result.error_message == b""
    assert [result.get_value(0, at) for at in (0, 1)] == [b"{1,NULL,3}"] * 2


def test_transactions(connection: psycopg.Connection[Any]) -> None:
    table = fresh(connection)
    with connection.transaction():
        connection.execute(f"insert into {table} values (1, 'one')".encode())
    with pytest.raises(pg.UniqueViolation), connection.transaction():
        connection.execute(f"insert into {table} values (2, 'two'), (1, 'again')".encode())
    with connection.transaction():
        connection.execute(f"insert into {table} values (3, 'three')".encode())
        raise psycopg.Rollback
    with pytest.raises(pg.SyntaxError):
        connection.execute(f"insert into {table} values (4, 'four'); nonsense".encode())
    assert connection.execute(f"select * from {table}".encode()).fetchall() == [(1, "one")]


def test_a_pipeline_is_one_transaction(connection: psycopg.Connection[Any]) -> None:
    table = fresh(connection)
    # What it prepares in a pipeline that fails psycopg takes as prepared, with PostgreSQL too.
    connection.prepare_threshold = None
    connection.execute(f"insert into {table} values (1, 'one')".encode())
    for keys in ((2, 3, 1), (1, 2, 3)):
        with pytest.raises(pg.UniqueViolation):
            _insert_all(connection, table, keys)
        found = connection.execute(f"select a from {table}".encode()).fetchall()
        assert found == [(1,)]
    _insert_all(connection, table, (2, 3))
    assert connection.execute(f"select count(*) from {table}".encode()).fetchone() == (3,)


def _insert_all(connection: psycopg.Connection[Any], table: str, keys: tuple[int, ...]) -> None:
    with connection.pipeline():
        for key in keys:
            connection.execute(f"insert into {table} values (%s, 'p')".encode(), [key])


@pytest.mark.parametrize("form", ["text", "csv", "binary"])
def test_copy(connection: psycopg.Connection[Any], form: str) -> None:
    source, target = fresh(connection), fresh(connection)
    rows = [(n, None if n % 3 == 0 else f'"{n}",\t\\') for n in range(100)]
    with connection.cursor() as cursor:
        cursor.executemany(f"insert into {source} values (%s, %s)".encode(), rows)
        with cursor.copy(f"copy {source} to stdout (format {form})".encode()) as copy:
            data = b"".join(copy)
        with cursor.copy(f"copy {target} from stdin (format {form})".encode()) as copy:
            copy.write(data)
        assert cursor.rowcount == 100
        found = cursor.execute(f"select * from {target} order by a".encode()).fetchall()
    assert found == rows


def test_a_subscription_streams_and_ends_when_cancelled(
    connection: psycopg.Connection[Any], database_host: DatabaseHost
) -> None:
    table = fresh(connection)
    connection.execute(f"insert into {table} values (1, 'one')".encode())
    with psycopg.connect(database_host.dsn("noonmark"), autocommit=True) as other:
        stream = connection.cursor().stream(f"subscribe {table}".encode())
        assert next(stream)[1:] == (1, 1, "one")
        other.execute(f"insert into {table} values (2, 'two')".encode())
        assert next(stream)[1:] == (1, 2, "two")
        other.execute(f"delete from {table} where a = 1".encode())
        assert next(stream)[1:] == (-1, 1, "one")
        stream.close()
    assert connection.execute("select 1").fetchone() == (1,)


def test_a_subscription_through_copy(connection: psycopg.Connection[Any]) -> None:
    table = fresh(connection)
    connection.execute(f"insert into {table} values (1, 'one')".encode())
    with connection.cursor() as cursor:
        copy = cursor.copy(f"copy (subscribe {table}) to stdout".encode())
        with pytest.raises(pg.QueryCanceled):
            _take_one(connection, copy)
    assert connection.execute("select 1").fetchone() == (1,)


def _take_one(connection: psycopg.Connection[Any], copy: Any) -> None:
    with copy as rows:
        first = next(iter(rows))
        assert bytes(first).endswith(b"\t1\t1\tone\n")
        connection.cancel_safe()
        list(rows)


def test_cursors_take_parts(connection: psycopg.Connection[Any]) -> None:
    table = fresh(connection)
    with connection.cursor() as cursor:
        rows = [(n, str(n)) for n in range(500)]
        cursor.executemany(f"insert into {table} values (%s, %s)".encode(), rows)
    with connection.transaction(), connection.cursor("mine") as cursor:
        cursor.itersize = 70
        cursor.execute(f"select a, b from {table} order by a".encode())
        assert list(cursor) == rows


def test_errors_say_where(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(pg.UndefinedTable) as caught:
        connection.execute("select 1; select * from nowhere")
    assert caught.value.diag.statement_position == "25"
    with pytest.raises(pg.DivisionByZero):
        connection.execute("select 1 / %s", [0])
    with pytest.raises(pg.UndefinedColumn) as column:
        connection.execute("select nope")
    assert column.value.diag.statement_position == "8"


def test_many_clients_write_and_read_at_once(
    connection: psycopg.Connection[Any], database_host: DatabaseHost
) -> None:
    table = fresh(connection)

    async def client(number: int) -> None:
        opened = await psycopg.AsyncConnection.connect(
            database_host.dsn("noonmark"), autocommit=True
        )
        async with opened:
            for turn in range(5):
                key = number * 100 + turn
                await opened.execute(f"insert into {table} values (%s, 'x')".encode(), [key])
                cursor = await opened.execute(f"select a from {table} where a = %s".encode(), [key])
                assert await cursor.fetchone() == (key,)  # strict serializable: at once

    async def all_of_them() -> None:
        await asyncio.gather(*(client(number) for number in range(16)))

    asyncio.run(all_of_them())
    count = connection.execute(f"select count(*) from {table}".encode()).fetchone()
    assert count == (80,)


def test_a_cancel_from_another_connection(connection: psycopg.Connection[Any]) -> None:
    table = fresh(connection)
    timer = threading.Timer(0.3, connection.cancel_safe)
    timer.start()
    with pytest.raises(pg.QueryCanceled):
        connection.execute(f"subscribe {table}".encode())
    timer.join()


def test_sql_over_http_and_websocket(
    connection: psycopg.Connection[Any], database_host: DatabaseHost
) -> None:
    table = fresh(connection)
    asked = http.client.HTTPConnection(database_host.http, timeout=30)
    body = {"query": f"insert into {table} values (1, 'one'); select * from {table}"}
    asked.request("POST", "/api/sql", json.dumps(body), {"Content-Type": "application/json"})
    first, second = json.loads(asked.getresponse().read())["results"]
    asked.close()
    assert first["ok"] == "INSERT 0 1"
    assert second["rows"] == [["1", "one"]]
    with connect_socket(f"ws://{database_host.http}/api/sql") as socket:
        socket.send("{}")
        socket.send(json.dumps({"query": f"subscribe {table}"}))
        while (said := json.loads(socket.recv(30)))["type"] != "Row":
            assert said["type"] != "Error"
        assert said["payload"][1:] == ["1", "1", "one"]


def test_the_small_client_finds_its_way(
    connection: psycopg.Connection[Any], database_host: DatabaseHost
) -> None:
    table = fresh(connection)
    url = f"postgresql://noonmark@{database_host.host}:{database_host.port}/noonmark"
    words = ["sql", "--url", url, "-c", r"\d", "-c", rf"\d {table}"]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.output
    assert table in done.output
    assert "integer" in done.output


@pytest.mark.skipif(shutil.which("psql") is None, reason="this machine has no psql")
def test_psql(connection: psycopg.Connection[Any], database_host: DatabaseHost) -> None:
    table = fresh(connection)
    script = f"""
        insert into {table} values (1, 'one'), (2, null);
        select * from {table} order by a;
        \\d {table}
        \\dt
        \\copy {table} to stdout csv
    """
    command = ["psql", "-X", "-v", "ON_ERROR_STOP=1", database_host.dsn("noonmark")]
    done = subprocess.run(command, input=script, text=True, capture_output=True, check=False)
    assert done.stderr == ""
    assert "INSERT 0 2" in done.stdout
    assert " 1 | one" in done.stdout
    assert "(2 rows)" in done.stdout
    assert "1,one\n2,\n" in done.stdout


def test_roles_prove_their_passwords(
    connection: psycopg.Connection[Any], database_host: DatabaseHost
) -> None:
    connection.execute("create role ada login password 's3cret'")
    try:
        with psycopg.connect(database_host.dsn("ada", password="s3cret")) as hers:
            assert hers.execute("select current_user").fetchone() == ("ada",)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(database_host.dsn("ada", password="guess"))
    finally:
        connection.execute("drop role ada")
