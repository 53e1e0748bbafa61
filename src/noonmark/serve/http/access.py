"""Who may speak over HTTP.

A user with a password gives it with every request (Basic) or as the first words of a WebSocket. A
user without one is let in from this machine alone. Browsers carry other sites' pages: so a request
must be JSON (which another site's page cannot send unasked), an Origin must be this server's own,
and where nobody gives a password the server must be addressed by number or as localhost, not by a
name that somebody else could point here.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from noonmark.adapter.contract import Sessions
from noonmark.adapter.password import matches, parse_verifier
from noonmark.errors import InvalidPassword, NotAuthorized
from noonmark.serve.pgwire.login import Rules
from noonmark.serve.pgwire.wire import is_loopback

#: Who is taken to speak when a request names nobody.
DEFAULT_USER = "noonmark"


async def check(
    sessions: Sessions, rules: Rules, user: str, password: str | None, *, peer: str, host: str
) -> None:
    """Let the user in who speaks from `peer` to `host` (a Host header), or not.

    Raises:
        NotAuthorized: no.
    """
    verifier = await sessions.verifier(user)
    if verifier is None:
        if not (rules.trust_local and is_loopback(peer) and _own_name(host)):
            raise InvalidPassword(f'password authentication failed for user "{user}"')
        return
    # It takes milliseconds, on purpose: others go on meanwhile.
    known = parse_verifier(verifier)
    if password is None or not await asyncio.to_thread(matches, known, password):
        raise InvalidPassword(f'password authentication failed for user "{user}"')


def credentials(headers: Mapping[str, str]) -> tuple[str, str | None]:
    """User and password of a request's ``Authorization: Basic``."""
    scheme, _, encoded = headers.get("authorization", "").partition(" ")
    if not scheme:
        return DEFAULT_USER, None
    if scheme.lower() != "basic":
        raise NotAuthorized("only Basic authorization is known here")
    try:
        user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise NotAuthorized("the Authorization header cannot be read") from None
    return user, password


def check_origin(headers: Mapping[str, str]) -> None:
    """Refuse what another site's page sends."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        raise NotAuthorized(f"requests from {origin} are refused")


def _own_name(host: str) -> bool:
    """Whether a Host header is a number or localhost.

    >>> _own_name("localhost:6876"), _own_name("[::1]:6876"), _own_name("evil.example")
    (True, True, False)
    """
    name = urlsplit(f"//{host}").hostname or ""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
