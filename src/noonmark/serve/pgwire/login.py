"""From the first byte to a session: encryption, who it is, what they want.

Before a session exists nothing is run and little is kept: a start packet of at most 10,000 bytes,
then answers to a challenge of at most 4,096. A user with a password proves it (SCRAM-SHA-256). A
user without one is let in from this machine alone, unless the server asks everybody for a password.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from noonmark.adapter.contract import Session, Sessions
from noonmark.adapter.password import parse_verifier
from noonmark.clock import Clock
from noonmark.errors import NotAuthorized, ProtocolViolation, Unsupported
from noonmark.serve.pgwire import message as m
from noonmark.serve.pgwire import reply
from noonmark.serve.pgwire.link import Link
from noonmark.serve.pgwire.scram import MECHANISM, Exchange, mock_verifier

_ENCRYPTION_REQUESTS_MAX = 4
_OPTION = re.compile(r"(?:-c\s*|--)((?:[^\s\\=]|\\.)+)=((?:[^\s\\]|\\.)*)")
_NO = ("", "0", "false", "off", "no")


@dataclass(frozen=True)
class Rules:
    """Who may come in.

    Attributes:
        trust_local: a user without a password may come from this machine.
        mock_secret: what the answers to unknown users are made from; different in every server.
        encrypted_only: nobody may come in without TLS, except from this machine.
    """

    mock_secret: bytes
    trust_local: bool = True
    encrypted_only: bool = False


async def log_in(
    link: Link, sessions: Sessions, rules: Rules, clock: Clock, admit: Callable[[], None]
) -> Session | None:
    """A session for who is there; None when they only came to cancel something.

    `admit` raises when the server takes nobody more: the client can be told once it has said what
    it came for.
    """
    request = await _request(link, rules)
    if isinstance(request, m.CancelRequest):
        sessions.cancel(request.id, request.secret)
        return None
    admit()
    user = request.parameters.get("user", "")
    if not user:
        raise NotAuthorized("no PostgreSQL user name specified in startup packet")
    if request.parameters.get("replication", "").lower() not in _NO:
        raise Unsupported("replication connections are not supported", hint="Use SUBSCRIBE.")
    options = [name for name in request.parameters if name.startswith("_pq_.")]
    if request.minor or options:
        link.send(reply.negotiate_protocol_version(0, options))
    await _authenticate(link, sessions, rules, user, clock.fresh_id())
    link.frames.login()
    database = request.parameters.get("database") or user
    return await sessions.connect(user, database, _settings(request.parameters), link.peer)


async def _request(link: Link, rules: Rules) -> m.StartUp | m.CancelRequest:
    """The start packet, after any talk about encryption."""
    encrypted = False
    for _ in range(_ENCRYPTION_REQUESTS_MAX):
        while (frame := link.frames.start()) is None:
            await link.more()
        code, raw = frame
        if code not in (m.SSL_REQUEST, m.GSSENC_REQUEST):
            request = m.parse_start(code, raw)
            if rules.encrypted_only and not encrypted and not link.local:
                raise NotAuthorized("this server takes encrypted connections only")
            return request
        # Bytes that came before the line was encrypted could be anybody's.
        if link.frames.waiting_bytes or raw:
            raise ProtocolViolation("received unencrypted data after SSL request")
        if code == m.SSL_REQUEST and link.can_encrypt:
            await link.encrypt()
            encrypted = True
        else:
            link.send(b"N")
            link.flush()
    raise ProtocolViolation("too many requests for encryption")


async def _authenticate(
    link: Link, sessions: Sessions, rules: Rules, user: str, nonce: str
) -> None:
    text = await sessions.verifier(user)
    if text is None and link.local and rules.trust_local:
        return
    verifier = mock_verifier(user, rules.mock_secret) if text is None else parse_verifier(text)
    link.send(reply.sasl([MECHANISM]))
    mechanism, first = m.parse_sasl_initial(await _answer(link))
    if mechanism != MECHANISM:
        raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
    exchange = Exchange(user, verifier, nonce)
    link.send(reply.sasl_continue(exchange.challenge(first)))
    link.send(reply.sasl_final(exchange.verify(await _answer(link))))


async def _answer(link: Link) -> bytes:
    link.flush()
    while (frame := link.frames.next()) is None:
        await link.more()
    return frame[1]


def _settings(parameters: dict[str, str]) -> dict[str, str]:
    """What the client sets from the start; ``options`` holds more, as for a command line."""
    apart = ("user", "database", "options", "replication")
    plain = {
        name: value
        for name, value in parameters.items()
        if name not in apart and not name.startswith("_pq_.")
    }
    words = _OPTION.findall(parameters.get("options", ""))
    return {re.sub(r"\\(.)", r"\1", name): re.sub(r"\\(.)", r"\1", v) for name, v in words} | plain
