"""What a client makes the server keep is bounded, refused by name, and given back.

Each way in which a session can grow is tried until it is refused; then the session lets go, and its
account is what it was.
"""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest
from psycopg import errors

from noonmark.adapter.session.memory import (
    OWN_BYTES,
    Account,
    Cache,
    Counted,
    Memory,
    text_bytes,
    value_bytes,
)
from noonmark.adapter.session.session import AdapterSession
from noonmark.adapter.worker.errors import OutOfMemory
from noonmark.adapter.worker.limits import SETTINGS, Limits
from noonmark.serve.command import DEFAULTS
from noonmark.serve.received import Received
from support.serve.host import DatabaseHost

Connection = psycopg.Connection[Any]
Grow = Callable[[Connection, int], None]

LONG = "x" * 100_000
SMALL = Limits(session_memory_mb=4, sessions_memory_mb=6, session_objects=500)
#: What is let go when a session is told to: caches stay.
CACHES = {"plans", "shapes", "look-ups"}


@pytest.fixture(scope="module")
def host() -> Iterator[DatabaseHost]:
    made = DatabaseHost()
    made.database.memory = Memory(SMALL)
    with psycopg.connect(made.dsn("noonmark"), autocommit=True) as client:
        client.execute("create table t (a int, b text)")
    yield made
    made.close()


@contextmanager
def client_of(host: DatabaseHost) -> Iterator[tuple[Connection, AdapterSession]]:
    with psycopg.connect(host.dsn("noonmark"), autocommit=True) as client:
        yield client, host.database.sessions[client.info.backend_pid]


def say(text: str) -> Grow:
    return lambda client, n: client.execute(text.format(n=n, long=LONG).encode()) and None


def in_transaction(text: str) -> Grow:
    def grow(client: Connection, n: int) -> None:
        if client.info.transaction_status.name == "IDLE":
            client.execute("begin")
        say(text)(client, n)

    return grow


def portal(client: Connection, n: int) -> None:
    """A Bind of a portal with a name, which psycopg has no call for; and its Sync."""
    if client.info.transaction_status.name == "IDLE":
        client.execute("begin")
        client.execute("prepare one as select $1::text")
    name = f"p{n}".encode() + b"\0"
    value = LONG.encode()
    body = name + b"one\0" + struct.pack(">HHi", 0, 1, len(value)) + value + struct.pack(">H", 0)
    raw = socket.socket(fileno=client.fileno())
    try:
        raw.setblocking(True)
        raw.sendall(b"B" + struct.pack(">i", len(body) + 4) + body + b"S\0\0\0\4")
        answer = raw.recv(4_096)
        while not answer.endswith((b"\5T", b"\5E")):
            answer += raw.recv(4_096)
    finally:
        raw.detach()
    if answer.startswith(b"E"):
        code = answer.split(b"\0C", 1)[1][:5].decode()
        detail = answer.split(b"\0D", 1)[1].split(b"\0")[0].decode()
        raise errors.lookup(code)(detail)


def fill(account: Account) -> None:
    for _ in range(100):
        account.take("changes", 100_000)


def again(grow: Grow, client: Connection, times: int) -> None:
    for n in range(times):
        grow(client, n)


SET = say("set a.b{n} = '{long}'")
GROWING: dict[str, tuple[Grow, str]] = {
    "prepared statements": (say("prepare p{n} as select '{long}', {n}"), "deallocate all"),
    "many prepared statements": (say("prepare p{n} as select {n}"), "deallocate all"),
    "dense prepared statements": (
        say("prepare p{n} as select " + "+".join(["1"] * 500)),
        "deallocate all",
    ),
    "settings": (SET, "reset all"),
    "many settings": (say("set a.b{n} = ''"), "reset all"),
    "settings by a function": (say("select set_config('a.b{n}', '{long}', false)"), "reset all"),
    "cursors WITH HOLD": (
        say("declare c{n} cursor with hold for select g, 'abc' from generate_series(1, 5000) g"),
        "close all",
    ),
    "cursors": (
        in_transaction("declare c{n} cursor for select g from generate_series(1, 900) g"),
        "rollback",
    ),
    "savepoints": (in_transaction("savepoint s{n}"), "rollback"),
    "released savepoints": (in_transaction("savepoint s{n}"), "commit"),
    "portals": (portal, "rollback"),
    "changes": (in_transaction("insert into t values ({n}, '{long}')"), "rollback"),
    "changes of a query": (
        in_transaction("insert into t select g, '{n}' from generate_series(1, 4000) g"),
        "rollback",
    ),
    "advisory locks": (say("select pg_advisory_lock({n})"), "select pg_advisory_unlock_all()"),
    "advisory locks of a query": (
        say("select pg_try_advisory_lock_shared(g) from generate_series(1, 150) g where {n} >= 0 "
            "union all select pg_try_advisory_lock(1000 * {n} + g) from generate_series(1, 150) g"),
        "select pg_advisory_unlock_all()",
    ),
    "advisory locks of a transaction": (
        in_transaction("select pg_advisory_xact_lock({n})"), "rollback"),
    "channels": (say("listen c{n}"), "unlisten *"),
    "notifications": (
        in_transaction("select pg_notify('c', '{n}' || repeat('x', 7000))"), "rollback"),
    "many notifications": (in_transaction("notify c, '{n}'"), "rollback"),
}  # fmt: skip


@pytest.mark.parametrize("sort", GROWING)
def test_growth_is_refused_by_name_and_given_back(host: DatabaseHost, sort: str) -> None:
    grow, let_go = GROWING[sort]
    with client_of(host) as (client, session), client_of(host) as (other, _):
        client.execute("reset all")
        before = {k: v for k, v in session.account.sizes.items() if v and k not in CACHES}
        with pytest.raises((errors.OutOfMemory, errors.ProgramLimitExceeded)) as refused:
            again(grow, client, 3_000)
        said = f"{refused.value} {refused.value.diag.message_detail or ''}"
        assert "session_memory" in said or "session_objects_max" in said
        assert session.account.total <= SMALL.session_memory_mb << 20
        assert other.execute("select 1").fetchone() == (1,)  # nobody else is concerned
        if client.info.transaction_status.name == "INERROR" and let_go == "commit":
            client.execute("rollback")
        with suppress(psycopg.Error):
            client.execute(let_go.encode())
        if sort == "portals":
            client.execute("deallocate all")
        after = {k: v for k, v in session.account.sizes.items() if v and k not in CACHES}
        assert after == before
        grow(client, 1)
    host.until(lambda: host.database.memory.taken == 0)


@pytest.mark.parametrize("seed", range(4))
def test_an_account_balances(host: DatabaseHost, seed: int) -> None:
    """Whatever a session does, in whatever order, what it has let go is not counted any more."""
    chance = random.Random(seed)
    steps = [
        "begin", "rollback", "commit", "savepoint a", "savepoint b", "rollback to a", "release a",
        "release b", "insert into t values (1, 'x'), (2, null)", "prepare p as select 1",
        "prepare q as select 2", "deallocate p", "deallocate all", "set a.b = 'one'",
        "set a.b = 'longer than before'", "set local a.c = 'x'", "reset a.b", "listen x",
        "listen y", "unlisten x", "notify x, 'hello'", "notify z", "close all",
        "select pg_advisory_lock(1)", "select pg_advisory_lock(1)", "select pg_advisory_unlock(1)",
        "select pg_advisory_xact_lock(1)", "select pg_try_advisory_lock_shared(2)",
        "select pg_advisory_unlock_shared(2)", "declare c cursor for select 1 from t",
        "declare d cursor with hold for select 2 from t", "fetch 1 from c", "close c", "close d",
        "select 1 / 0", "insert into t select a, b from t limit 3", "discard all",
    ]  # fmt: skip
    with client_of(host) as (client, session):
        client.execute("discard all")
        begun = {k: v for k, v in session.account.sizes.items() if v and k not in CACHES}
        for _ in range(400):
            with suppress(psycopg.Error):
                client.execute(chance.choice(steps).encode(), prepare=False)
            assert all(size >= 0 for size in session.account.sizes.values())
            assert session.account.total == sum(session.account.sizes.values())
        client.execute("rollback")
        client.execute("close all")
        client.execute("discard all")
        left = {k: v for k, v in session.account.sizes.items() if v and k not in CACHES}
        assert left == begun
        counts = {k: v for k, v in session.account.counts.items() if v and k not in CACHES}
        assert counts == {"settings": len(session.variables)}
    host.until(lambda: host.database.memory.taken == 0)


def test_columns_that_become_rows_are_counted_as_rows(host: DatabaseHost) -> None:
    """A table that its transaction has made waits as columns until somebody looks at a row."""
    with client_of(host) as (client, session):
        client.execute("begin")
        client.execute("create table fresh as select g, g + 1 as h from generate_series(1, 500) g")
        columns = session.account.sizes["changes"]
        client.execute("insert into fresh values (0, 0)")
        assert session.account.sizes["changes"] > max(columns, 500 * 150)
        client.execute("savepoint s")
        client.execute("insert into fresh select g, 1 from generate_series(1, 5000) g")
        client.execute("rollback to s")
        assert session.account.sizes["changes"] < 500 * 400
        grow = say("insert into fresh select g, {n} from generate_series(1, 5000) g")
        with pytest.raises(errors.OutOfMemory, match="changes"):
            again(grow, client, 100)
    host.until(lambda: host.database.memory.taken == 0)


def test_who_keeps_little_is_not_refused_for_others(host: DatabaseHost) -> None:
    with client_of(host) as (one, _), client_of(host) as (two, _), client_of(host) as (poor, _):
        for client in (one, two):
            with pytest.raises(errors.OutOfMemory, match="session"):
                again(SET, client, 1_000)
        assert host.database.memory.taken <= SMALL.sessions_memory_mb << 20
        poor.execute("prepare p as select a, b from t where a = 1")
        poor.execute("begin")
        poor.execute("insert into t values (1, 'x')")
        poor.execute("listen x")
        poor.execute("commit")
        with pytest.raises(errors.OutOfMemory) as refused:
            again(SET, poor, 20)
        assert "sessions_memory" in (refused.value.diag.message_detail or "")
    host.until(lambda: host.database.memory.taken == 0)


def test_a_listener_that_does_not_take_is_ended_alone(host: DatabaseHost) -> None:
    with client_of(host) as (slow, _), client_of(host) as (well, _), client_of(host) as (says, _):
        slow.execute("listen loud")
        well.execute("listen quiet")
        slow.execute("begin")  # it hears nothing inside of it
        for n in range(40):
            says.execute(f"select pg_notify('loud', '{n} ' || repeat('x', 7900))".encode())
            says.execute(
                f"select pg_notify('loud', '{n} ' || g || repeat('x', 7900)) "
                "from generate_series(1, 100) g".encode()
            )
        says.execute("notify quiet, 'still heard'")
        heard = [each.payload for each in well.notifies(timeout=5, stop_after=1)]
        assert heard == ["still heard"]
        with pytest.raises(psycopg.Error, match="notifications were not taken"):
            slow.execute("commit")
    host.until(lambda: host.database.memory.taken == 0)


def test_a_client_that_does_not_read_does_not_fill_the_server(host: DatabaseHost) -> None:
    """It listens, is idle, and takes nothing from its socket."""
    with client_of(host) as (deaf, session), client_of(host) as (says, _):
        deaf.execute("listen loud")
        for n in range(60):
            says.execute(
                f"select pg_notify('loud', '{n} ' || g || repeat('x', 7900)) "
                "from generate_series(1, 100) g".encode()
            )
            assert session.account.total <= SMALL.session_memory_mb << 20
        host.until(lambda: session.id not in host.database.sessions)


def test_statements_that_sql_forgot_are_forgotten_by_the_protocol(host: DatabaseHost) -> None:
    with client_of(host) as (client, session):
        for n in range(300):
            client.pgconn.prepare(f"n{n}".encode(), b"select 1")
            if n % 50 == 49:
                client.execute("deallocate all", prepare=False)
        assert len(session.statements) == 0
        assert session.account.counts["prepared statements"] == 0


# -- the parts by themselves -------------------------------------------------------------------


def test_what_a_text_takes_is_not_less_than_it_takes() -> None:
    """590 bytes a letter, where it is densest (`select 1+1+1...`); 2 inside of quotes."""
    for repeat in (100, 20_000):
        dense = "select " + "+".join(["1"] * repeat)
        assert text_bytes(dense) >= 580 * len(dense)
        assert text_bytes(f"select '{'x' * repeat}'") < 10_000 + 3 * repeat


def test_what_is_kept_in_the_place_of_something_counts_once() -> None:
    account = Account(Memory(Limits(session_memory_mb=1)))
    kept = Counted(account, "settings", value_bytes)
    for _ in range(100):
        kept["a"] = LONG
    assert account.total < 2 * len(LONG)
    before = kept.noted()
    with pytest.raises(OutOfMemory):
        kept["a"] = 12 * LONG
    assert kept["a"] == LONG, "who is refused keeps what it had"
    del kept["a"]
    assert account.total == 0
    kept.go_back(before)
    assert dict(kept) == before
    account.close()


def test_a_cache_gives_way() -> None:
    memory = Memory(Limits(session_memory_mb=1, sessions_memory_mb=1))
    account = Account(memory)
    cache: Cache[int, str] = Cache("plans", 1_000_000, 10, account)
    for n in range(100):
        cache.keep(n, "x", 300_000)
        assert len(cache) <= 3
        assert cache.bytes == account.total <= 1_000_000
    cache.keep(7, "y", 2_000_000)  # larger than all of it
    assert 7 not in cache
    account.take("settings", 1 << 19)
    cache.clear()
    assert account.total == 1 << 19
    account.close()
    assert memory.taken == 0


def test_every_limit_can_be_set() -> None:
    assert {each.name for each in SETTINGS} <= DEFAULTS.keys()


def test_a_session_has_a_little_for_itself() -> None:
    memory = Memory(Limits(session_memory_mb=2, sessions_memory_mb=1))
    greedy, poor = Account(memory), Account(memory)
    with pytest.raises(OutOfMemory, match="all sessions together"):
        fill(greedy)
    for _ in range(10):
        poor.take("settings", OWN_BYTES // 10)
    with pytest.raises(OutOfMemory):
        poor.take("settings", OWN_BYTES)
    greedy.close()
    poor.take("settings", OWN_BYTES)


def test_messages_that_are_not_whole_share_one_limit() -> None:
    received = Received(1)
    with received.message() as one:
        one.add(700_000)
        with received.message() as two, pytest.raises(OutOfMemory) as refused:
            two.add(700_000)
        assert "receive_memory" in (refused.value.detail or "")
        assert received.taken == 700_000
    assert received.taken == 0
