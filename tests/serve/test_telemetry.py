"""Traces, as an OTLP collector gets them: a real server and exporter, an endpoint that listens."""

from __future__ import annotations

import asyncio
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import psycopg
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from noonmark.clock import SYSTEM
from noonmark.compute.view.view import TickRecord
from noonmark.errors import ConfigError
from noonmark.serve.run import Running, Settings, serving
from noonmark.telemetry import Telemetry
from support.neighbour.listening import listening

HERE = ("127.0.0.1", 0)


class _Collector(BaseHTTPRequestHandler):
    server: _Listening

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip

            body = gzip.decompress(body)
        told = ExportTraceServiceRequest.FromString(body)
        for resource in told.resource_spans:
            for scope in resource.scope_spans:
                self.server.spans += scope.spans
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


class _Listening(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(HERE, _Collector)
        self.spans: list[Any] = []


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value for each in span.attributes}


def _ask(running: Running) -> None:
    with psycopg.connect(
        host="127.0.0.1", port=running.pg[1], user="me", dbname="noonmark", autocommit=True
    ) as connection:
        connection.execute("create table t (a int)")
        connection.execute("insert into t values (1)")
        connection.execute("create secret s as 'hush'")
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("select a / 0 from t")


def test_statements_are_traced() -> None:
    with listening(_Listening()) as server:
        endpoint = f"http://127.0.0.1:{server.server_address[1]}"

        async def run() -> None:
            place = Settings(f"memory:{SYSTEM.fresh_id()}", pg=HERE, http=HERE, otlp=endpoint)
            async with serving(place) as running:
                await asyncio.to_thread(_ask, running)

        asyncio.run(asyncio.wait_for(run(), 120))
    whole = [each for each in server.spans if each.name == "statement"]
    kinds = {attributes(each)["db.operation.name"]: each for each in whole}
    assert {"create table", "insert", "select"} <= kinds.keys()
    failed = kinds["select"]
    assert attributes(failed)["db.response.status_code"] == "22012"
    assert attributes(failed)["error.type"] == "division_by_zero"
    assert failed.status.code == 2
    assert not any("hush" in str(each) for each in server.spans)
    inner = [each.name for each in server.spans if each.parent_span_id == failed.span_id]
    assert sorted(inner) == ["execute", "prepare"]
    assert failed.start_time_unix_nano <= failed.end_time_unix_nano


def test_ticks_are_traced() -> None:
    record = TickRecord("v", 5, 9, 3, 2, 0, 1, 12.5, "delta")
    with listening(_Listening()) as server:
        telemetry = Telemetry()
        telemetry.start(f"http://127.0.0.1:{server.server_address[1]}")
        telemetry.tick(record, 1_000)
        telemetry.close()
        telemetry.tick(record, 2_000)
    (span,) = server.spans
    assert attributes(span)["noonmark.view"] == "v"
    assert attributes(span)["noonmark.strategy"] == "delta"
    assert span.end_time_unix_nano - span.start_time_unix_nano == 12_500_000


def test_it_is_off_unless_somebody_asks() -> None:
    assert not Telemetry().is_on
    with pytest.raises(ConfigError, match="is no URL"):
        Telemetry().start("collector:4318")


def test_a_server_without_opentelemetry_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigError, match="not installed"):
        Telemetry().start("http://127.0.0.1:4318")
