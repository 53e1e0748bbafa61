"""The HTTP surface: what each path does.

POST /api/sql      run SQL, answer with JSON       GET /healthz   the process lives
WS   /api/sql      a session; streams SUBSCRIBE    GET /readyz    all parts serve
POST /api/webhook/<source>   a body becomes a row
GET  /metrics      figures, for Prometheus         GET /          the console
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from noonmark.adapter.contract import Sessions
from noonmark.errors import NoonmarkError, NotAuthorized, ProtocolViolation
from noonmark.serve.http import console, shape, webhook
from noonmark.serve.http.access import check, check_origin, credentials
from noonmark.serve.http.request import BODY_BYTES_MAX, parse_request
from noonmark.serve.http.socket import Conversation, parse_hello
from noonmark.serve.http.stream import stream
from noonmark.serve.http.watched import Watched
from noonmark.serve.metrics import Figures
from noonmark.serve.pgwire.codec import time_zone
from noonmark.serve.pgwire.login import Rules
from noonmark.serve.received import Received

#: How long a WebSocket's client has to say who it is.
LOGIN_SECONDS = 30.0


@dataclass
class Http:
    """The paths, over sessions."""

    sessions: Sessions
    figures: Figures
    rules: Rules
    watched: Watched
    received: Received
    only_figures: bool = False
    stopping: bool = False

    def app(self) -> Starlette:
        """The application to serve."""
        if self.only_figures:
            return Starlette(routes=[Route("/metrics", self.metrics)])
        return Starlette(
            routes=[
                Route("/", console.page),
                Route("/console/{name}", console.page),
                Route("/api/sql", self.sql, methods=["POST"]),
                WebSocketRoute("/api/sql", self.socket),
                Route("/api/webhook/{source:path}", self.webhook, methods=["POST"]),
                Route("/metrics", self.metrics),
                Route("/healthz", self.health),
                Route("/readyz", self.ready),
            ]
        )

    async def metrics(self, request: HttpRequest) -> Response:
        """Figures, for Prometheus, and for who may see them."""
        if not self.watched.beside:
            return PlainTextResponse("the figures are at an address of their own\n", 404)
        peer = request.client.host if request.client else ""
        try:
            await self.watched.admit(self.sessions, self.rules, request.headers, peer)
        except NoonmarkError as error:
            return _refused(error)
        return Response(self.figures.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def health(self, request: HttpRequest) -> Response:  # noqa: ARG002 - likewise
        """The process lives."""
        return PlainTextResponse("ok\n")

    async def ready(self, request: HttpRequest) -> Response:  # noqa: ARG002 - likewise
        """Every part that serves people does, unless the server stops; else why not."""
        why = ["stopping"] if self.stopping else self.sessions.troubles()
        return PlainTextResponse("\n".join(why or ["ok"]) + "\n", 503 if why else 200)

    async def sql(self, request: HttpRequest) -> Response:
        """Run SQL; errors of statements are part of the answer, others have a status."""
        try:
            check_origin(request.headers)
            if request.headers.get("content-type", "").partition(";")[0] != "application/json":
                raise ProtocolViolation("the request's Content-Type is not application/json")
            user, password = credentials(request.headers)
            peer = request.client.host if request.client else ""
            host = request.headers.get("host", "")
            await check(self.sessions, self.rules, user, password, peer=peer, host=host)
            asked = parse_request(
                await _body(request, self.received)
            )  # nothing is kept for strangers
            settings = dict(request.query_params)
            session = await self.sessions.connect(user, user, settings, peer)
        except NoonmarkError as error:
            return _refused(error)
        zone = time_zone(session.settings.get("TimeZone"))
        answer = stream(session, asked, zone, self.figures)
        return StreamingResponse(self._timed(answer), media_type="application/json")

    async def webhook(self, request: HttpRequest) -> Response:
        """Take a post to a source."""
        try:
            body = await _body(request, self.received)
        except NoonmarkError as error:
            return _refused(error)
        name = request.path_params["source"].replace("/", ".")
        return await webhook.answer(self.sessions, name, body, dict(request.headers))

    async def _timed(self, answer: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        with self.figures.statements.labels("http").time():
            async for piece in answer:
                yield piece

    async def socket(self, socket: WebSocket) -> None:
        """A session over a WebSocket."""
        try:
            check_origin(socket.headers)
        except NotAuthorized:
            return await socket.close()
        await socket.accept()
        open_now = self.figures.connections.labels("http")
        open_now.inc()
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                hello = parse_hello(await socket.receive_text())
            peer = socket.client.host if socket.client else ""
            host = socket.headers.get("host", "")
            await check(self.sessions, self.rules, hello.user, hello.password, peer=peer, host=host)
            database = hello.database or hello.user
            session = await self.sessions.connect(hello.user, database, hello.options, peer)
            await Conversation(socket, session, self.figures, self.received).run()
        except NoonmarkError as error:
            told = {"type": "Error", "payload": shape.error(error)}
            await socket.send_text(json.dumps(told))
            await socket.close()
        except TimeoutError:
            await socket.close()
        except (WebSocketDisconnect, KeyError):
            return None
        finally:
            open_now.dec()
        return None


async def _body(request: HttpRequest, received: Received) -> bytes:
    """The body, refused as soon as it is too long, or there is no room for it beside others."""
    pieces, total = [], 0
    with received.message() as message:
        async for piece in request.stream():
            total += len(piece)
            if total > BODY_BYTES_MAX:
                raise ProtocolViolation(f"the request is longer than {BODY_BYTES_MAX} bytes")
            message.add(len(piece))
            pieces.append(piece)
        return b"".join(pieces)


def _refused(error: NoonmarkError) -> Response:
    status = 401 if isinstance(error, NotAuthorized) else 400
    headers = {"WWW-Authenticate": "Basic"} if status == 401 else {}
    body = json.dumps({"error": shape.error(error)}, ensure_ascii=False)
    return Response(body, status, headers, media_type="application/json")
