"""COPY FROM in blocks, over the wire: by columns, by rows, and both in one; keys, errors, lines."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import errors as pg

from noonmark.adapter.contract import CopyFormat
from noonmark.adapter.table.committer import Tables
from noonmark.rows import types as t
from noonmark.serve.pgwire import copy_taken
from noonmark.serve.pgwire.copy import encoder
from support.serve.host import DatabaseHost

ROWS = 4_000


@pytest.fixture
def connection(
    database_host: DatabaseHost, monkeypatch: pytest.MonkeyPatch
) -> Iterator[psycopg.Connection[Any]]:
    monkeypatch.setattr(copy_taken, "BLOCK_BYTES", 4_096)
    with psycopg.connect(database_host.dsn("noonmark"), autocommit=True) as opened:
        yield opened


def table(connection: psycopg.Connection[Any], columns: str) -> str:
    name = f"t{uuid.uuid1().hex}"  # noqa: TID251 - a name for a test, nothing depends on it
    connection.execute(f"create table {name} ({columns})".encode())
    return name


def copy(connection: psycopg.Connection[Any], words: str, data: bytes, step: int = 700) -> None:
    with connection.cursor().copy(f"copy {words}".encode()) as stream:
        for at in range(0, len(data), step):
            stream.write(data[at : at + step])


def line(at: int, odd: bool) -> bytes:
    """A row of (id, name); odd ones need the exact way."""
    return b"%d\t%s\n" % (at, rb"tab\there" if odd else b"\\N" if at % 7 == 0 else b"name %d" % at)


@pytest.mark.parametrize("odd_share", [0.0, 0.001, 0.5])
@pytest.mark.parametrize("key", ["", " primary key"])
def test_blocks_of_both_kinds_are_one_copy(
    connection: psycopg.Connection[Any], odd_share: float, key: str
) -> None:
    random = Random(3)
    name = table(connection, f"id bigint{key}, name text")
    odd = {at for at in range(ROWS) if random.random() < odd_share}
    copy(connection, f"{name} from stdin", b"".join(line(at, at in odd) for at in range(ROWS)))
    found = dict(connection.execute(f"select id, name from {name}".encode()).fetchall())
    assert found == {
        at: "tab\there" if at in odd else None if at % 7 == 0 else f"name {at}"
        for at in range(ROWS)
    }


def test_a_key_that_is_there_twice_is_refused_whole(connection: psycopg.Connection[Any]) -> None:
    name = table(connection, "id bigint primary key, name text")
    data = b"".join(line(at, False) for at in range(ROWS))
    with pytest.raises(pg.UniqueViolation, match="Key \\(id\\)=\\(17\\)"):
        copy(connection, f"{name} from stdin", data + b"17\tagain\n")
    count = f"select count(*) from {name}".encode()
    assert connection.execute(count).fetchone() == (0,)
    copy(connection, f"{name} from stdin", data)
    with pytest.raises(pg.UniqueViolation):
        copy(connection, f"{name} from stdin", data)
    assert connection.execute(count).fetchone() == (ROWS,)


#: Keys as they are declared, and a value of each of their columns for a number.
KEYS: dict[str, tuple[str, Any]] = {
    "bigint": ("a bigint, n int, primary key (a)", lambda at: (at,)),
    "text": ("a text, n int, primary key (a)", lambda at: (f"key {at % 997:03} {at}",)),
    "two": ("a int, b text, n int, primary key (a, b)", lambda at: (at % 50, f"b{at // 50}")),
    "later": ("n int, a uuid, primary key (a)", lambda at: (uuid.UUID(int=at),)),
    "date": (
        "a date, n int, primary key (a)",
        lambda at: (dt.date(2000, 1, 1) + dt.timedelta(at),),
    ),
    "time": (
        "a timestamptz, n int, primary key (a)",
        lambda at: (dt.datetime(2000, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=at),),
    ),
    "numeric": ("a numeric(9,2), n int, primary key (a)", lambda at: (Decimal(f"{at}.00"),)),
}


@pytest.mark.parametrize("kind", KEYS)
def test_copies_beside_rows_that_are_there(
    connection: psycopg.Connection[Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a model: what is refused changes nothing, what was deleted has room again."""
    by_columns, insert = [], Tables.insert

    async def counted(tables: Tables, table: str, data: pa.Table) -> int | None:
        found = await insert(tables, table, data)
        by_columns.append(found is not None)
        return found

    monkeypatch.setattr(Tables, "insert", counted)
    random, (columns, key) = Random(kind), KEYS[kind]
    name = table(connection, columns)
    names = [each.split()[0] for each in columns.split(", primary")[0].split(", ")]
    keys = ", ".join(each for each in names if each != "n")
    there: dict[int, int] = {}
    refused = large = 0
    for step in range(16):
        begin, count = random.randrange(9_000), random.choice([1, 40, 900, 900])
        ids = list(range(begin, begin + count))
        if step % 5 == 4:
            ids.append(ids[0])
        random.shuffle(ids)
        lines = []
        for at in ids:
            values = [*map(str, key(at))]
            values.insert(names.index("n"), str(step))
            lines.append("\t".join(values))
        data = "".join(f"{each}\n" for each in lines).encode()
        if len(set(ids)) < len(ids) or there.keys() & set(ids):
            with pytest.raises(pg.UniqueViolation, match="already exists"):
                copy(connection, f"{name} from stdin", data)
            refused += 1
            gone = [at for at in ids if random.random() < 0.9]
            marks = ", ".join(["%s"] * keys.count(",") + ["%s"])
            with connection.cursor() as cursor:
                cursor.executemany(
                    f"delete from {name} where ({keys}) = ({marks})".encode(),
                    [key(at) for at in gone[:60]],
                )
            for at in gone[:60]:
                there.pop(at, None)
        else:
            copy(connection, f"{name} from stdin", data)
            there |= dict.fromkeys(ids, step)
            large += count == 900
        found = connection.execute(f"select {keys}, n from {name}".encode()).fetchall()
        assert sorted(map(str, found)) == sorted(str((*key(at), n)) for at, n in there.items())
    assert refused
    assert large > 1
    assert any(by_columns) == (kind != "numeric")
    assert kind == "numeric" or by_columns.count(True) >= large


def test_errors_name_their_line(connection: psycopg.Connection[Any]) -> None:
    name = table(connection, "id bigint not null, name varchar(9)")
    lines = [line(at, False) for at in range(1, ROWS) if at % 7]
    for bad, wanted in (
        (b"x\tname\n", "line 2001"),
        (b"1\n", "Line 2001"),
        (b"\\N\tname\n", "null value"),
        (b"1\tmuch too long\n", "value too long"),
        (b"1\t\xff\n", "invalid byte sequence"),
    ):
        data = b"".join([*lines[:2000], bad, *lines[2000:]])
        with pytest.raises(pg.DatabaseError, match=wanted):
            copy(connection, f"{name} from stdin", data)
    assert connection.execute(f"select count(*) from {name}".encode()).fetchone() == (0,)


def test_csv_with_a_header_and_quotes_here_and_there(connection: psycopg.Connection[Any]) -> None:
    name = table(connection, "id bigint, name text")
    rows = [b"%d,name %d\n" % (at, at) for at in range(ROWS)]
    rows[1500] = b'1500,"two\nlines, ""quoted"""\n'
    rows[3000] = b"3000,\n"
    copy(
        connection,
        f"{name} from stdin with (format csv, header)",
        b"".join([b"id,name\n", *rows]),
    )
    found = dict(connection.execute(f"select id, name from {name}".encode()).fetchall())
    assert len(found) == ROWS
    assert (found[1500], found[3000], found[7]) == ('two\nlines, "quoted"', None, "name 7")


def test_a_transaction_sees_what_it_copied(connection: psycopg.Connection[Any]) -> None:
    name = table(connection, "id bigint, name text")
    count = f"select count(*), sum(id) from {name}".encode()
    total = ROWS, ROWS * (ROWS - 1) // 2
    data = b"".join(line(at, False) for at in range(ROWS))
    with connection.transaction(force_rollback=True):
        copy(connection, f"{name} from stdin", data)
        assert connection.execute(count).fetchone() == total
    assert connection.execute(count).fetchone() == (0, None)
    with connection.transaction():
        copy(connection, f"{name} from stdin", data)
    assert connection.execute(count).fetchone() == total


def test_text_of_a_fixed_length_has_its_blanks(connection: psycopg.Connection[Any]) -> None:
    """By columns as by rows: blanks are added, blanks too many are cut, and no more than that."""
    name = table(connection, "id bigint, code char(4), word varchar(3)")
    data = b"".join(
        b"%d\t%s\tabc%s\n" % (at, b"a" * (at % 5), b" " * (at % 2)) for at in range(900)
    )
    copy(connection, f"{name} from stdin", data)
    found = connection.execute(
        f"select count(*), min(octet_length(code)), max(octet_length(code)), max(length(word)) "
        f"from {name} where code = rpad('', (id % 5)::int, 'a')".encode()
    ).fetchone()
    assert found == (900, 4, 4, 3)
    with pytest.raises(pg.StringDataRightTruncation):
        copy(connection, f"{name} from stdin", data + b"1\taaaaa\tabc\n")


@pytest.mark.parametrize("step", [700, 5_000])
def test_binary_by_columns_and_by_rows(connection: psycopg.Connection[Any], step: int) -> None:
    name = table(connection, "id bigint, name text, at timestamp")
    rows = [
        (at, None if at % 7 == 0 else f"name {at}", dt.datetime(2024, 1, 1 + at % 28))
        for at in range(ROWS)
    ]
    words = f"copy {name} from stdin (format binary)".encode()
    data = b"".join(_binary(rows))
    copy(connection, words.decode().removeprefix("copy "), data, step)
    found = connection.execute(f"select id, name, at from {name}".encode()).fetchall()
    assert sorted(found) == rows
    for bad, wanted in ((b"\0\3\0\0\0\3abc", "invalid binary data"), (b"\0\2", "expected 3")):
        with pytest.raises(pg.DatabaseError, match=wanted):
            copy(connection, words.decode().removeprefix("copy "), data[:-2] + bad * 9, step)


def _binary(rows: list[tuple[Any, ...]]) -> Iterator[bytes]:
    kinds = [t.BigInt(), t.Text(), t.Timestamp()]
    write = encoder(CopyFormat("binary"), kinds, dt.UTC)
    yield write.begin(())
    yield from map(write.encode, rows)
    yield write.end()
