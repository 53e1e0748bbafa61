"""The front ends together: PostgreSQL's protocol and HTTP over the same sessions.

`start` listens on both or on neither. `Server.stop` tells every client and returns when all are
gone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from noonmark.adapter.contract import Sessions
from noonmark.clock import SYSTEM, Clock
from noonmark.errors import ConfigError
from noonmark.serve.http.server import HttpServer
from noonmark.serve.http.watched import Watched
from noonmark.serve.metrics import Figures
from noonmark.serve.pgwire.login import Rules
from noonmark.serve.pgwire.server import Limits, PgServer
from noonmark.serve.received import Received
from noonmark.serve.tls import Tls

Address = tuple[str, int]


@dataclass(frozen=True)
class Server:
    """Front ends that serve."""

    pg_address: Address
    http_address: Address
    figures: Figures
    pg: PgServer
    http: HttpServer
    metrics_address: Address | None = None
    figures_server: HttpServer | None = None

    async def stop(self) -> None:
        """Tell every client, and end."""
        await self.pg.stop()
        await self.http.stop()
        if self.figures_server is not None:
            await self.figures_server.stop()


async def start(
    sessions: Sessions,
    *,
    pg: Address,
    http: Address,
    tls: Tls | None = None,
    limits: Limits | None = None,
    trust_local: bool = True,
    metrics: Address | None = None,
    metrics_token: str | None = None,
    figures: Figures | None = None,
    clock: Clock = SYSTEM,
) -> Server:
    """Serve sessions; port 0 picks a free port.

    Raises:
        ConfigError: an address that cannot be listened on, or a certificate that cannot be used.
    """
    secret = hashlib.sha256(clock.fresh_id().encode()).digest()
    rules = Rules(secret, trust_local, encrypted_only=tls is not None)
    figures = figures or Figures()
    context = tls.context() if tls else None
    received = Received(limits.receive_mb if limits else Limits().receive_mb)
    pg_server = PgServer(
        sessions, figures, rules, tls=context, limits=limits, received=received, clock=clock
    )
    watched = Watched(figures, metrics_token, beside=metrics is None)
    http_server = HttpServer(sessions, figures, rules, tls, watched, received=received)
    servers: list[tuple[PgServer | HttpServer, Address, str]] = [
        (pg_server, pg, "pg"),
        (http_server, http, "http"),
    ]
    figures_server = None
    if metrics is not None:
        alone = replace(watched, beside=True, alone=True)
        figures_server = HttpServer(sessions, figures, rules, tls, alone, only_figures=True)
        servers.append((figures_server, metrics, "metrics"))
    places: list[Address] = []
    try:
        for server, wanted, option in servers:
            places.append(await _listen(server, wanted, option))
    except ConfigError:
        for server, _, _ in servers[: len(places)]:
            await server.stop()
        raise
    at = places[2] if metrics is not None else None
    return Server(places[0], places[1], figures, pg_server, http_server, at, figures_server)


async def _listen(server: PgServer | HttpServer, wanted: Address, option: str) -> Address:
    try:
        return await server.start(*wanted)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {shown(wanted)}",
            detail=error.strerror or str(error),
            hint=f"Choose another --{option}; port 0 picks a free one.",
        ) from error


def shown(place: Address) -> str:
    """An address as it is written.

    >>> shown(("127.0.0.1", 6875)), shown(("::1", 6875))
    ('127.0.0.1:6875', '[::1]:6875')
    """
    host, port = place
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
