"""The console's files: served as they are, with a policy that keeps them to this server."""

from __future__ import annotations

import http.client
import re
from pathlib import Path

import pytest

from noonmark.serve.http import console
from support.serve.host import Host


def get(host: Host, path: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(host.http, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        return reply, reply.read()
    finally:
        connection.close()


def test_every_file_is_served_with_its_type_and_policy(host: Host) -> None:
    for name, (body, kind, _) in console.pages().items():
        reply, read = get(host, "/" if name == "index.html" else f"/console/{name}")
        assert (reply.status, read) == (200, body)
        assert (reply.getheader("content-type") or "").startswith(kind)
        assert "default-src 'none'" in (reply.getheader("content-security-policy") or "")
        assert reply.getheader("x-content-type-options") == "nosniff"


def test_a_file_that_is_known_is_not_sent_again(host: Host) -> None:
    tag = get(host, "/")[0].getheader("etag") or ""
    again, body = get(host, "/", **{"If-None-Match": tag})
    assert (again.status, body) == (304, b"")


@pytest.mark.parametrize("name", ["none.js", "..%2fapp.py", "%2e%2e%2fapp.py", "app.py", ""])
def test_nothing_else_is_served(host: Host, name: str) -> None:
    assert get(host, f"/console/{name}")[0].status == 404


def test_pages_load_each_other_and_nothing_of_another_host() -> None:
    known = console.pages()
    for name, (body, kind, _) in known.items():
        text = body.decode()
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), name
        if kind == "text/javascript":
            assert "innerHTML" not in text, f"{name}: what people wrote must stay text"
            assert "eval(" not in text, name
        for other in re.findall(r'"/console/([^"]+)"', text):
            assert other in known, f"{name} asks for {other}"


def test_files_are_part_of_the_package() -> None:
    folder = Path(console.__file__).parent / "pages"
    assert {each.name for each in folder.iterdir()} == set(console.pages())
