"""COPYs that have not ended take at most `copy_memory` together; the one beyond it ends alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest
from psycopg import errors

from noonmark.adapter.table.copy_memory import CopyMemory
from support.serve.host import DatabaseHost

#: A line of 1 kB; the table that it becomes takes about as much.
LINE = f"1\t{'x' * 1000}\n".encode()
MEGABYTE = LINE * 1000


@pytest.fixture
def host() -> Iterator[DatabaseHost]:
    made = DatabaseHost()
    made.database.copies = CopyMemory(16)
    yield made
    made.close()


@pytest.fixture
def client(host: DatabaseHost) -> Iterator[psycopg.Connection]:
    with psycopg.connect(host.dsn("noonmark"), autocommit=True) as connection:
        connection.execute("create table t (a int, b text)")
        yield connection


def count(client: psycopg.Connection) -> int:
    row = client.execute("select count(*) from t").fetchone()
    assert row is not None
    return int(row[0])


def send(client: psycopg.Connection, text: str, piece: bytes, times: int) -> None:
    with client.cursor() as cursor, cursor.copy(text) as copy:
        for _ in range(times):
            copy.write(piece)


# By columns; and row by row, where the columns are not those of the table in their order.
@pytest.mark.parametrize("columns", ["a, b", "b"])
def test_a_copy_beyond_the_limit_ends_alone(
    host: DatabaseHost, client: psycopg.Connection, columns: str
) -> None:
    piece = MEGABYTE if "a" in columns else MEGABYTE.replace(b"1\t", b"")
    text = f"copy t ({columns}) from stdin"
    with pytest.raises(errors.OutOfMemory, match="16 MB") as refused:
        send(client, text, piece, 40)
    assert "copy_memory" in (refused.value.diag.message_detail or "")
    assert count(client) == 0
    assert host.database.copies.taken == 0
    send(client, text, piece, 8)
    assert count(client) == 8_000
    assert host.database.copies.taken == 0


def test_copies_share_the_limit(host: DatabaseHost, client: psycopg.Connection) -> None:
    with (
        psycopg.connect(host.dsn("noonmark"), autocommit=True) as other,
        client.cursor() as cursor,
        cursor.copy("copy t from stdin") as copy,
    ):
        for _ in range(12):
            copy.write(MEGABYTE)
        # The rest may still be with the client.
        host.until(lambda: host.database.copies.taken > 2 << 20)
        with pytest.raises(errors.OutOfMemory):
            send(other, "copy t from stdin", MEGABYTE, 15)
    assert count(client) == 12_000
    send(client, "copy t from stdin", MEGABYTE, 15)
    assert count(client) == 27_000


def test_a_client_that_gives_up_frees_what_it_took(
    host: DatabaseHost, client: psycopg.Connection
) -> None:
    with (
        suppress(RuntimeError),
        client.cursor() as cursor,
        cursor.copy("copy t from stdin") as copy,
    ):
        for _ in range(10):
            copy.write(MEGABYTE)
        raise RuntimeError("enough")
    assert host.database.copies.taken == 0
    assert count(client) == 0
