"""psycopg 3 against the server: sync, async, pipeline, binary, COPY, streams, cancel."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import threading
import uuid
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import errors as pg
from psycopg.rows import tuple_row

from support.serve.host import Host

TYPED: list[tuple[str, Any]] = [
    ("boolean", True),
    ("smallint", -7),
    ("integer", 2**31 - 1),
    ("bigint", -(2**63)),
    ("real", 1.5),
    ("double precision", -0.1),
    ("numeric(10,2)", decimal.Decimal("-12.30")),
    ("numeric", decimal.Decimal("1e9")),
    ("text", "né\U0001f600\n"),
    ("character varying(5)", "abc"),
    ("bytea", b"\0\xff\\x"),
    ("date", dt.date(2024, 2, 29)),
    ("time without time zone", dt.time(23, 59, 59, 5)),
    ("timestamp without time zone", dt.datetime(1969, 12, 31, 1, 2, 3, 4)),
    ("timestamp with time zone", dt.datetime(2024, 6, 1, 12, tzinfo=dt.UTC)),
    ("interval", dt.timedelta(days=3, microseconds=7)),
    ("uuid", uuid.UUID(int=5)),
    ("integer[]", [1, None, 3]),
    ("text[]", ["a,b", 'q"', None, ""]),
]


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(("spelling", "value"), TYPED, ids=[name for name, _ in TYPED])
def test_a_value_there_and_back(host: Host, spelling: str, value: Any, binary: bool) -> None:
    with psycopg.connect(host.dsn(), autocommit=True) as connection:
        cursor = connection.cursor(binary=binary)
        for given in (value, None):
            form = b"%b" if binary else b"%s"
            cursor.execute(b"echo " + spelling.encode() + b" ;" + form, [given])
            assert cursor.fetchone() == (given,)
        assert cursor.description is not None
        assert cursor.description[0].name == "c1"


def test_an_instant_is_written_in_the_zone_of_the_session(host: Host) -> None:
    with psycopg.connect(host.dsn(), autocommit=True) as connection:
        connection.execute("set TimeZone Asia/Kolkata")
        assert connection.info.parameter_status("TimeZone") == "Asia/Kolkata"
        cursor = connection.execute(
            "echo timestamptz ;%t", [dt.datetime(2024, 6, 1, 12, tzinfo=dt.UTC)]
        )
        assert cursor.pgresult is not None
        assert cursor.pgresult.get_value(0, 0) == b"2024-06-01 17:30:00+05:30"


def test_large_results_stream_in_many_slices(host: Host) -> None:
    with psycopg.connect(host.dsn()) as connection:
        rows = connection.execute("rows 25000 by 3500").fetchall()
    assert rows == [(n, f"row {n}") for n in range(1, 25_001)]


def test_several_statements_are_one_transaction(host: Host) -> None:
    with psycopg.connect(host.dsn(), autocommit=True) as connection:
        connection.execute("insert 1; insert 2")
        with pytest.raises(pg.UniqueViolation):
            connection.execute("insert 3; fail; insert 4")
        assert connection.execute("table").fetchall() == [(1,), (2,)]
    assert "insert 4" not in host.sessions.executed


def test_transactions_commit_roll_back_and_fail(host: Host) -> None:
    with psycopg.connect(host.dsn()) as connection:
        connection.execute("insert 1")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        connection.rollback()
        connection.execute("insert 2")
        connection.commit()
        connection.execute("insert 3")
        with pytest.raises(pg.UniqueViolation):
            connection.execute("fail")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        with pytest.raises(pg.InFailedSqlTransaction):
            connection.execute("rows 1")
        connection.rollback()
        assert connection.execute("table").fetchall() == [(2,)]


def test_an_unreadable_parameter_fails_the_transaction(host: Host) -> None:
    with psycopg.connect(host.dsn()) as connection:
        connection.execute("insert 1")
        with pytest.raises(pg.InvalidTextRepresentation, match="integer"):
            connection.execute("echo integer ;%s", ["seven"])
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR


def test_every_field_of_an_error_arrives(host: Host) -> None:
    with psycopg.connect(host.dsn(), autocommit=True) as connection:
        with pytest.raises(pg.UniqueViolation) as caught:
            connection.execute("insert 1; fail")
        found = caught.value.diag
        assert found.severity == "ERROR"
        assert found.sqlstate == "23505"
        assert found.message_primary == "duplicate key"
        assert found.message_detail == "Key (n)=(1) exists."
        assert found.message_hint == "Choose another."
        assert found.statement_position == "11"  # of the whole text
        assert (found.table_name, found.constraint_name) == ("t", "t_pkey")


def test_what_nobody_foresaw_is_an_error_and_no_end(host: Host) -> None:
    with psycopg.connect(host.dsn(), autocommit=True) as connection:
        with pytest.raises(pg.InternalError_, match="internal error"):
            connection.execute("crash")
        with pytest.raises(pg.DivisionByZero):
            connection.execute("late")
        assert connection.execute("rows 1").fetchone() == (1, "row 1")


def test_notices_arrive(host: Host) -> None:
    with psycopg.connect(host.dsn(), autocommit=True) as connection:
        heard: list[tuple[str | None, str | None]] = []
        connection.add_notice_handler(
            lambda diag: heard.append((diag.message_primary, diag.message_hint))
        )
        connection.execute("notice all is well")
    assert heard == [("all is well", "Read it.")]


def test_prepared_statements_are_used_again_and_let_go(host: Host) -> None:
    with psycopg.connect(host.dsn(), autocommit=True) as connection:
        connection.prepare_threshold = 1
        connection.prepared_max = 2
        for number in range(20):
            text = f"echo integer, text ;%s %s {number % 4}"
            assert connection.execute(text, [number, "x"]).fetchone() == (number, "x")
        assert len(host.sessions.sessions[0].statements) <= 2


def test_a_pipeline_runs_and_skips_after_an_error(host: Host) -> None:
    with psycopg.connect(host.dsn(), autocommit=True) as connection:
        with connection.pipeline() as pipeline:
            cursors = [connection.execute("echo integer ;%s", [n]) for n in range(50)]
            pipeline.sync()
        assert [cursor.fetchone() for cursor in cursors] == [(n,) for n in range(50)]
        with pytest.raises(pg.UniqueViolation):
            _pipelined(connection, "insert 1", "fail", "insert 2")
        assert connection.execute("table").fetchall() == []  # one transaction, and it failed
        _pipelined(connection, "insert 3", "insert 4")
        assert connection.execute("table").fetchall() == [(3,), (4,)]
    assert "insert 2" not in host.sessions.executed


def _pipelined(connection: psycopg.Connection[Any], *texts: LiteralString) -> None:
    with connection.pipeline():
        for text in texts:
            connection.execute(text)


@pytest.mark.parametrize("form", ["text", "csv", "header", "binary"])
def test_copy_out_and_in(host: Host, form: str) -> None:
    with psycopg.connect(host.dsn(), autocommit=True) as connection, connection.cursor() as cursor:
        with cursor.copy(f"copy out {form}") as copy:
            data = b"".join(copy)
        assert cursor.rowcount == 10
        with cursor.copy(f"copy in {form}") as copy:
            for at in range(0, len(data), 7):
                copy.write(data[at : at + 7])
        assert cursor.rowcount == 10
    assert host.sessions.copied == [(n, f"row {n}") for n in range(1, 11)]


def test_copy_rows_with_types(host: Host) -> None:
    rows = [(1, "a\tb"), (2, None), (3, "back\\slash\nline"), (None, "")]
    with psycopg.connect(host.dsn(), autocommit=True) as connection, connection.cursor() as cursor:
        with cursor.copy("copy in") as copy:
            for row in rows:
                copy.write_row(row)
        with cursor.copy("copy out") as copy:
            copy.set_types(["int4", "text"])
            assert list(copy.rows())[:2] == [(1, "row 1"), (2, "row 2")]
    assert host.sessions.copied == rows


def test_a_copy_that_fails_leaves_nothing(host: Host) -> None:
    with psycopg.connect(host.dsn(), autocommit=True) as connection, connection.cursor() as cursor:
        with pytest.raises(pg.InvalidTextRepresentation):
            _copied(cursor, "1\tone\nbad\ttwo\n", "3\tthree\n" * 20_000)
        with pytest.raises(pg.BadCopyFileFormat, match="missing data"):
            _copied(cursor, "1\n")
        with pytest.raises(TypeError):
            _copied(cursor, "1\tone\n", 7)
        assert cursor.execute("rows 1").fetchone() == (1, "row 1")
    assert host.sessions.copied == []
    assert host.sessions.failed_copies == 3


def _copied(cursor: psycopg.Cursor[Any], *pieces: Any) -> None:
    with cursor.copy("copy in") as copy:
        for piece in pieces:
            copy.write(piece)


def test_a_stream_arrives_as_it_happens_and_can_be_cancelled(host: Host) -> None:
    with psycopg.connect(host.dsn(), autocommit=True) as connection:
        stream = connection.cursor(row_factory=tuple_row).stream("subscribe")
        seen = []
        ticker = _Ticker(host)
        for row in stream:
            seen.append(row)
            if len(seen) == 3:
                break
        ticker.stop()
        stream.close()
        assert seen == [(n, f"tick {n}") for n in (1, 2, 3)]
        assert connection.execute("rows 1").fetchone() == (1, "row 1")
    assert host.sessions.streams[0].closed


class _Ticker:
    """Ticks until it is stopped."""

    def __init__(self, host: Host) -> None:
        self._host, self._stopped = host, threading.Event()
        self._thread = threading.Thread(target=self._tick)
        self._thread.start()

    def _tick(self) -> None:
        while not self._stopped.wait(0.01):
            self._host.run(self._host.sessions.tick())

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()


def test_cancel_ends_the_statement_and_not_the_connection(host: Host) -> None:
    with psycopg.connect(host.dsn(), autocommit=True) as connection:
        timer = threading.Timer(0.2, connection.cancel_safe)
        timer.start()
        with pytest.raises(pg.QueryCanceled):
            connection.execute("wait")
        timer.join()
        assert connection.execute("rows 1").fetchone() == (1, "row 1")


def test_many_async_clients_at_once(host: Host) -> None:
    async def client(number: int) -> list[Any]:
        connection = await psycopg.AsyncConnection.connect(host.dsn(), autocommit=True)
        async with connection:
            found = []
            for turn in range(20):
                cursor = await connection.execute("echo int, int ;%s %s", [number, turn])
                found.append(await cursor.fetchone())
            return found

    async def all_of_them() -> list[list[Any]]:
        return await asyncio.gather(*(client(number) for number in range(20)))

    assert asyncio.run(all_of_them()) == [[(c, n) for n in range(20)] for c in range(20)]
    host.until(lambda: all(session.closed for session in host.sessions.sessions))


def test_a_client_that_vanishes_has_its_statement_cancelled(host: Host) -> None:
    connection = psycopg.connect(host.dsn(), autocommit=True)
    connection.pgconn.send_query(b"wait")
    connection.pgconn.flush()
    host.until(lambda: "wait" in host.sessions.executed)
    connection.pgconn.finish()
    connection.close()
    host.until(lambda: host.sessions.sessions[0].closed)
