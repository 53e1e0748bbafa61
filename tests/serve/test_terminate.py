"""pg_terminate_backend ends a session: its statement, its transaction, its connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from support.serve.host import DatabaseHost


@pytest.fixture
def host() -> Iterator[DatabaseHost]:
    made = DatabaseHost()
    yield made
    made.close()


def connected(host: DatabaseHost, user: str = "noonmark") -> psycopg.Connection[Any]:
    return psycopg.connect(host.dsn(user), autocommit=True)


def number(connection: psycopg.Connection[Any]) -> int:
    return int(connection.execute("select pg_backend_pid()").fetchone()[0])


def is_there(asking: psycopg.Connection[Any], pid: int) -> bool:
    found = asking.execute("select count(*) from pg_stat_activity where pid = %s", (pid,))
    return bool(found.fetchone()[0])


def end(asking: psycopg.Connection[Any], pid: int) -> bool:
    """End a session, waiting for the end for at most ten seconds."""
    return bool(asking.execute("select pg_terminate_backend(%s, 10000)", (pid,)).fetchone()[0])


def test_an_idle_session_is_told_and_gone(host: DatabaseHost) -> None:
    with connected(host) as asking, connected(host) as other:
        other.execute("create table kept (a int)")
        other.execute("begin")
        other.execute("insert into kept values (1)")
        pid = number(other)
        assert end(asking, pid)
        assert not is_there(asking, pid)
        with pytest.raises(psycopg.OperationalError, match="administrator command"):
            other.execute("select 1")
        assert asking.execute("select count(*) from kept").fetchone()[0] == 0
        assert not end(asking, pid), "there is no such session any more"


def test_a_statement_under_way_is_given_up(host: DatabaseHost) -> None:
    said: list[str] = []

    def work(other: psycopg.Connection[Any]) -> None:
        try:
            other.execute("select pg_sleep(60)")
        except psycopg.Error as error:
            said.append(str(error.sqlstate))

    with connected(host) as asking, connected(host) as other:
        pid = number(other)
        at_work = threading.Thread(target=work, args=(other,))
        at_work.start()
        host.until(lambda: "pg_sleep" in query_of(asking, pid))
        assert end(asking, pid)
        at_work.join(10)
        assert said == ["57P01"]
        assert not is_there(asking, pid)


def query_of(asking: psycopg.Connection[Any], pid: int) -> str:
    sql = "select query from pg_stat_activity where pid = %s"
    return str(asking.execute(sql, (pid,)).fetchone()[0])


def test_a_session_may_end_itself(host: DatabaseHost) -> None:
    with connected(host) as asking, connected(host) as other:
        pid = number(other)
        other.execute("begin")
        with pytest.raises(psycopg.OperationalError):
            other.execute("select pg_terminate_backend(pg_backend_pid()), pg_sleep(60)")
        host.until(lambda: not is_there(asking, pid))


def test_only_a_superuser_ends_the_sessions_of_others(host: DatabaseHost) -> None:
    with connected(host) as root:
        root.execute("create role one login")
        root.execute("create role two login")
        with connected(host, "one") as one, connected(host, "two") as two:
            with connected(host, "one") as again:
                assert end(one, number(again))
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                end(one, number(two))
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                one.execute("select pg_terminate_backend(%s)", (number(root),))
            assert end(root, number(two))


def test_waiting_sessions_name_those_who_block_them(host: DatabaseHost) -> None:
    with connected(host) as first, connected(host) as second, connected(host) as asking:
        first.execute("select pg_advisory_lock(7)")
        waits, pid = number(second), number(first)
        at_work = threading.Thread(
            target=lambda: second.execute("select pg_advisory_lock(7)"), daemon=True
        )
        at_work.start()

        def blocking() -> list[int]:
            found = asking.execute("select pg_blocking_pids(%s)", (waits,)).fetchone()
            return list(found[0])

        host.until(lambda: blocking() == [pid])
        assert end(asking, pid)
        at_work.join(10)
        assert blocking() == [], "the lock of a session that was ended is free"


def test_the_client_of_a_session_has_an_address_and_a_port(host: DatabaseHost) -> None:
    with connected(host) as asking:
        sql = "select inet_client_addr() = '127.0.0.1', inet_client_port() between 1 and 65535"
        assert asking.execute(sql).fetchone() == (True, True)
        text = "select current_query()"
        assert asking.execute(text).fetchone()[0] == text
