"""Where connections may go (`source.outgoing`): addresses, names, redirects, schemes."""

from __future__ import annotations

import http.server
import ipaddress
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.upstream.connection import (
    REGISTRY,
    check_connection,
    kafka_options,
    of_role,
    postgres_url,
    registry_of,
)
from noonmark.errors import ConfigError, NoonmarkError, RefusedHere, SourceStalled
from noonmark.source import outgoing
from noonmark.source.format.registry import Registry
from noonmark.source.impl.kafka.client import open_admin
from noonmark.source.impl.postgres.session import connect, pinned
from noonmark.source.outgoing import ALLOW, DENY, Outgoing, check_url

HERE = ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"]
METADATA = ["169.254.169.254", "fe80::1", "fd00:ec2::254", "::ffff:169.254.169.254"]
NOWHERE = ["0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "ff02::1"]
PRIVATE = ["10.1.2.3", "192.168.0.1", "172.16.9.9", "100.64.0.1", "fd12::1"]


@pytest.mark.parametrize("address", HERE + METADATA + NOWHERE)
def test_this_machine_and_its_cloud_are_refused(address: str) -> None:
    assert not Outgoing.of().lets("name.example", ipaddress.ip_address(address))


@pytest.mark.parametrize("address", PRIVATE)
def test_private_networks_are_refused_by_choice(address: str) -> None:
    place = ipaddress.ip_address(address)
    assert Outgoing.of().lets("h", place)
    assert not Outgoing.of(deny="loopback,link-local,private").lets("h", place)
    assert not Outgoing.of(deny="all").lets("h", place)
    assert Outgoing.of(allow=address, deny="all").lets("h", place)
    assert Outgoing.of(allow="db.example", deny="all").lets("DB.example", place)


@given(st.ip_addresses())
def test_what_is_neither_denied_nor_special_is_let_through(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if address.is_global and not address.is_multicast:
        # An address inside another is what it stands for: 6to4, NAT64.
        inside = str(address).startswith(("2002:", "64:ff9b:"))
        assert Outgoing.of().lets("h", address) or inside
    if address.is_loopback or address.is_link_local or address.is_multicast:
        assert not Outgoing.of().lets("h", address)


def test_a_list_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ConfigError, match="neither a network nor a host"):
        Outgoing.of(allow="10.0.0.0/99")


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://h/x", "gopher://h", "/etc/passwd", "http:///x", "http://u:p@h/"],
)
def test_only_http_and_https(url: str) -> None:
    with pytest.raises(ConfigError):
        check_url(url)
    with pytest.raises(NoonmarkError):
        Registry(url).validate()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "x.localhost", "[::1]", "0.0.0.0"])
def test_loopback_in_a_url(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.delenv(ALLOW, raising=False)
    monkeypatch.setenv(DENY, outgoing.STRICT)
    with pytest.raises(RefusedHere) as caught:
        Registry(f"http://{host}:1/").validate()
    assert caught.value.sqlstate == "42501"


def test_a_name_is_checked_by_what_it_resolves_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ALLOW, raising=False)
    monkeypatch.setenv(DENY, outgoing.STRICT)
    asked: list[str] = []

    def rebinding(host: str, port: int, **_: Any) -> Any:
        asked.append(host)
        address = "192.0.2.1" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(outgoing.socket, "getaddrinfo", rebinding)
    assert outgoing.policy().addresses("evil.example", 80) == ["192.0.2.1"]
    with pytest.raises(RefusedHere, match=r"evil\.example"):
        outgoing.policy().addresses("evil.example", 80)
    with pytest.raises(RefusedHere):
        pinned("host=evil.example dbname=d")
    with pytest.raises(RefusedHere):
        outgoing.check_brokers(["evil.example:9092"])
    asked.clear()
    dsn = pinned("host=db.example port=5433 dbname=d sslmode=verify-full")
    assert "hostaddr=192.0.2.1" in dsn
    assert "host=db.example" in dsn


@pytest.mark.parametrize("dsn", ["dbname=d", "host=/run/postgresql", "hostaddr=127.0.0.1"])
def test_a_socket_of_this_machine_is_this_machine(
    monkeypatch: pytest.MonkeyPatch, dsn: str
) -> None:
    monkeypatch.delenv(ALLOW, raising=False)
    monkeypatch.setenv(DENY, outgoing.STRICT)
    with pytest.raises(RefusedHere):
        pinned(dsn)


@contextmanager
def redirecting(to: str, heard: list[Any]) -> Iterator[str]:
    """A server that sends everybody elsewhere."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append((self.path, self.headers.get("Authorization")))
            if to and self.path.startswith("/subjects"):
                self.send_response(302)
                self.send_header("Location", to)
                self.end_headers()
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"[]")

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("to", ["http://169.254.169.254/", "http://127.0.0.2:1/", "file:///etc/x"])
def test_a_redirect_is_checked_again(monkeypatch: pytest.MonkeyPatch, to: str) -> None:
    monkeypatch.setenv(ALLOW, "127.0.0.1")
    monkeypatch.setenv(DENY, outgoing.STRICT)
    with redirecting(to, []) as url, pytest.raises((RefusedHere, ConfigError, SourceStalled)):
        Registry(url).validate()


def test_a_redirect_to_somebody_else_has_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOW, "loopback")
    heard: list[Any] = []
    with redirecting("", heard) as other, redirecting(f"{other}/elsewhere", heard) as url:
        Registry(url, "me", "hunter2").validate()
    assert [path for path, _ in heard] == ["/subjects", "/elsewhere"]
    assert [password is not None for _, password in heard] == [True, False]


def test_this_machine_is_refused_to_roles_and_by_servers_beyond_it() -> None:
    here = ipaddress.ip_address("127.0.0.1")
    assert outgoing.policy({}).lets("h", here)
    assert not outgoing.for_roles({}).lets("h", here)
    assert not outgoing.for_roles({DENY: "private"}).lets("h", here)
    assert outgoing.for_roles({ALLOW: "loopback"}).lets("h", here)
    assert not outgoing.policy({}).lets("h", ipaddress.ip_address("169.254.169.254"))


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1", "inside.example"])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (REGISTRY, {"url": "http://{}:1/"}),
        ("kafka", {"broker": "{}:9092"}),
        ("postgres", {"host": "{}"}),
    ],
)
def test_what_a_role_describes_is_no_other_name_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, host: str, kind: str, options: dict[str, str]
) -> None:
    """Neither a spelling that only the resolver reads, nor a name of its own that leads here."""
    monkeypatch.delenv(ALLOW, raising=False)
    monkeypatch.delenv(DENY, raising=False)
    resolve = socket.getaddrinfo

    def resolved(name: str, *rest: Any, **more: Any) -> Any:
        return resolve("127.0.0.1" if name == "inside.example" else name, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    written = {name: text.format(host) for name, text in options.items()}
    with pytest.raises(RefusedHere):
        check_connection(kind, written, names_files=False)
    check_connection(kind, written, names_files=True)  # a superuser, who is here already


def test_the_policy_of_the_environment() -> None:
    given = {ALLOW: "10.0.0.0/8", DENY: "private"}
    allowed = outgoing.policy(given)
    assert allowed.lets("h", ipaddress.ip_address("10.0.0.1"))
    assert not allowed.lets("h", ipaddress.ip_address("192.168.0.1"))


#: Ways to write this machine so that only the client of the connection knows it.
SPELLINGS = {
    REGISTRY: ["http://%31%32%37.0.0.1:{}/", "http://127.0.0.%31:{}/", "http://local%68ost:{}/"],
    "postgres": ["", ",", "h.example,", " "],
    "kafka": ["PLAINTEXT://127.0.0.1:{}", "plaintext://localhost:{}", "h.example:1,127.1:{}"],
}


def _item(kind: str, options: dict[str, Any], owner: str, **more: Any) -> Item:
    definition = {"kind": kind, "options": options, **more}
    return Item(7, "connection", "public", "c", definition=definition, owner=owner)


def _catalog(*roles: Item) -> Catalog:
    return Catalog().changed([Item(1, "role", "", "eve"), *roles])


def _connect(catalog: Catalog, item: Item) -> None:
    """As a source, a sink or VALIDATE CONNECTION does, on whatever process."""
    match item.definition["kind"]:
        case "postgres":
            connect(postgres_url(catalog, item))
        case "kafka":
            open_admin(kafka_options(catalog, item))
        case _:
            registry_of(catalog, item).validate()


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in SPELLINGS.items() for text in texts]
)
def test_a_connection_of_a_role_never_reaches_this_machine(
    monkeypatch: pytest.MonkeyPatch, kind: str, text: str
) -> None:
    """Not even where what was checked when it was described read it otherwise than its client."""
    monkeypatch.delenv(ALLOW, raising=False)
    monkeypatch.delenv(DENY, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = text.format(listener.getsockname()[1])
        name = {"postgres": "host", "kafka": "broker"}.get(kind, "url")
        item = _item(kind, {name: where}, "eve", by_role=True)
        with pytest.raises((RefusedHere, ConfigError, SourceStalled)) as caught:
            _connect(_catalog(), item)
        listener.settimeout(0.2)
        with pytest.raises(TimeoutError):
            listener.accept()
    if kind == "postgres":
        assert isinstance(caught.value, RefusedHere | SourceStalled)
        assert "socket" not in caught.value.message, "libpq looked for a server in the file system"


@pytest.mark.parametrize("kind", ["postgres", "kafka", REGISTRY])
def test_who_described_a_connection_goes_with_it(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A name that was nobody's, or somebody else's, when the connection was described."""
    monkeypatch.delenv(ALLOW, raising=False)
    monkeypatch.delenv(DENY, raising=False)
    resolve = socket.getaddrinfo

    def rebound(name: Any, *rest: Any, **more: Any) -> Any:
        return resolve("127.0.0.1" if name == "later.example" else name, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", rebound)
    name = {"postgres": "host", "kafka": "broker"}.get(kind, "url")
    where = "http://later.example:1" if kind == REGISTRY else "later.example"
    superuser = Item(2, "role", "", "boss", definition={"superuser": True})
    catalog = _catalog(superuser)
    for item in (
        _item(kind, {name: where}, "eve", by_role=True),
        _item(kind, {name: where}, "eve"),  # made before that was written down
        _item(kind, {name: where}, "boss", by_role=True),  # given away
    ):
        with pytest.raises(RefusedHere):
            _connect(catalog, item)
    for owner, more in (("boss", {}), ("gone", {}), ("eve", {"by_role": False})):
        assert not of_role(catalog, _item(kind, {name: where}, owner, **more))


@pytest.mark.parametrize("port", ["", "x", "5432 hostaddr=127.0.0.1", "0", "65536", "1,", "-1"])
def test_a_port_is_a_number(port: str) -> None:
    with pytest.raises(ConfigError, match="PORT"):
        check_connection("postgres", {"host": "192.0.2.1", "port": port}, names_files=True)
    check_connection("postgres", {"host": "192.0.2.1", "port": "5432,5433"}, names_files=True)
