"""Connections as the clients below take them: options of SQL to a URL or to librdkafka's options.

A connection is stored as it was written, its secrets by reference. Options that are secret by
nature must be references: so no text, error or listing has a secret in it.

    POSTGRES                    HOST, PORT, USER, PASSWORD, DATABASE, SSL MODE, SSL ...
    KAFKA                       BROKER or BROKERS, SECURITY PROTOCOL, SASL ..., SSL ...
    CONFLUENT SCHEMA REGISTRY   URL, USERNAME, PASSWORD

Law (whose): what a role that is no superuser described is checked as such whenever it is connected
to, not only when it was described: `of_role` goes with it to the client.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.privilege import is_superuser
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.upstream.secret import unseal
from noonmark.errors import (
    ConfigError,
    RefusedHere,
    SourceStalled,
    UndefinedObject,
    WrongObjectType,
)
from noonmark.source.format.registry import Registry
from noonmark.source.outgoing import check_url, for_roles, policy
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.source.impl.kafka.client import Options as KafkaOptions

#: What SQL calls an option, and what libpq does.
_POSTGRES = {
    "host": "host",
    "port": "port",
    "user": "user",
    "password": "password",
    "database": "dbname",
    "ssl_mode": "sslmode",
    "ssl_certificate_authority": "sslrootcert",
    "ssl_certificate": "sslcert",
    "ssl_key": "sslkey",
}
_KAFKA = {
    "broker": "bootstrap.servers",
    "brokers": "bootstrap.servers",
    "security_protocol": "security.protocol",
    "sasl_mechanisms": "sasl.mechanism",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_username": "sasl.username",
    "sasl_password": "sasl.password",
    "ssl_certificate_authority": "ssl.ca.pem",
    "ssl_certificate": "ssl.certificate.pem",
    "ssl_key": "ssl.key.pem",
}
_REGISTRY = {"url": "url", "username": "username", "user": "username", "password": "password"}
REGISTRY = "confluent schema registry"
_KINDS = {"postgres": _POSTGRES, "kafka": _KAFKA, REGISTRY: _REGISTRY}
_REQUIRED = {"postgres": ("host",), REGISTRY: ("url",)}
_SECRET = frozenset(("password", "sasl_password", "ssl_key"))
#: Options that are the text of a certificate: a name would be that of a file of the server.
_TEXTS = frozenset(("ssl_certificate_authority", "ssl_certificate"))
_PEM = "-----BEGIN"
_PORT_MAX = 65_535


def check_connection(kind: str, options: Mapping[str, Any], *, names_files: bool) -> None:
    """Refuse a connection that cannot be, or goes where it may not.

    Args:
        kind: what it is to.
        options: as they were written.
        names_files: for superusers, who may name files of the server, and this machine.
    """
    known = _KINDS.get(kind)
    if known is None:
        raise ConfigError(
            f"CREATE CONNECTION TO {kind.upper()} is not supported",
            hint="KAFKA, POSTGRES and CONFLUENT SCHEMA REGISTRY are.",
        )
    for name, value in options.items():
        shown = name.replace("_", " ").upper()
        if name not in known:
            raise ConfigError(f"a connection to {kind.upper()} has no option {shown}")
        if name in _SECRET and not isinstance(value, st.SecretRef | Mapping):
            raise ConfigError(
                f"{shown} takes a secret",
                hint=f"CREATE SECRET s AS '...'; then say {shown} SECRET s.",
            )
        if name in _TEXTS and isinstance(value, str) and not names_files:
            _check_pem(shown, value)
        _check_kind(name, shown, value)
    if kind == "postgres" and "port" in options:
        _check_port(str(options["port"]))
    for host in _hosts(kind, options):
        if names_files:
            policy().check_host(host)
        else:
            _check_resolved(host)
    missing = [name for name in _REQUIRED.get(kind, ()) if name not in options]
    if kind == "kafka" and not {"broker", "brokers"} & set(options):
        missing = ["broker"]
    if missing:
        raise ConfigError(f"a connection to {kind.upper()} needs {missing[0].upper()}")


def _check_kind(name: str, shown: str, value: Any) -> None:
    """Refuse a value of another kind than the option takes: a text, or what only some take."""
    texts = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    match name:
        case "port":
            fits = isinstance(value, int | str) and not isinstance(value, bool)
        case "broker" | "brokers":
            fits = isinstance(value, str) or (texts and bool(value))
        case "host" | "url":
            fits = isinstance(value, str)
        case _:
            fits = isinstance(value, str | st.SecretRef | Mapping)
    if not fits:
        raise ConfigError(f"{shown} takes a {'number' if name == 'port' else 'text'}")


def _check_pem(shown: str, text: str) -> None:
    if not text.lstrip().startswith(_PEM) and text != "system":
        raise ConfigError(
            f"{shown} takes a text in PEM, not the name of a file",
            hint="It begins with -----BEGIN.",
        )


def _hosts(kind: str, options: Mapping[str, Any]) -> list[str]:
    """Where a connection goes, as far as that is known without connecting."""
    if kind == REGISTRY:
        return [check_url(options["url"])] if isinstance(options.get("url"), str) else []
    if kind == "postgres":
        # An empty host is a socket of this machine, to libpq.
        given = str(options["host"]).split(",") if "host" in options else []
        return [host.strip() or "/tmp" for host in given]
    servers = (server.strip() for server in _brokers(options))
    return [server.rpartition(":")[0] or server for server in servers]


def _check_resolved(host: str) -> None:
    """Refuse a host of somebody who is no superuser, by name and by what it resolves to now."""
    allowed = for_roles()
    allowed.check_host(host)
    if host.startswith(("/", "@")):
        return
    try:
        allowed.addresses(host, 0)
    except RefusedHere:
        raise
    except SourceStalled:
        pass  # nobody knows it yet: it is checked when it is connected to


def of_role(catalog: Catalog, connection: Item) -> bool:
    """Whether a role that is no superuser said where a connection goes."""
    said = connection.definition.get("by_role")
    if said is not None:
        return bool(said)
    owner = connection.owner  # it was made when nobody wrote that down
    return owner in catalog.roles() and not is_superuser(catalog, owner)


def says_where(kind: str, names: Iterable[str]) -> bool:
    """Whether options say where a connection of a kind goes."""
    where = {"host", "port"} if kind == "postgres" else {"broker", "brokers", "url"}
    return not where.isdisjoint(names)


def _check_port(text: str) -> None:
    for each in text.split(","):
        if not each.strip().isdigit() or not 0 < int(each) <= _PORT_MAX:
            raise ConfigError(f'"{text}" is no PORT', hint=f"A number up to {_PORT_MAX}.")


def _brokers(options: Mapping[str, Any]) -> list[str]:
    given = options.get("brokers", options.get("broker", ()))
    return given.split(",") if isinstance(given, str) else [str(each) for each in given]


def connection_of(access: Access, name: st.Name, kind: str) -> Item:
    """The connection of that name and kind, for who may use it."""
    item = access.find(name.parts)
    if item is None:
        raise UndefinedObject(f'connection "{name}" does not exist', position=name.position)
    if item.kind == "connection":
        access.check("connection", item)  # who may not use it does not learn what it is
    if item.kind != "connection" or item.definition["kind"] != kind:
        raise WrongObjectType(
            f'"{name}" is not a connection to {kind.upper()}', position=name.position
        )
    return item


def registry_named(access: Access, format_: st.Format) -> Item | None:
    """The schema registry that a format says to use, if it says one."""
    name = format_.options.get("connection")
    return connection_of(access, name, REGISTRY) if isinstance(name, st.Name) else None


def options_of(catalog: Catalog, connection: Item) -> dict[str, str]:
    """The options of a connection under the names of its client, secrets opened."""
    names = _KINDS[connection.definition["kind"]]
    found: dict[str, str] = {}
    for name, value in connection.definition["options"].items():
        if isinstance(value, Mapping):
            secret = catalog.by_number[value["secret"]]
            found[names[name]] = unseal(secret.definition["sealed"], secret.name)
        elif isinstance(value, list | tuple):
            found[names[name]] = ",".join(map(str, value))
        else:
            found[names[name]] = str(value)
    return found


def postgres_url(catalog: Catalog, connection: Item) -> str:
    """Libpq's connection string."""
    from psycopg.conninfo import make_conninfo  # when one is used: servers start without

    from noonmark.source.impl.postgres import session as postgres  # door: see psycopg

    options = options_of(catalog, connection)
    for name, value in connection.definition["options"].items():
        if name.startswith("ssl_") and isinstance(value, Mapping):
            _check_pem(name, options[_POSTGRES[name]])  # a secret is no way to name a file
    if of_role(catalog, connection):
        options[postgres.MARK] = postgres.BY_ROLE
    return make_conninfo("", **options)


def kafka_options(catalog: Catalog, connection: Item) -> KafkaOptions:
    """Librdkafka's options."""
    from noonmark.source.impl.kafka.client import BY_ROLE  # door: see postgres_url

    found = tuple(sorted(options_of(catalog, connection).items()))
    return (*found, BY_ROLE) if of_role(catalog, connection) else found


def registry_of(catalog: Catalog, connection: Item) -> Registry:
    """The schema registry of a connection."""
    return Registry(**options_of(catalog, connection), by_role=of_role(catalog, connection))
