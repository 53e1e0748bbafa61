"""Where connections may go: the one place that every connection to the outside asks.

A server reaches more than its users do: itself, its neighbours, the metadata of its cloud. So a
connection that a user describes goes only to addresses that its operator lets it go to.

    NOONMARK_CONNECT_DENY     what is refused; by default link-local and what is no address of one
                              machine. "private" adds private networks
    NOONMARK_CONNECT_ALLOW    what is let through all the same

Both are lists with commas: networks (10.0.0.0/8), addresses, names of hosts, and the words
`loopback`, `link-local`, `private` and `all`. `noonmark serve` has an option for each.

Law (addresses): what is checked is the address that is connected to, not the name: a name that
resolves to something else a moment later does not go there. An address inside another (IPv4 in
IPv6) is checked as what it stands for. Law (redirects): what a server sends us to is checked again.
Law (schemes): an address in a URL is http or https.

This machine (`loopback`) is refused too where that keeps anybody out: to a server that listens
beyond this machine (`noonmark serve` sees to it), and in every connection that is described by a
role that is no superuser (`for_roles`). Who talks to a server that listens on this machine alone
is on it already, and a superuser is its operator.

Law (whose): who described a connection goes with it, to wherever it is connected (`policy_of`): a
host that was nobody's when it was written down, or that is spelled as only the client reads it, is
judged when it is connected to, by the same policy.

A process has one policy, and one for roles. Where it runs: driver and executors, which get both by
their environment.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from noonmark.errors import ConfigError, RefusedHere, SourceStalled

ALLOW, DENY = "NOONMARK_CONNECT_ALLOW", "NOONMARK_CONNECT_DENY"
SCHEMES = ("http", "https")
_DEFAULT_DENY = "link-local"
#: What a server that listens beyond this machine refuses, unless it is told otherwise.
STRICT = "loopback,link-local"
_WORDS = {
    "loopback": ("127.0.0.0/8", "::1/128"),
    # A cloud's metadata are at a link-local address, and Amazon's at one of a private network too.
    "link-local": ("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128"),
    "private": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"),
    "all": ("0.0.0.0/0", "::/0"),
}
#: Addresses of no machine, or of many: nobody means them.
_NEVER = ("0.0.0.0/8", "::/128", "224.0.0.0/4", "ff00::/8", "240.0.0.0/4")
#: A host in a URL: letters of any script, digits, dots, hyphens; colons of IPv6.
_PLAIN_HOST = re.compile(r"[\w.:-]+")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Outgoing:
    """See the module; `allowed_hosts` are names that are let through whatever they resolve to."""

    allowed: tuple[Network, ...] = ()
    denied: tuple[Network, ...] = ()
    allowed_hosts: frozenset[str] = frozenset()
    denied_hosts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, allow: str = "", deny: str = STRICT) -> Outgoing:
        """The policy of two lists.

        Raises:
            ConfigError: something that is neither network, address, host nor word.
        """
        allowed, allowed_hosts = _read(allow)
        denied, denied_hosts = _read(deny)
        never = tuple(ipaddress.ip_network(text) for text in _NEVER)
        return cls(allowed, (*denied, *never), allowed_hosts, denied_hosts)

    def lets(self, host: str, address: Address) -> bool:
        """Whether a host may be reached at an address.

        >>> from ipaddress import ip_address
        >>> policy = Outgoing.of(allow="127.0.0.2")
        >>> [policy.lets("h", ip_address(a)) for a in ("127.0.0.1", "127.0.0.2", "192.0.2.1")]
        [False, True, True]
        >>> policy.lets("h", ip_address("::ffff:127.0.0.1"))
        False
        """
        if host.lower() in self.allowed_hosts:
            return True
        real = _unwrapped(address)
        if _among(real, self.allowed):
            return True
        return host.lower() not in self.denied_hosts and not _among(real, self.denied)

    def check_host(self, host: str) -> None:
        """Refuse a host that is an address, or this machine, before anybody connects to it.

        Raises:
            RefusedHere: the policy does not let it through.
        """
        text = host.strip("[]")
        if host.startswith(("/", "@")):
            self._check(host, ipaddress.ip_address("127.0.0.1"))  # a socket of this machine
            return
        if text.lower().rstrip(".") == "localhost" or text.lower().endswith(".localhost"):
            self._check(text, ipaddress.ip_address("127.0.0.1"))
            return
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            if text.lower() in self.denied_hosts:
                raise _refused(host, None) from None
            return
        self._check(text, address)

    def _check(self, host: str, address: Address) -> None:
        if not self.lets(host, address):
            raise _refused(host, address)

    def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host, all of which may be connected to.

        Raises:
            RefusedHere: one of them may not.
            SourceStalled: the host is not known.
        """
        self.check_host(host)
        try:
            found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise SourceStalled(f'host "{host}" is not known: {error}') from None
        texts = list(dict.fromkeys(str(each[4][0]).partition("%")[0] for each in found))
        for text in texts:
            self._check(host, ipaddress.ip_address(text))
        return texts


def policy(environ: Mapping[str, str] = os.environ) -> Outgoing:
    """The policy of this process."""
    return _parsed(environ.get(ALLOW, ""), environ.get(DENY, _DEFAULT_DENY))


def for_roles(environ: Mapping[str, str] = os.environ) -> Outgoing:
    """The policy for what is described by somebody who is no superuser."""
    return _parsed(environ.get(ALLOW, ""), f"{environ.get(DENY, _DEFAULT_DENY)},{STRICT}")


def policy_of(by_role: bool) -> Outgoing:
    """The policy of this process for a connection, by who described it."""
    return for_roles() if by_role else policy()


@lru_cache(maxsize=8)
def _parsed(allow: str, deny: str) -> Outgoing:
    return Outgoing.of(allow, deny)


def check_url(url: str, *, by_role: bool = False) -> str:
    """Refuse a URL that is not http or https, or goes where it may not; returns its host.

    Raises:
        ConfigError: it is no such URL.
        RefusedHere: the policy does not let it through.
    """
    parts = urlsplit(url)
    if parts.scheme.lower() not in SCHEMES or not parts.hostname:
        raise ConfigError(
            "the URL is neither http nor https", hint="https://registry.example:8081, say."
        )
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            "the URL has a user or a password in it", hint="Say USERNAME and PASSWORD SECRET s."
        )
    if not _PLAIN_HOST.fullmatch(parts.hostname):
        # Clients read escapes in a host each in their own way: what is checked has none.
        raise ConfigError(f'the URL has no host that can be looked up: "{parts.hostname}"')
    policy_of(by_role).check_host(parts.hostname)
    return parts.hostname


def check_brokers(servers: Iterable[str], *, by_role: bool = False) -> None:
    """Refuse Kafka's ``host:port`` where one resolves to what may not be connected to."""
    for server in servers:
        host, _, port = server.strip().rpartition(":")
        if not host:
            host, port = server.strip(), "9092"
        policy_of(by_role).addresses(host, int(port) if port.isdigit() else 9092)


def _refused(host: str, address: Address | None) -> RefusedHere:
    where = f'"{host}"' if address is None or str(address) == host else f'"{host}" ({address})'
    return RefusedHere(
        f"connections to {where} are not allowed here",
        hint="The operator of the server may allow them: --connect-allow, or connect_allow.",
    )


def _unwrapped(address: Address) -> Address:
    """What an address inside another stands for."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return inner
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _among(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == net.version and address in net for net in networks)


def _read(text: str) -> tuple[tuple[Network, ...], frozenset[str]]:
    networks: list[Network] = []
    hosts: set[str] = set()
    for part in filter(None, (each.strip() for each in text.split(","))):
        for one in _WORDS.get(part.lower(), (part,)):
            try:
                networks.append(ipaddress.ip_network(one, strict=False))
            except ValueError:
                if "/" in one or ":" in one:
                    raise ConfigError(
                        f'"{one}" is neither a network nor a host',
                        hint="10.0.0.0/8, 192.0.2.1, db.example, loopback, private.",
                    ) from None
                hosts.add(one.lower())
    return tuple(networks), frozenset(hosts)
