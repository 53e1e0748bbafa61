"""`noonmark serve --read-only` beside a writer that writes, is killed, and is started again."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from noonmark.clock import SYSTEM
from support.serve.process import PORTS, Server, command, serving

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.slow]

QUERIES = (
    "select k, v from t",
    "select k, n, total from totals",
    "select t.k, t.v, totals.n from t join totals on t.k = totals.k",
)
SPARK = ("--spark", "local[2]")
Seen = list[tuple[str, int, list[Any]]]


def set_up(connection: psycopg.Connection) -> None:
    connection.execute("create table t (k int, v int)")
    connection.execute(
        "create materialized view totals as"
        " select k, count(*) as n, sum(v) as total from t group by k"
    )
    connection.execute("insert into t values (0, 0)")
    assert connection.execute("select k, n from totals").fetchall() == [(0, 1)]


@contextmanager
def inserting(server: Server, first: int, acknowledged: list[int]) -> Iterator[None]:
    """Rows that come until the end, or until the server is gone."""
    stop = threading.Event()

    def work() -> None:
        try:
            with server.connect() as connection:
                for n in range(first, first + 100_000):
                    connection.execute("insert into t values (%s, %s)", (n % 5, n))
                    acknowledged.append(n)
                    if stop.wait(0.02):
                        return
        except psycopg.OperationalError:
            return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def answers(reader: Server, rounds: int) -> Seen:
    """What a replica answers, and at which times."""
    seen: Seen = []
    with reader.connect() as connection:
        for _ in range(rounds):
            for query in QUERIES:
                with connection.transaction():
                    rows = connection.execute(query).fetchall()
                    (line,) = connection.execute(f"explain timestamp for {query}").fetchone() or ()
                seen.append((query, int(line.rpartition(" ")[2]), sorted(rows)))
    return seen


def check(server: Server, seen: Seen) -> None:
    with server.connect() as connection:
        for query, time, rows in seen:
            assert sorted(connection.execute(f"{query} as of {time}").fetchall()) == rows, time


def subscribed(server: Server, query: str, start: int, end: int) -> list[Any]:
    with server.connect() as connection:
        sql = f"subscribe ({query}) as of {start} up to {end}"
        return sorted(connection.execute(sql).fetchall())


def strict(reader: Server, query: str) -> list[Any]:
    with reader.connect() as connection:
        connection.execute("set transaction_isolation = 'strict serializable'")
        return connection.execute(query).fetchall()


def until(reader: Server, query: str, wanted: list[Any]) -> None:
    """Ask at the replica's own frontier, until it has followed."""
    deadline = SYSTEM.monotonic() + 60
    with reader.connect() as connection:
        while (found := connection.execute(query).fetchall()) != wanted:
            assert SYSTEM.monotonic() < deadline, found


def over_http(reader: Server, query: str) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{reader.http}/api/sql",
        json.dumps({"query": query}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["results"][0]


def stop(server: Server) -> None:
    server.process.send_signal(signal.SIGTERM)
    out, err = server.process.communicate(timeout=60)
    assert (server.process.returncode, out) == (0, ""), err


def test_replicas_beside_a_writer_that_is_killed(tmp_path: Path) -> None:
    acknowledged: list[int] = []
    with ExitStack() as stack:
        writer = stack.enter_context(serving(tmp_path, *SPARK))
        with writer.connect() as connection:
            set_up(connection)
        readers = [stack.enter_context(serving(tmp_path, "--read-only")) for _ in range(2)]
        with inserting(writer, 1, acknowledged):
            seen = [each for reader in readers for each in answers(reader, 10)]
            for reader in readers:
                before = list(acknowledged)
                found = {row[0] for row in strict(reader, "select v from t")}
                assert set(before) <= found
                ((total,),) = strict(reader, "select sum(n) from totals")
                assert total >= len(before)
        check(writer, seen)
        assert len({time for _, time, _ in seen}) > 1
        _same_updates(writer, readers, seen)
        _same_catalog(writer, readers)
        _refused(readers[0])

        with inserting(writer, 200_000, acknowledged):
            last = [each for reader in readers for each in answers(reader, 2)]
            writer.process.kill()
        for reader in readers:
            with reader.connect() as connection:
                rows = {row[0] for row in connection.execute("select v from t").fetchall()}
                assert {0, *acknowledged} <= rows
                connection.execute("set transaction_isolation = 'strict serializable'")
                with pytest.raises(psycopg.errors.FeatureNotSupported, match="cannot be asked"):
                    connection.execute("select v from t")
            assert over_http(reader, "select count(*) from t")["rows"]

        writer = stack.enter_context(serving(tmp_path, *SPARK))
        check(writer, last)
        with writer.connect() as connection:
            connection.execute("insert into t values (77, 1)")
        for reader in readers:
            assert strict(reader, "select k, n from totals where k = 77") == [(77, 1)]
            until(reader, "select v from t where k = 77", [(1,)])
        stop(writer)
        for reader in readers:
            until(reader, "select v from t where k = 77", [(1,)])
            stop(reader)


def _same_updates(writer: Server, readers: list[Server], seen: Seen) -> None:
    times = sorted(time for _, time, _ in seen)
    for query in QUERIES[:2]:
        wanted = subscribed(writer, query, times[0], times[-1])
        assert wanted
        for reader in readers:
            assert subscribed(reader, query, times[0], times[-1]) == wanted


def _same_catalog(writer: Server, readers: list[Server]) -> None:
    with writer.connect() as connection:
        connection.execute("create table later (a int)")
        connection.execute("create view doubled as select 2 * a as b from later")
        connection.execute("insert into later values (21)")
    for reader in readers:
        assert strict(reader, "select b from doubled") == [(42,)]
        until(reader, "select b from doubled", [(42,)])
    with writer.connect() as connection:
        connection.execute("drop table later cascade")
    for reader in readers:
        with pytest.raises(psycopg.errors.UndefinedTable):
            strict(reader, "select b from doubled")


def _refused(reader: Server) -> None:
    with reader.connect() as connection:
        for sql in ("insert into t values (1, 1)", "create table x (a int)", "drop table t"):
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="read-only server"):
                connection.execute(sql)
        with connection.cursor() as cursor, cursor.copy("copy t to stdout") as copy:
            assert sum(1 for _ in copy.rows()) > 1
    assert over_http(reader, "show tables")["rows"]
    with pytest.raises(psycopg.OperationalError, match="session is read-only"):
        psycopg.connect(
            f"host=127.0.0.1 port={reader.pg} user=me dbname=noonmark"
            " target_session_attrs=read-write"
        )


def test_a_read_only_server_needs_a_location(tmp_path: Path) -> None:
    done = subprocess.run(
        command("--data", str(tmp_path / "nothing"), "--read-only", *PORTS),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no storage location" in done.stderr
