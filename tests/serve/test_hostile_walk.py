"""A hostile role against a server process: each way in which one once stopped it, or got in.

She has a password, no superuser, CREATE and USAGE on one schema of her own. Beside her a polite
client does what everybody does, and is answered soon. What is tried more widely elsewhere (C15,
C17, C18, `docs/operate/limits.md`) has its smallest case here: none of it can come back unseen.
"""

from __future__ import annotations

import json
import socket
import threading
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from noonmark.clock import SYSTEM
from noonmark.source.outgoing import ALLOW, DENY
from support.serve.process import Server, serving

pytestmark = pytest.mark.alone

Connection = psycopg.Connection[Any]

#: How long the polite client may wait for one answer, on a machine that others use too.
SOON_S = 5.0
SETUP = (
    "create table kv (k int primary key, v text)",
    "insert into kv select g, 'value ' || g from generate_series(1, 2000) g",
    "create table log (n int, what text)",
    "create role eve login password 'pw'",
    "create role polite login password 'pw'",
    "create schema hers",
    "grant create, usage on schema hers to eve",
    "grant select on kv to polite, eve",
    "grant select, insert on log to polite",
    "create table private (a int, s text)",
    "insert into private values (1, 'PRIVATE')",
    "create view shown as select s from private",
    "create secret adm as 'PLANTED'",
    "create connection admin_pg to postgres (host 'h.example', port 1, user 'postgres', "
    "password secret adm)",
    "create connection admin_kafka to kafka (broker 'h.example:1')",
    "alter role noonmark password 'root'",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("walk")
    config = folder / "noonmark.toml"
    config.write_text(
        'statement_workers = "4"\nstatement_worker_memory = "256MB"\nsession_memory = "64MB"\n'
    )
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv(ALLOW, raising=False)  # as it is by default, not as other tests need it
        environment.delenv(DENY, raising=False)
        stack = ExitStack()
        made = stack.enter_context(serving(folder / "data", "--config", str(config)))
    with stack:
        with psycopg.connect(
            host="127.0.0.1", port=made.pg, user="noonmark", dbname="noonmark", autocommit=True
        ) as client:
            for sql in SETUP:
                client.execute(sql.encode())
        yield made


def connect(server: Server, user: str = "eve", password: str = "pw") -> Connection:
    return psycopg.connect(
        host="127.0.0.1", port=server.pg, user=user, password=password, dbname="noonmark",
        autocommit=True,
    )  # fmt: skip


@pytest.fixture
def eve(server: Server) -> Iterator[Connection]:
    with connect(server) as client:
        client.execute("set search_path = hers, public")
        yield client


@contextmanager
def polite(server: Server) -> Iterator[None]:
    """A client beside the block, whose every answer comes soon; at least five rounds of them."""
    over, slow, rounds = threading.Event(), [], [0]

    def live() -> None:
        with connect(server, "polite") as client:
            client.execute("set statement_timeout = '30s'")
            while not (over.is_set() and rounds[0] >= 5):
                for sql in (
                    "select 1",
                    "select v from kv where k = 5",
                    "insert into log values (1, 'x')",
                    "select sum(k), count(*) from kv where v like '%9%'",
                ):
                    begun = SYSTEM.monotonic()
                    try:
                        client.execute(sql.encode())
                    except psycopg.Error as error:
                        slow.append((sql, str(error)))
                    took_s = SYSTEM.monotonic() - begun
                    if took_s > SOON_S:
                        slow.append((sql, f"{took_s:.1f} s"))
                rounds[0] += 1

    thread = threading.Thread(target=live)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert not slow


@contextmanager
def sending(server: Server, sql: str, times: int) -> Iterator[None]:
    """So many clients of hers that each wait for one statement, without a timeout."""
    clients = [connect(server) for _ in range(times)]

    def send(client: Connection) -> None:
        with suppress(psycopg.Error):
            client.execute(sql.encode())

    threads = [threading.Thread(target=send, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for client in clients:
            client.cancel()
        for thread in threads:
            thread.join(20)
        for client in clients:
            client.close()


def refused(client: Connection, sql: str) -> str:
    """The SQLSTATE that a statement is refused with."""
    with pytest.raises(psycopg.Error) as found:
        client.execute(sql.encode())
    assert "PLANTED" not in str(found.value)
    assert "PRIVATE" not in str(found.value)
    return found.value.sqlstate or ""


# -- one client stops all ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b",
        "with recursive w(x) as (select 1 union all select x + 1 from w) select count(*) from w",
        "select (repeat('ab', 40) || 'c') ~ '^((ab|a|b)+)+\\1$'",
        "select pg_sleep(1000)",
        "select pg_advisory_lock(7)",
        "select count(*) from (select md5(g::text) as m from generate_series(1, 9000000) g "
        "order by 1) x",
    ],
)
def test_more_endless_statements_than_there_are_workers(server: Server, sql: str) -> None:
    """Lines 1, 2, 6: without any timeout, from three times as many clients as workers."""
    with connect(server) as holder, ExitStack() as stack:
        if "advisory" in sql:
            holder.execute(sql.encode())
        stack.enter_context(sending(server, sql, 12))
        stack.enter_context(polite(server))


def test_a_timeout_ends_the_work_itself(server: Server, eve: Connection) -> None:
    """Line 6: what timed out leaves nothing behind that works."""
    eve.execute("set statement_timeout = '300ms'")
    cross = "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b"
    with polite(server):
        for _ in range(8):
            begun = SYSTEM.monotonic()
            assert refused(eve, cross) == "57014"
            assert SYSTEM.monotonic() - begun < 0.3 + SOON_S


def test_a_table_without_columns_and_keys_that_cannot_be(server: Server, eve: Connection) -> None:
    """Lines 4, 5: the committer goes on, and nobody else is refused."""
    with polite(server):
        for table in ("create table n ()", "create table i (k interval primary key)",
                      "create table a (k int[] primary key)"):  # fmt: skip
            with suppress(psycopg.Error):
                eve.execute(table.encode())
        for sql in (
            "insert into n default values", "insert into i values ('1 day'), ('24 hours')",
            "insert into i values ('1 mon')", "insert into a values ('{1}'), ('{1}')",
            "insert into a values ('{1,2}')", "insert into a values ('{{1},{2}}')",
        ):  # fmt: skip
            with suppress(psycopg.Error):
                eve.execute(sql.encode())
    with connect(server, "polite") as other:
        other.execute("insert into log values (2, 'after')")


@pytest.mark.parametrize(
    "sql",
    [
        "select case k " + "".join(f"when {n} then {n} " for n in range(2_000)) + "end from kv",
        "select count(*) from kv where k in (" + ",".join(map(str, range(50_000))) + ")",
        "select " + "(" * 900 + "1" + ")" * 900,
        "select count(*) from kv where " + " or ".join(f"k = {n}" for n in range(10_000)),
        " union all ".join(["select 1"] * 3_000),
    ],
    ids=["case", "in", "nested", "or", "union all"],
)
def test_long_texts_are_answered_beside_others(server: Server, eve: Connection, sql: str) -> None:
    """Lines 7, 10."""
    eve.execute("set statement_timeout = '60s'")
    with polite(server):
        assert eve.execute(sql.encode()).fetchone() is not None


def test_a_subscription_that_nobody_reads(server: Server, eve: Connection) -> None:
    """Line 9: what is written meanwhile is not kept for it in memory."""
    eve.execute("create table if not exists written (n int, t text)")
    with connect(server) as deaf:
        deaf.pgconn.send_query(b"copy (subscribe hers.written) to stdout")
        before = resident(server)
        with polite(server):
            for n in range(15):
                eve.execute(
                    f"insert into written select {n}, repeat('x', 1000) "
                    "from generate_series(1, 4000)".encode()
                )
        assert resident(server) - before < 400 << 20  # 60 MB were written, 15 times a read of all
        deaf.cancel()
        deaf.pgconn.finish()
    eve.execute("drop table written")


def resident(server: Server) -> int:
    pages = Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]
    return int(pages) * 4_096


def set_many(client: Connection) -> None:
    for n in range(200):
        client.execute(f"set a.b{n} = '{'x' * 900_000}'".encode())


def test_what_a_session_keeps_has_an_end(server: Server, eve: Connection) -> None:
    """A limit that the error names, and SHOW shows."""
    with polite(server), pytest.raises(psycopg.errors.OutOfMemory, match="64 MB") as found:
        set_many(eve)
    assert "session_memory" in (found.value.diag.message_detail or "")
    assert eve.execute("show session_memory").fetchone() == ("64MB",)


# -- somebody gets in --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        # 11: the server's files
        ("create source f from files '/etc/passwd' format text", "42501"),
        ("create source f from files 'file:///etc/passwd' format text", "42501"),
        ("copy kv from '/etc/passwd'", "0A000"),
        ("copy (select 1) to program 'id'", "42601"),
        ("create connection c to postgres (host 'h.example', ssl certificate '/etc/passwd')",
         "F0000"),
        ("select pg_read_file('/etc/passwd')", "42883"),
        # 12: secrets and connections of others
        ("create connection c to postgres (host 'h.example', password secret public.adm)", "42501"),
        ("create source w from webhook body format text check (with (body, secret public.adm as k) "
         "body = k)", "42501"),
        ("validate connection admin_pg", "42501"),
        ("alter connection admin_pg set (host = 'hers.example')", "42501"),
        ("alter secret public.adm as 'x'", "42501"),
        ("alter secret public.adm set schema hers", "42501"),
        ("grant usage on secret public.adm to eve", "42501"),
        ("set role noonmark", "42501"),
        ("set session authorization noonmark", "42501"),
        ("alter role eve superuser", "42501"),
        ("alter role noonmark password 'x'", "42501"),
        ("select set_config('is_superuser', 'on', false)", "25006"),
        # 13: what she may not read
        ("create sink k from private into kafka connection admin_kafka envelope debezium", "42501"),
        ("subscribe private", "42501"),
        ("copy private to stdout", "42501"),
        ("create materialized view m as select * from private", "42501"),
        ("create table l (like private including all)", "42501"),
        ("create index on private (a)", "42501"),
        ("merge into private t using (values (1)) s (x) on t.a = s.x when matched then delete "
         "returning t.s", "42501"),
        ("select * from shown", "42501"),
        ("explain select * from private where s = 'x'", "42501"),
        ("declare c cursor with hold for select * from private", "42501"),
        # 15: where the server connects
        ("create connection c to confluent schema registry (url 'file:///etc/passwd')", "F0000"),
        ("create connection c to confluent schema registry (url 'http://127.0.0.1:1')", "42501"),
        ("create connection c to confluent schema registry (url 'http://%31%32%37.0.0.1:1')",
         "F0000"),
        ("create connection c to postgres (host '')", "42501"),
        ("create connection c to postgres (host '/tmp')", "42501"),
        ("create connection c to postgres (host 'h.example', port '1 hostaddr=127.0.0.1')",
         "F0000"),
        ("create connection c to kafka (broker 'h.example:1,localhost:9092')", "42501"),
        ("create connection c to kafka (broker '169.254.169.254:80')", "42501"),
        # 16: posts of anybody
        ("create source w from webhook body format text", "22P02"),
    ],
)  # fmt: skip
def test_she_gets_in_nowhere(eve: Connection, sql: str, state: str) -> None:
    """Lines 11, 12, 13, 15, 16."""
    assert refused(eve, sql) == state


def test_nothing_shows_her_what_is_not_hers(server: Server, eve: Connection) -> None:
    """Line 14: statements of others, secrets, rows in errors; in every relation that there is."""
    with connect(server, "noonmark", "root") as boss:
        for sql in (
            "create secret two as 'PLANTED' || nothing", "alter secret adm as 'PLANTED'::date",
            "create role x password 'PLANTED' nonsense", "select 'PRIVATE' from nothing",
        ):  # fmt: skip
            with suppress(psycopg.Error):
                boss.execute(sql.encode())
        boss.execute("select 'PRIVATE'")
        relations = eve.execute(
            "select n.nspname, c.relname from pg_class c join pg_namespace n "
            "on n.oid = c.relnamespace where c.relkind in ('v', 'r')"
        ).fetchall()
        assert len(relations) > 50
        eve.execute("set statement_timeout = '5s'")
        for schema, name in relations:
            with suppress(psycopg.errors.InsufficientPrivilege, psycopg.errors.SyntaxError):
                rows = eve.execute(f'select * from "{schema}"."{name}"'.encode()).fetchall()
                assert "PLANTED" not in repr(rows), name
                assert "PRIVATE" not in repr(rows), name
    assert eve.execute("show is_superuser").fetchone() == ("off",)


def test_a_connection_of_hers_never_reaches_this_machine(eve: Connection) -> None:
    """Line 15, at the moment when it connects: a name that nobody knew when it was described."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.5)
        eve.execute(
            "create connection if not exists later to postgres (host 'nobody.invalid', user 'u')"
        )
        assert refused(eve, "validate connection later") == "F0000"
        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.mark.parametrize(
    ("path", "user", "status"),
    [
        ("/api/sql", None, 401),
        ("/api/sql", "noonmark:", 401),
        ("/api/sql", "eve:wrong", 401),
        ("/api/sql", "pg_read_server_files:", 401),
        ("/api/sql?role=noonmark", "eve:pw", 200),
        ("/api/webhook/hers/none", None, 404),
    ],
)
def test_over_http_she_is_who_she_is(
    server: Server, path: str, user: str | None, status: int
) -> None:
    """Line 16."""
    headers = {"Content-Type": "application/json"}
    if user is not None:
        headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
    body = json.dumps({"query": "select current_user; show is_superuser"}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{server.http}{path}", body, headers)
    if status != 200:
        with pytest.raises(urllib.error.HTTPError) as found:
            urllib.request.urlopen(request, timeout=30).close()
        with found.value as error:
            assert error.code == status
        return
    with urllib.request.urlopen(request, timeout=30) as answer:
        results = json.loads(answer.read())["results"]
    assert [each["rows"] for each in results] == [[["eve"]], [["off"]]]
