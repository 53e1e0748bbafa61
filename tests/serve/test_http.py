"""SQL over HTTP and WebSocket: shapes, streams, who may come in, health and figures."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from noonmark.serve.http.request import BODY_BYTES_MAX
from support.serve.host import CERTIFICATE, Host

JSON = {"Content-Type": "application/json"}


def ask(host: Host, body: Any, path: str = "/api/sql", **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(host.http, timeout=10)
    try:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", path, sent, JSON | named)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def get(host: Host, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(host.http, timeout=10)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


def results(host: Host, text: str) -> Any:
    status, reply = ask(host, {"query": text})
    assert status == 200
    return reply["results"]


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_rows_commands_and_notices(host: Host) -> None:
    assert results(host, "rows 2; notice be well") == [
        {
            "desc": {
                "columns": [
                    {"name": "n", "type_oid": 23, "type_len": 4, "type_mod": -1},
                    {"name": "s", "type_oid": 25, "type_len": -1, "type_mod": -1},
                ]
            },
            "rows": [["1", "row 1"], ["2", "row 2"]],
            "tag": "SELECT 2",
            "notices": [],
        },
        {
            "ok": "NOTICE",
            "notices": [
                {"message": "be well", "code": "00000", "severity": "notice", "hint": "Read it."}
            ],
        },
    ]
    assert results(host, "") == []
    host.until(lambda: all(session.closed for session in host.sessions.sessions))


def test_the_first_error_ends_the_rest_and_undoes_the_first(host: Host) -> None:
    first, second = results(host, "insert 1; fail; insert 2")
    assert first == {"ok": "INSERT 0 1", "notices": []}
    assert second == {
        "error": {
            "message": "duplicate key",
            "code": "23505",
            "detail": "Key (n)=(1) exists.",
            "hint": "Choose another.",
            "position": len("insert 1;") + 2,
        },
        "notices": [],
    }
    assert host.sessions.values == []
    results(host, "insert 3; insert 4")
    assert host.sessions.values == [3, 4]
    first, second = results(host, "insert 5; insert 13")
    assert first["ok"] == "INSERT 0 1"
    assert second["error"]["message"] == "13 cannot be committed"
    assert host.sessions.values == [3, 4]


def test_rows_that_fail_on_the_way_have_an_error(host: Host) -> None:
    (late,) = results(host, "late")
    assert late["rows"] == [["1", "row 1"]]
    assert late["error"]["code"] == "22012"
    (crash,) = results(host, "crash")
    assert crash["error"]["code"] == "XX000"
    assert all(stream.closed for stream in host.sessions.streams)


def test_large_results_stream(host: Host) -> None:
    (found,) = results(host, "rows 30000 by 700")
    assert len(found["rows"]) == 30_000
    assert found["rows"][-1] == ["30000", "row 30000"]


def test_parameters_and_values(host: Host) -> None:
    types = "bigint, boolean, jsonb, integer[], numeric(4,1), text, timestamptz"
    given = ["9007199254740993", True, '{"a": [1.50]}', "{1,NULL}", 2.5, None, "2024-01-01 00:00Z"]
    status, reply = ask(
        host, {"queries": [{"query": f"echo {types}", "params": given}, {"query": "rows 1"}]}
    )
    assert status == 200
    (row,) = reply["results"][0]["rows"]
    assert row == [
        "9007199254740993",
        True,
        {"a": [1.5]},
        ["1", None],
        "2.5",
        None,
        "2024-01-01 00:00:00+00",
    ]
    assert reply["results"][1]["tag"] == "SELECT 1"


def test_parameters_that_do_not_fit(host: Host) -> None:
    for params, code in (([], "08P01"), (["x"], "22P02"), (["1", "2"], "08P01")):
        _, reply = ask(host, {"queries": [{"query": "echo integer", "params": params}]})
        assert reply["results"][0]["error"]["code"] == code
    _, reply = ask(host, {"queries": [{"query": "rows 1; rows 2"}]})
    assert reply["results"][0]["error"]["code"] == "42601"


def test_copy_has_no_place_here(host: Host) -> None:
    for text in ("copy in", "copy out"):
        assert results(host, text)[0]["error"]["code"] == "0A000"
    assert host.sessions.failed_copies == 1
    assert all(stream.closed for stream in host.sessions.streams)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"query": 7}',
        b'{"query": "a", "queries": []}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_requests_that_mean_nothing_are_refused(host: Host, body: bytes) -> None:
    status, reply = ask(host, body)
    assert status == 400
    assert reply["error"]["code"] == "08P01"


def test_requests_that_are_too_long_are_refused(host: Host) -> None:
    status, reply = ask(host, b'"' + b"x" * BODY_BYTES_MAX + b'"')
    assert status == 400
    assert "longer" in reply["error"]["message"]


def test_passwords(host: Host) -> None:
    body = {"query": "rows 1"}
    assert ask(host, body, Authorization=basic("ada", "s3cret"))[0] == 200
    for wrong in (basic("ada", "wrong"), "Basic ???", "Bearer x"):
        status, reply = ask(host, body, Authorization=wrong)
        assert status == 401
        assert reply["error"]["code"] in ("28P01", "28000")
    assert ask(host, body, Authorization=basic("nobody", ""))[0] == 401


def test_without_trust_everybody_needs_a_password() -> None:
    strict = Host(trust_local=False)
    try:
        assert ask(strict, {"query": "rows 1"})[0] == 401
        right = basic("ada", "s3cret")
        assert ask(strict, {"query": "rows 1"}, Authorization=right)[0] == 200
    finally:
        strict.close()


def test_pages_of_other_sites_are_refused(host: Host) -> None:
    body = {"query": "insert 1"}
    assert ask(host, body, Origin="https://evil.example")[0] == 401
    assert ask(host, body, Content_Type="text/plain")[0] == 400
    # A name that somebody pointed at this machine: its pages would have the same origin.
    rebound = {"Host": "evil.example:80", "Origin": "http://evil.example:80"}
    assert ask(host, body, **rebound)[0] == 401
    assert host.sessions.values == []
    assert ask(host, body, Origin=f"http://{host.http}")[0] == 200


def test_settings_come_with_the_path(host: Host) -> None:
    body = {"queries": [{"query": "echo timestamptz", "params": ["2024-01-01 00:00Z"]}]}
    _, reply = ask(host, body, "/api/sql?TimeZone=Asia/Tokyo")
    assert reply["results"][0]["rows"] == [["2024-01-01 09:00:00+09"]]


def test_health_figures_and_what_is_here(host: Host) -> None:
    results(host, "rows 1; fail")
    assert get(host, "/healthz") == (200, "ok\n")
    assert get(host, "/readyz") == (200, "ok\n")
    status, page = get(host, "/")
    assert status == 200
    assert "/console/app.js" in page
    status, figures = get(host, "/metrics")
    assert status == 200
    assert 'noonmark_errors_total{front="http",sqlstate="23505"} 1.0' in figures
    assert 'noonmark_statement_seconds_count{front="http"} 1.0' in figures
    assert get(host, "/etc/passwd")[0] == 404


def test_https(tls_host: Host) -> None:
    trusted = ssl.create_default_context(cafile=str(CERTIFICATE))
    connection = http.client.HTTPSConnection(tls_host.http, timeout=10, context=trusted)
    try:
        connection.request("POST", "/api/sql", b'{"query": "rows 1"}', JSON)
        assert json.loads(connection.getresponse().read())["results"][0]["tag"] == "SELECT 1"
    finally:
        connection.close()


@contextmanager
def conversation(host: Host, hello: Any = None, **more: Any) -> Iterator[ClientConnection]:
    with connect(f"ws://{host.http}/api/sql", **more) as socket:
        socket.send(json.dumps(hello or {}))
        yield socket


def hear(socket: ClientConnection, upto: str = "ReadyForQuery") -> list[tuple[str, Any]]:
    heard: list[tuple[str, Any]] = []
    while not heard or heard[-1][0] != upto:
        said = json.loads(socket.recv(10))
        heard.append((said["type"], said["payload"]))
    return heard


def test_a_session_over_a_websocket(host: Host) -> None:
    with conversation(host) as socket:
        greeting = hear(socket)
        assert ("ParameterStatus", {"name": "TimeZone", "value": "UTC"}) in greeting
        assert greeting[-2:] == [
            ("BackendKeyData", {"conn_id": 1, "secret_key": 7001}),
            ("ReadyForQuery", "I"),
        ]
        socket.send(json.dumps({"query": "begin; rows 1; notice x; fail"}))
        kinds = [kind for kind, _ in hear(socket)]
        assert kinds == [
            *("CommandStarting", "CommandComplete"),
            *("CommandStarting", "Rows", "Row", "CommandComplete"),
            *("CommandStarting", "Notice", "CommandComplete", "Error", "ReadyForQuery"),
        ]
        socket.send(json.dumps({"query": "ROLLBACK"}))
        assert hear(socket)[-1] == ("ReadyForQuery", "I")
        socket.send("not json")
        assert [kind for kind, _ in hear(socket)] == ["Error", "ReadyForQuery"]
    host.until(lambda: host.sessions.sessions[0].closed)


def test_a_stream_over_a_websocket(host: Host) -> None:
    with conversation(host) as socket:
        hear(socket)
        socket.send(json.dumps({"query": "subscribe"}))
        heard = hear(socket, "Rows")
        assert heard[0] == ("CommandStarting", {"has_rows": True, "is_streaming": True})
        for number in (1, 2):
            host.until(lambda: host.sessions.listeners > 0)
            host.run(host.sessions.tick())
            assert hear(socket, "Row") == [("Row", [str(number), f"tick {number}"])]
    host.until(lambda: host.sessions.sessions[0].closed)
    assert host.sessions.streams[0].closed


def test_who_may_open_a_websocket(host: Host) -> None:
    with conversation(host, {"user": "ada", "password": "s3cret"}) as socket:
        assert hear(socket)[-1] == ("ReadyForQuery", "I")
    for hello in ({"user": "ada"}, {"user": "ada", "password": "no"}, {"user": 7}):
        with conversation(host, hello) as socket:
            assert hear(socket, "Error")[0][1]["code"] in ("28P01", "08P01")
            with pytest.raises(ConnectionClosed):
                socket.recv(10)
    with pytest.raises(InvalidStatus), conversation(host, origin="https://evil.example"):
        pass


def test_streams_end_when_the_server_stops() -> None:
    served = Host()
    with conversation(served) as socket:
        hear(socket)
        socket.send(json.dumps({"query": "subscribe"}))
        hear(socket, "Rows")
        served.close()
        with pytest.raises(ConnectionClosed):
            hear(socket)
    assert served.sessions.sessions[0].closed
