"""LISTEN and NOTIFY between sessions, and sessions that wait for an advisory lock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from support.serve.host import DatabaseHost

Connection = psycopg.Connection[Any]


@pytest.fixture
def pair(database_host: DatabaseHost) -> Iterator[tuple[Connection, Connection]]:
    one = psycopg.connect(database_host.dsn("noonmark"), autocommit=True)
    other = psycopg.connect(database_host.dsn("noonmark"), autocommit=True)
    with one, other:
        yield one, other


def heard(connection: Connection, count: int, wait_s: float = 5) -> list[tuple[str, str]]:
    found = connection.notifies(timeout=wait_s, stop_after=count)
    return [(each.channel, each.payload) for each in found]


def test_an_idle_client_is_told_without_asking(pair: tuple[Connection, Connection]) -> None:
    listener, sender = pair
    listener.execute("listen orders")
    sender.execute("notify orders, 'one'")
    sender.execute("select pg_notify('orders', 'two'), pg_notify('others', 'not heard')")
    assert heard(listener, 2) == [("orders", "one"), ("orders", "two")]
    listener.execute("unlisten orders")
    sender.execute("notify orders, 'three'")
    assert heard(listener, 1, 0.2) == []


def test_a_transaction_is_told_of_at_commit(pair: tuple[Connection, Connection]) -> None:
    listener, sender = pair
    listener.execute("listen orders")
    with sender.transaction():
        sender.execute("notify orders, 'kept'")
        sender.execute("savepoint s")
        sender.execute("notify orders, 'taken back'")
        sender.execute("rollback to s")
        sender.execute("notify orders, 'again'")
        sender.execute("notify orders, 'kept'")
        assert heard(listener, 1, 0.2) == []
    assert heard(listener, 2) == [("orders", "kept"), ("orders", "again")]
    with pytest.raises(psycopg.errors.DivisionByZero):
        sender.execute("notify orders, 'undone'; select 1 / 0")
    with pytest.raises(psycopg.errors.DivisionByZero):
        sender.execute("select pg_notify('orders', 'undone'), 1 / i from (values (1), (0)) v(i)")
    assert heard(listener, 1, 0.2) == []


def test_a_listener_hears_nothing_inside_its_transaction(
    pair: tuple[Connection, Connection],
) -> None:
    listener, sender = pair
    with listener.transaction():
        listener.execute("listen orders")
        sender.execute("notify orders, 'before the commit of LISTEN'")
    with listener.transaction():
        listener.execute("select 1")
        sender.execute("notify orders, 'waits'")
        assert heard(listener, 1, 0.2) == []
    assert heard(listener, 1) == [("orders", "waits")]


def test_a_session_waits_for_a_lock(pair: tuple[Connection, Connection]) -> None:
    holder, other = pair
    holder.execute("select pg_advisory_lock(7)")
    got = threading.Event()

    def wait() -> None:
        other.execute("select pg_advisory_lock(7)")
        got.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert not got.wait(0.2)
    holder.execute("select pg_advisory_unlock(7)")
    assert got.wait(30)
    waiter.join()
    assert holder.execute("select pg_try_advisory_lock(7)").fetchone() == (False,)
    other.close()  # what it held ends with it
    assert holder.execute("select pg_advisory_lock(7)").fetchone() == ("",)


def test_sessions_that_wait_for_each_other(pair: tuple[Connection, Connection]) -> None:
    one, other = pair
    one.execute("select pg_advisory_lock(1)")
    other.execute("select pg_advisory_lock(2)")
    waiter = threading.Thread(target=one.execute, args=(b"select pg_advisory_lock(2)",))
    waiter.start()
    other.execute("set lock_timeout = '100ms'")
    said: psycopg.Error = psycopg.errors.LockNotAvailable()
    while isinstance(said, psycopg.errors.LockNotAvailable):  # until the first one waits
        with pytest.raises(psycopg.Error) as caught:
            other.execute("select pg_advisory_lock(1)")
        said = caught.value
    assert isinstance(said, psycopg.errors.DeadlockDetected)
    other.execute("select pg_advisory_unlock_all()")
    waiter.join(30)
    assert not waiter.is_alive()
