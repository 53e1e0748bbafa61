"""Messages that are not whole yet, and clients that never say who they are, fill no server."""

from __future__ import annotations

import socket
import struct
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest
from websockets.sync.client import connect

from noonmark.serve.pgwire.server import Limits
from support.serve.host import Host

MEGABYTE = 1 << 20


@pytest.fixture
def host() -> Iterator[Host]:
    served = Host(Limits(receive_mb=4, arriving=20))
    yield served
    served.close()


def logged_in(host: Host) -> socket.socket:
    made = socket.create_connection((host.host, host.port))
    start = struct.pack(">i", 196608) + b"user\0bob\0database\0d\0\0"
    made.sendall(struct.pack(">i", len(start) + 4) + start)
    answer = made.recv(65_536)
    while not answer.endswith(b"\5I"):
        answer += made.recv(65_536)
    return made


def received(host: Host) -> int:
    return host.server.pg._received.taken


def told(client: socket.socket) -> bytes:
    answer = b""
    try:
        while piece := client.recv(65_536):
            answer += piece
    except ConnectionError:
        pass
    return answer


def test_messages_that_do_not_end_share_a_limit(host: Host) -> None:
    begun = b"Q" + struct.pack(">i", 100 * MEGABYTE)
    greedy = [logged_in(host) for _ in range(4)]
    for client in greedy[:3]:
        client.sendall(begun + b"x" * (2 * MEGABYTE))
    host.until(lambda: received(host) > 2 * MEGABYTE)
    with psycopg.connect(host.dsn(), autocommit=True) as other:
        other.execute("rows 3")
        last = greedy[3]
        with suppress(ConnectionError):  # it is ended while it sends
            last.sendall(begun + b"x" * (4 * MEGABYTE))
        answer = told(last)
        assert b"53200" in answer or not answer  # what it was told is lost where it went on sending
        other.execute("rows 3")
        assert received(host) <= 4 * MEGABYTE
        for client in greedy:
            client.close()
        host.until(lambda: received(host) == 0)
        other.execute("rows 3" + " " * (3 * MEGABYTE))  # alone, there is room
        host.until(lambda: received(host) == 0)


def test_a_long_message_that_was_answered_is_let_go(host: Host) -> None:
    with psycopg.connect(host.dsn(), autocommit=True) as client:
        client.execute("rows 3" + " " * (4 * MEGABYTE))
        host.until(lambda: received(host) == 0)
        (wire,) = host.server.pg._live
        assert len(wire.frames._buffer) < MEGABYTE


def test_bodies_share_the_limit(host: Host) -> None:
    """Those of strangers too: a webhook's is read before it is known whose it is."""
    address, port = host.http.split(":")
    stuck = []
    head = b"POST /api/webhook/none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n"
    for _ in range(3):
        made = socket.create_connection((address, int(port)))
        made.sendall(head + b"x" * (MEGABYTE + MEGABYTE // 4))
        stuck.append(made)
    host.until(lambda: received(host) > 3 * MEGABYTE)
    request = urllib.request.Request(f"http://{host.http}/api/webhook/none", b"x" * (2 * MEGABYTE))
    with pytest.raises((urllib.error.HTTPError, urllib.error.URLError)) as refused:
        urllib.request.urlopen(request, timeout=10)
    if isinstance(refused.value, urllib.error.HTTPError):
        with refused.value as error:
            assert b"receive_memory" in error.read()
    for client in stuck:
        client.close()
    host.until(lambda: received(host) == 0)
    with pytest.raises(urllib.error.HTTPError) as answered:
        urllib.request.urlopen(request, timeout=10).close()
    with answered.value as error:
        assert b"receive_memory" not in error.read()  # scripted sessions take no posts


def test_what_waits_in_a_web_socket_is_counted(host: Host) -> None:
    with connect(f"ws://{host.http}/api/sql", open_timeout=10) as client:
        client.send("{}")
        for _ in range(3):
            client.send('{"query": "rows 1' + " " * 500_000 + '"}')
        seen = 0
        while seen < 4:  # the start, and three answers
            seen += '"ReadyForQuery"' in str(client.recv(10))
    host.until(lambda: received(host) == 0)


def test_who_never_logs_in_keeps_nobody_out(host: Host) -> None:
    silent = [socket.create_connection((host.host, host.port)) for _ in range(100)]
    for _ in range(5):
        with psycopg.connect(host.dsn(), autocommit=True, connect_timeout=10) as client:
            client.execute("rows 1")
    assert len(host.server.pg._arriving) <= 20
    for each in silent:
        each.close()
    host.until(lambda: not host.server.pg._arriving)
