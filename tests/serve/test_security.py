"""How a server is closed: where it listens, who sees figures, what its log says."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
import urllib.error
import urllib.request
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from noonmark import defect
from noonmark.clock import SYSTEM
from noonmark.errors import ConfigError
from noonmark.serve.command import merged
from noonmark.serve.log import Lines
from noonmark.serve.run import Running, Settings, secret_of, serving
from noonmark.serve.tls import Tls
from support.serve.host import CERTIFICATE

HERE = ("127.0.0.1", 0)


def start(**more: Any) -> Any:
    """A server that ends with the block, asked from another thread."""
    settings = Settings(f"memory:{SYSTEM.fresh_id()}", pg=HERE, http=HERE, **more)
    return serving(settings)


def serving_wide(**more: Any) -> Any:
    place = f"memory:{SYSTEM.fresh_id()}"
    return serving(Settings(place, pg=("0.0.0.0", 0), http=HERE, **more))


def test_beyond_this_machine_only_with_tls_and_a_password() -> None:
    async def go(**more: Any) -> str:
        async with serving_wide(**more):
            return "serves"

    with pytest.raises(ConfigError, match="without TLS"):
        asyncio.run(go())
    with pytest.raises(ConfigError, match="no password"):
        asyncio.run(go(tls=Tls(CERTIFICATE)))
    assert asyncio.run(go(tls=Tls(CERTIFICATE), password="pw")) == "serves"
    assert asyncio.run(go(insecure_listen=True)) == "serves"


def in_thread(work: Any, **more: Any) -> Any:
    """What `work` gives, called beside a server."""

    async def go() -> Any:
        async with AsyncExitStack() as stack:
            running: Running = await stack.enter_async_context(start(**more))
            return await asyncio.to_thread(work, running)

    return asyncio.run(go())


def get(place: tuple[str, int], path: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(f"http://{place[0]}:{place[1]}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_first_password_of_the_superuser() -> None:
    def work(running: Running) -> list[str]:
        host, port = running.pg
        where = f"host={host} port={port} dbname=noonmark user=noonmark"
        said = []
        for more in ("", " password=wrong", " password=first"):
            try:
                with psycopg.connect(where + more) as connection:
                    connection.execute("select 1")
                    said.append("in")
            except psycopg.OperationalError:
                said.append("out")
        return said

    assert in_thread(work, password="first") == ["out", "out", "in"]


def test_figures_with_a_token() -> None:
    def work(running: Running) -> list[int]:
        token = {"Authorization": "Bearer planted"}
        return [
            get(running.http, "/metrics")[0],
            get(running.http, "/metrics", Authorization="Bearer wrong")[0],
            get(running.http, "/metrics", **token)[0],
        ]

    assert in_thread(work, metrics_token="planted") == [401, 401, 200]


def test_figures_at_an_address_of_their_own() -> None:
    def work(running: Running) -> list[int]:
        assert running.metrics is not None
        return [
            get(running.http, "/metrics")[0],
            get(running.metrics, "/metrics")[0],
            get(running.metrics, "/api/sql")[0],
        ]

    assert in_thread(work, metrics=HERE) == [404, 200, 404]


def test_figures_are_for_this_machine_and_superusers() -> None:
    def work(running: Running) -> list[int]:
        host, port = running.pg
        with psycopg.connect(
            f"host={host} port={port} user=noonmark dbname=d password=pw", autocommit=True
        ) as connection:
            connection.execute("create role ann login password 'pw'")

        def basic(user: str) -> str:
            return "Basic " + base64.b64encode(f"{user}:pw".encode()).decode()

        return [
            get(running.http, "/metrics")[0],
            get(running.http, "/metrics", Host="evil.example")[0],
            get(running.http, "/metrics", Host="evil.example", Authorization=basic("ann"))[0],
            get(running.http, "/metrics", Host="evil.example", Authorization=basic("noonmark"))[0],
        ]

    assert in_thread(work, password="pw") == [200, 401, 401, 200]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_line_of_log_is_one_line(form: Any) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Lines(form))
    logger = logging.getLogger("noonmark.defect")
    logger.addHandler(handler)
    try:
        try:
            raise ValueError("a\nb\r\nfaked INFO line s3://b?aws_secret_access_key=planted")
        except ValueError as error:
            told = defect.report(error, "a statement")
        logger.error("serving %s", "postgres://me:planted@h/db\u2028x")
    finally:
        logger.removeHandler(handler)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert "planted" not in stream.getvalue()
    assert told.fields["number"] in lines[0]
    assert "ValueError" in lines[0]
    assert "Traceback" in lines[0]
    if form == "json":
        said = [json.loads(line) for line in lines]
        assert [each["level"] for each in said] == ["ERROR", "ERROR"]
        assert said[1]["logger"] == "noonmark.defect"
    else:
        assert lines[0].split()[1] == "ERROR"


def test_secrets_of_files_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "password"
    file.write_text("of the file\n")
    monkeypatch.setenv("NOONMARK_PASSWORD", "of the environment")
    assert secret_of("NOONMARK_PASSWORD", None) == "of the environment"
    assert secret_of("NOONMARK_PASSWORD", str(file)) == "of the file"
    with pytest.raises(ConfigError):
        secret_of("NOONMARK_PASSWORD", str(tmp_path / "none"))


def test_lists_of_the_configuration() -> None:
    found = merged({}, {"connect_allow": ["10.0.0.0/8", "db.example"], "log_format": "json"})
    assert (found["connect_allow"], found["log_format"]) == ("10.0.0.0/8,db.example", "json")
    with pytest.raises(ConfigError):
        merged({}, {"log_format": "xml"})
    with pytest.raises(ConfigError):
        merged({}, {"data": ["a"]})
