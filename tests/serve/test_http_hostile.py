"""Requests that no honest client sends: each is refused or answered, and the server goes on."""

from __future__ import annotations

import json
import random
import socket
import tracemalloc
from collections.abc import Iterator

import pytest

from support.serve.host import Host

GOOD = b"POST /api/sql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
QUERY = b'{"query": "rows 1"}'


def send(host: Host, raw: bytes, *, hang_up: bool = False) -> bytes:
    """What the server says to some bytes, until it hangs up or says no more."""
    address = host.server.http_address
    with socket.create_connection(address) as client:
        client.settimeout(0.5)
        said = b""
        try:
            client.sendall(raw)
            if hang_up:
                client.shutdown(socket.SHUT_WR)
            while piece := client.recv(1 << 16):
                said += piece
        except OSError:
            return said  # it hung up, or waits for the rest of a request
        return said


def alive(host: Host) -> bool:
    length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(QUERY)
    return b'"tag":"SELECT 1"' in send(host, GOOD + length + QUERY)


def bent(chance: random.Random) -> Iterator[bytes]:
    """Good requests with bytes flipped, cut or put in."""
    length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(QUERY)
    good = GOOD + length + QUERY
    for _ in range(150):
        at = chance.randrange(len(good))
        yield chance.choice(
            (
                good[:at] + bytes([good[at] ^ 1 << chance.randrange(8)]) + good[at + 1 :],
                good[:at],
                good[:at] + chance.randbytes(chance.randrange(1, 30)) + good[at:],
                chance.randbytes(200),
            )
        )


def test_bent_requests(host: Host) -> None:
    for raw in bent(random.Random(1)):
        said = send(host, raw + b"\r\n\r\n", hang_up=True)
        assert not said or said.startswith(b"HTTP/1.1 "), raw
        assert not said.startswith(b"HTTP/1.1 500"), raw
    assert alive(host)


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/api/sql/../../x",
        "/static/x",
        "//evil.example/x",
        "/\x7f",
    ],
)
def test_paths_lead_nowhere(host: Host, path: str) -> None:
    said = send(host, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert said.split(b" ", 2)[1] in (b"400", b"404", b"405")
    assert b"root:" not in said


def test_strangers_bodies_are_not_read() -> None:
    strict = Host(trust_local=False)
    try:
        assert b"401" in send(strict, GOOD + b"Content-Length: 9\r\n\r\n{}")
        tracemalloc.start()
        for _ in range(3):
            send(strict, GOOD + b"Content-Length: 100000000\r\n\r\n" + b"x" * (8 << 20))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # What was sent is in this process too: 8 MiB of it, once.
        assert peak < 20 << 20
    finally:
        tracemalloc.stop()
        strict.close()


def test_headers_without_end(host: Host) -> None:
    said = send(host, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 40_000)
    assert not said or said.startswith(b"HTTP/1.1 4"), said[:50]
    assert alive(host)


@pytest.mark.parametrize(
    "document",
    [
        '{"query":' * 20_000,
        json.dumps({"query": "\x00"}),
        json.dumps({"query": "rows 1", "x": [[[[]]]] * 1000}),
        json.dumps({"queries": [{"query": "rows 1"}] * 300}),
        '{"query": "\\ud800"}',
        '{"queries": [{"query": "echo int", "params": [' + "9" * 5_000 + "]}]}",
        '{"queries": [{"query": "echo text", "params": ["\\u0000"]}]}',
    ],
)
def test_documents_are_answered(host: Host, document: str) -> None:
    body = document.encode()
    length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    said = send(host, GOOD + length + body)
    assert said.split(b" ", 2)[1] in (b"200", b"400"), said[:200]
    assert alive(host)
