"""From the first byte to a session: passwords, encryption, limits, timeouts, the end."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import errors as pg

from noonmark.adapter.password import make_verifier, matches, parse_verifier
from noonmark.clock import SYSTEM
from noonmark.errors import InvalidPassword, InvalidValue, NoonmarkError, ProtocolViolation
from noonmark.serve.pgwire.link import Lost
from noonmark.serve.pgwire.login import Rules, log_in
from noonmark.serve.pgwire.server import Limits
from support.serve import link as wire
from support.serve.host import CERTIFICATE, Host
from support.serve.link import MemoryLink
from support.serve.sessions import Scripted

RULES = Rules(b"secret")


@contextmanager
def served(limits: Limits | None = None, trust_local: bool = True) -> Iterator[Host]:
    host = Host(limits, trust_local)
    try:
        yield host
    finally:
        host.close()


def log(*pieces: bytes, local: bool = True, rules: Rules = RULES) -> tuple[MemoryLink, Scripted]:
    async def run() -> tuple[MemoryLink, Scripted]:
        link, sessions = MemoryLink(pieces, local=local), Scripted()
        await log_in(link, sessions, rules, SYSTEM, lambda: None)
        return link, sessions

    return asyncio.run(run())


def test_a_user_with_a_password_proves_it(host: Host) -> None:
    with psycopg.connect(host.dsn("ada", password="s3cret"), autocommit=True) as connection:
        assert connection.execute("rows 1").fetchone() == (1, "row 1")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(host.dsn("ada", password="wrong"))
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(host.dsn("ada"))
    assert len(host.sessions.sessions) == 1


def test_a_user_without_a_password_comes_from_this_machine_only() -> None:
    hello = wire.start(user="bob", database="d")
    assert len(log(hello)[1].sessions) == 1
    first = b"n,,n=bob,r=abc"
    body = b"SCRAM-SHA-256\0" + struct.pack(">i", len(first)) + first
    for local, rules in ((False, RULES), (True, Rules(b"secret", trust_local=False))):
        link = MemoryLink([hello, wire.frame("p", body)], local=local)
        with pytest.raises(Lost):  # the client is gone after its first words
            asyncio.run(log_in(link, Scripted(), rules, SYSTEM, lambda: None))
        assert link.kinds() == "RR"  # it looks like any user's exchange


def test_encryption_can_be_asked_of_everybody_else() -> None:
    with pytest.raises(NoonmarkError, match="encrypted connections only"):
        log(wire.start(user="bob"), local=False, rules=Rules(b"x", encrypted_only=True))


def test_the_line_can_be_encrypted(tls_host: Host) -> None:
    secure = {"sslmode": "verify-full", "sslrootcert": str(CERTIFICATE)}
    dsn = tls_host.dsn("ada", password="s3cret", **secure).replace(
        "host=127.0.0.1", "host=localhost"
    )
    with psycopg.connect(dsn + " hostaddr=127.0.0.1", autocommit=True) as connection:
        assert connection.pgconn.ssl_in_use
        rows = connection.execute("rows 20000").fetchall()
        assert len(rows) == 20_000
    with psycopg.connect(tls_host.dsn(sslmode="disable")) as connection:
        assert not connection.pgconn.ssl_in_use


def test_bytes_sent_before_the_line_is_encrypted_are_refused() -> None:
    request = struct.pack(">ii", 8, 80877103)
    with pytest.raises(ProtocolViolation, match="unencrypted data"):
        log(request + wire.start(user="bob"))
    link, _ = log(request, struct.pack(">ii", 8, 80877104), wire.start(user="bob"))
    assert bytes(link.sent) == b"NN"


def test_starts_that_mean_nothing_are_refused() -> None:
    for start, words in (
        (wire.start(2 << 16, user="bob"), "unsupported frontend protocol 2.0"),
        (wire.start(database="d"), "no PostgreSQL user name"),
        (wire.start(user="bob", replication="database"), "replication"),
    ):
        with pytest.raises(NoonmarkError, match=words):
            log(start)
    with pytest.raises(ProtocolViolation, match="too many requests"):
        log(*[struct.pack(">ii", 8, 80877103)] * 9)


def test_newer_minor_versions_and_options_are_negotiated() -> None:
    link, _ = log(wire.start(3 << 16 | 2, user="bob", **{"_pq_.x": "1"}))
    assert link.replies() == [("v", struct.pack(">ii", 0, 1) + b"_pq_.x\0")]


def test_options_of_the_start_are_settings(host: Host) -> None:
    with psycopg.connect(host.dsn(options="'-c TimeZone=Asia/Tokyo'")) as connection:
        assert connection.info.parameter_status("TimeZone") == "Asia/Tokyo"
    with psycopg.connect(host.dsn(application_name="mine")) as connection:
        assert connection.info.parameter_status("application_name") == "mine"


def test_who_may_not_come_in_is_told_why(host: Host) -> None:
    with pytest.raises(psycopg.OperationalError, match='role "nobody" does not exist'):
        psycopg.connect(host.dsn("nobody"))


def test_too_many_clients_are_told() -> None:
    with served(Limits(connections=2)) as host:
        first, second = psycopg.connect(host.dsn()), psycopg.connect(host.dsn())
        with pytest.raises(psycopg.OperationalError, match="too many clients"):
            psycopg.connect(host.dsn())
        first.close()
        second.close()
        host.until(lambda: all(session.closed for session in host.sessions.sessions))
        psycopg.connect(host.dsn()).close()


def test_who_does_not_log_in_is_sent_away() -> None:
    with served(Limits(login_seconds=0.2)) as host:
        with socket.create_connection((host.host, host.port)) as silent:
            silent.settimeout(10)
            assert b"57P01" in silent.recv(1000)
            assert silent.recv(1000) == b""
        with psycopg.connect(host.dsn(), autocommit=True) as connection:
            connection.execute("set application_name later")
            psycopg.connect(host.dsn()).close()


def test_before_login_memory_is_bounded() -> None:
    with served() as host:
        psycopg.connect(host.dsn()).close()
        tracemalloc.start()
        clients = [socket.create_connection((host.host, host.port)) for _ in range(50)]
        try:
            for number, client in enumerate(clients):
                client.settimeout(10)
                _press(client, number % 3)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            for client in clients:
                client.close()
        assert peak < 8 << 20


def _press(client: socket.socket, way: int) -> None:
    """Try to make the server keep much: a long start, a long answer, or all at once."""
    junk = b"x" * (1 << 16)
    begin = (
        struct.pack(">i", 10_000),
        wire.start(user="ada", database="d") + b"p" + struct.pack(">i", 1 << 30),
        struct.pack(">i", 1 << 30),
    )[way]
    try:
        client.sendall(begin)
        for _ in range(64):
            client.sendall(junk)
    except OSError:
        return  # it was refused and cut off: as it should


def test_clients_are_told_when_the_server_stops() -> None:
    host = Host()
    idle = psycopg.connect(host.dsn(), autocommit=True)
    busy = psycopg.connect(host.dsn(), autocommit=True)
    busy.pgconn.send_query(b"wait")
    host.until(lambda: "wait" in host.sessions.executed)
    host.close()
    with pytest.raises(pg.AdminShutdown):
        idle.execute("rows 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(host.dsn())
    assert all(session.closed for session in host.sessions.sessions)
    idle.close()
    busy.close()


def test_a_cancel_with_a_wrong_secret_does_nothing(host: Host) -> None:
    with psycopg.connect(host.dsn(), autocommit=True) as connection:
        request = struct.pack(">iiii", 16, 80877102, connection.info.backend_pid, 1)
        with socket.create_connection((host.host, host.port)) as other:
            other.sendall(request)
            assert other.recv(10) == b""
        assert connection.execute("rows 1").fetchone() == (1, "row 1")


@settings(max_examples=20)
@given(st.text(max_size=20), st.text(max_size=20))
def test_a_verifier_is_one_passwords(password: str, other: str) -> None:
    salt = hashlib.sha256(password.encode(errors="replace")).digest()[:16]
    try:
        verifier = make_verifier(password, salt, 2)
        same = make_verifier(other, salt, 2) == verifier
    except UnicodeEncodeError:
        return
    assert parse_verifier(str(verifier)) == verifier
    assert matches(verifier, password)
    assert matches(verifier, other) == same


@pytest.mark.parametrize(
    "text", ["", "md5abc", "SCRAM-SHA-256$x:y$z:w", "SCRAM-SHA-256$4096:YQ==$YQ==:YQ=="]
)
def test_what_is_no_verifier_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="verifier"):
        parse_verifier(text)


def test_an_unknown_user_fails_like_a_wrong_password() -> None:
    with served(trust_local=False) as strict:
        with pytest.raises(psycopg.OperationalError) as unknown:
            psycopg.connect(strict.dsn("who", password="x"))
        with pytest.raises(psycopg.OperationalError) as wrong:
            psycopg.connect(strict.dsn("ada", password="x"))
    said = [str(caught.value).rpartition("FATAL:")[2].strip() for caught in (unknown, wrong)]
    assert said[0].replace("who", "ada") == said[1]
    assert InvalidPassword.sqlstate == "28P01"
