"""The HTTP server: uvicorn inside the caller's event loop; signals are the caller's."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn

from noonmark.adapter.contract import Sessions
from noonmark.serve.http.app import Http
from noonmark.serve.http.watched import Watched
from noonmark.serve.metrics import Figures
from noonmark.serve.pgwire.login import Rules
from noonmark.serve.received import Received
from noonmark.serve.tls import Tls

STOP_SECONDS = 3
#: A WebSocket's message: it may come from somebody who has not said who they are.
MESSAGE_BYTES_MAX = 1 << 20
CONNECTIONS_MAX = 1_000


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Whoever started the server decides what a signal means."""
        yield


class HttpServer:
    """Serves sessions over HTTP."""

    def __init__(
        self,
        sessions: Sessions,
        figures: Figures,
        rules: Rules,
        tls: Tls | None = None,
        watched: Watched | None = None,
        *,
        only_figures: bool = False,
        received: Received | None = None,
    ) -> None:
        self._http = Http(
            sessions,
            figures,
            rules,
            watched or Watched(figures),
            received or Received(),
            only_figures,
        )
        self._tls = tls
        self._server: _Uvicorn | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; the address, with the port that was given if `port` is 0."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=512)
        listener.setblocking(False)
        address = listener.getsockname()
        config = uvicorn.Config(
            self._http.app(),
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="websockets-sansio",
            ws_max_size=MESSAGE_BYTES_MAX,
            limit_concurrency=CONNECTIONS_MAX,
            server_header=False,
            timeout_graceful_shutdown=STOP_SECONDS,
            ssl_certfile=self._tls.certificate if self._tls else None,
            ssl_keyfile=self._tls.key if self._tls else None,
        )
        self._server = _Uvicorn(config)
        self._task = asyncio.create_task(self._server.serve([listener]))
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0.005)
        if self._task.done():
            await self._task
        return address[0], address[1]

    async def stop(self) -> None:
        """End what runs, soon."""
        self._http.stopping = True
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
