"""The front ends together: PostgreSQL's protocol and HTTP over the same sessions.

`start` listens on both or on neither. `Server.stop` tells every client and returns when all are
gone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from noonmark.adapter.contract import Sessions
from noonmark.clock import SYSTEM, Clock
from noonmark.errors import ConfigError
from noonmark.serve.http.server import HttpServer
from noonmark.serve.metrics import Figures
from noonmark.serve.pgwire.login import Rules
from noonmark.serve.pgwire.server import Limits, PgServer
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

    async def stop(self) -> None:
        """Tell every client, and end."""
        await self.pg.stop()
        await self.http.stop()


async def start(
    sessions: Sessions,
    *,
    pg: Address,
    http: Address,
    tls: Tls | None = None,
    limits: Limits | None = None,
    trust_local: bool = True,
    figures: Figures | None = None,
    clock: Clock = SYSTEM,
) -> Server:
    """Serve sessions; port 0 picks a free port.

    Raises:
        ConfigError: an address that cannot be listened on, or a certificate that cannot be used.
    """
    rules = Rules(hashlib.sha256(clock.fresh_id().encode()).digest(), trust_local)
    figures = figures or Figures()
    context = tls.context() if tls else None
    pg_server = PgServer(sessions, figures, rules, tls=context, limits=limits, clock=clock)
    http_server = HttpServer(sessions, figures, rules, tls)
    pg_address = await _listen(pg_server, pg, "pg")
    try:
        http_address = await _listen(http_server, http, "http")
    except ConfigError:
        await pg_server.stop()
        raise
    return Server(pg_address, http_address, figures, pg_server, http_server)


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
