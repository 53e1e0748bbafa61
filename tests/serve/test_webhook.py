"""FROM WEBHOOK over HTTP: durable before the answer, refused when it cannot be read or trusted."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from support.serve.host import DatabaseHost


@pytest.fixture(autouse=True)
def key_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def post(host: DatabaseHost, path: str, body: bytes, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(host.http, timeout=10)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", path, body, named)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def sql(host: DatabaseHost, text: str) -> Any:
    body = json.dumps({"query": text}).encode()
    status, reply = post(host, "/api/sql", body, Content_Type="application/json")
    assert status == 200
    result = reply["results"][-1]
    assert "error" not in result, result
    return result.get("rows")


def test_a_body_is_a_row_once_it_is_answered(database_host: DatabaseHost) -> None:
    host = database_host
    sql(host, "create source hook from webhook body format json include headers check (true)")
    for number in range(5):
        body = json.dumps({"n": number}).encode()
        assert post(host, "/api/webhook/hook", body, X_Colour="red") == (200, {})
        found = sql(host, "select count(*), max(body->>'n') from hook")
        assert [str(each) for each in found[0]] == [str(number + 1), str(number)]
    assert sql(host, "select distinct headers->>'x-colour' from hook") == [["red"]]
    assert post(host, "/api/webhook/public.hook", b"{}")[0] == 200
    assert post(host, "/api/webhook/hook", b"{nonsense")[0] == 400
    assert post(host, "/api/webhook/nothing", b"{}")[0] == 404
    assert sql(host, "select count(*) from hook") in ([["6"]], [[6]])
    sql(host, "drop source hook")
    assert post(host, "/api/webhook/hook", b"{}")[0] == 404


def test_columns_and_views_over_a_webhook(database_host: DatabaseHost) -> None:
    host = database_host
    sql(
        host,
        "create source sale (item text not null, cents int) from webhook body format json "
        "check (true)",
    )
    sql(host, "create view total as select item, sum(cents) as cents from sale group by item")
    assert post(host, "/api/webhook/sale", b'{"item": "lamp", "cents": 5}')[0] == 200
    assert post(host, "/api/webhook/sale", b'{"item": "lamp", "cents": 7}')[0] == 200
    assert [list(map(str, row)) for row in sql(host, "select * from total")] == [["lamp", "12"]]
    status, reply = post(host, "/api/webhook/sale", b'{"cents": 7}')
    assert status == 400
    assert "item" in reply["error"]["message"]
    assert post(host, "/api/webhook/sale", b'{"item": "x", "cents": "many"}')[0] == 400


def test_text_and_bytes(database_host: DatabaseHost) -> None:
    host = database_host
    sql(host, "create source plain from webhook body format text check (true)")
    assert post(host, "/api/webhook/plain", "ä\nb".encode())[0] == 200
    assert post(host, "/api/webhook/plain", b"\xff")[0] == 400
    assert sql(host, "select body from plain") == [["ä\nb"]]


def test_a_signature_is_checked(database_host: DatabaseHost) -> None:
    host = database_host
    sql(host, "create secret shared as 'very secret'")
    sql(
        host,
        "create source signed from webhook (signature secret shared, signature header 'X-Sign') "
        "body format bytes",
    )
    body = b"\x00 anything"
    digest = hmac.digest(b"very secret", body, hashlib.sha256)
    path = "/api/webhook/signed"
    assert post(host, path, body)[0] == 401
    assert post(host, path, body, X_Sign="nonsense")[0] == 401
    assert post(host, path, body + b"!", X_Sign=digest.hex())[0] == 401
    assert post(host, path, body, X_Sign=digest.hex())[0] == 200
    assert post(host, path, body, X_Sign=f"sha256={digest.hex()}")[0] == 200
    assert post(host, path, body, X_Sign=base64.b64encode(digest).decode())[0] == 200
    assert [str(row[0]) for row in sql(host, "select count(*) from signed")] == ["3"]


CHECKS = {
    "text": "with (headers, body, secret {0} as key) "
    "headers->'x-sign' = encode(hmac(body, key, 'sha256'), 'hex')",
    "bytes": "with (headers as h, body as b bytes, secret {0} as key bytes) "
    "constant_time_eq(decode(h->'x-sign', 'hex'), hmac(b, key, 'sha256'))",
    "all bytes": "with (headers bytes, body bytes, secret {0} as shared bytes) "
    "convert_from(headers->'x-sign', 'utf8') = encode(hmac(body, shared, 'sha256'), 'hex')",
}


@pytest.mark.parametrize("kind", CHECKS)
def test_a_check_is_a_condition_over_headers_body_and_secrets(
    database_host: DatabaseHost, kind: str
) -> None:
    host, name = database_host, f"checked_{kind.replace(' ', '_')}"
    condition = CHECKS[kind].format(f"{name}_key")
    sql(host, f"create secret {name}_key as 'very secret'")
    sql(
        host,
        f"create source {name} from webhook body format text "
        f"include header 'X-Kind' as kind, header 'x-none' as nothing bytes check ({condition})",
    )
    body = "ä body".encode()
    digest = hmac.digest(b"very secret", body, hashlib.sha256).hex()
    path = f"/api/webhook/{name}"
    for wrong in ({}, {"X_Sign": "zz"}, {"X_Sign": digest[:-2] + "00"}):
        status, reply = post(host, path, body, **wrong)
        assert status == 401, reply
        assert reply["error"]["message"] == "the CHECK of the webhook does not hold"
    assert post(host, path, b"\xff", X_Sign=digest)[0] == 401
    assert post(host, path, body, X_Sign=digest, X_Kind="k")[0] == 200
    assert sql(host, f"select * from {name}") == [["ä body", "k", None]]


def refused(host: DatabaseHost, text: str) -> dict[str, Any]:
    body = json.dumps({"query": text}).encode()
    _, reply = post(host, "/api/sql", body, Content_Type="application/json")
    found: dict[str, Any] = reply["results"][-1]["error"]
    return found


def test_a_check_that_cannot_be_is_refused_when_it_is_made(database_host: DatabaseHost) -> None:
    host = database_host
    text = "create source wrong from webhook body format text check (body || 'x')"
    error = refused(host, text)
    assert (error["code"], "boolean" in error["message"]) == ("42804", True)
    other = refused(host, "create source wrong from webhook body format text check (secret = 'x')")
    assert other["code"] == "42703"
    none = "create source wrong from webhook body format text check (with (secret s) true)"
    assert refused(host, none)["code"] == "42704"
    aside = "create source c from load generator counter check (true)"
    assert "WEBHOOK" in refused(host, aside)["message"]
    assert sql(host, "select count(*) from mz_sources where name in ('wrong', 'c')") in (
        [["0"]],
        [[0]],
    )


def test_a_webhook_for_everybody_says_so(database_host: DatabaseHost) -> None:
    sql(database_host, "create source open from webhook body format json")
    assert post(database_host, "/api/webhook/open", b"1")[0] == 200
    elsewhere = "https://elsewhere.example"
    assert post(database_host, "/api/webhook/open", b"2", Origin=elsewhere)[0] == 401
    sql(database_host, "create source raw from webhook body format bytes check (true)")
    assert post(database_host, "/api/webhook/raw", b"\xff\xfe")[0] == 200
