"""SQL over a WebSocket: a session that stays, and streams that go on (SUBSCRIBE).

The client's first words say who it is: ``{"user": "ada", "password": "...", "options": {}}``, or
``{}``. Then it sends requests as for ``POST /api/sql``; each ends with ``ReadyForQuery``. What
comes back is one JSON object a message, ``{"type": ..., "payload": ...}``:

    ParameterStatus, BackendKeyData      once, at the start
    CommandStarting                      {"has_rows": true, "is_streaming": false}
    Rows, Row                            the columns, then each row
    CommandComplete, Notice, Error       as in PostgreSQL's protocol
    ReadyForQuery                        "I", "T" or "E"

A request that comes while another runs waits. A client that goes has its statement cancelled.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from noonmark.adapter.contract import Field, Notice, Row, Session
from noonmark.errors import NoonmarkError, ProtocolViolation
from noonmark.serve.http import shape
from noonmark.serve.http.access import DEFAULT_USER
from noonmark.serve.http.answer import answer
from noonmark.serve.http.request import parse_request
from noonmark.serve.metrics import Figures
from noonmark.serve.pgwire.codec import time_zone
from noonmark.serve.pgwire.link import Lost
from noonmark.serve.received import Received

WAITING_MAX = 100
#: How often it is looked whether there is room for what came.
_ROOM_SECONDS = 0.1
_STATUS = {"idle": "I", "open": "T", "failed": "E"}


class Hello(msgspec.Struct, frozen=True):
    """Who the client is."""

    user: str = DEFAULT_USER
    password: str | None = None
    database: str | None = None
    options: dict[str, str] = {}


def parse_hello(text: str) -> Hello:
    """The client's first words."""
    try:
        return msgspec.json.decode(text, type=Hello)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ProtocolViolation(
            "the first message is not understood",
            detail=str(error),
            hint='Send JSON such as {"user": "ada", "password": "..."}.',
        ) from None


class Conversation:
    """What is said after the client said who it is."""

    def __init__(
        self, socket: WebSocket, session: Session, figures: Figures, received: Received
    ) -> None:
        self._socket, self._session, self._figures = socket, session, figures
        self._received = received
        self._waiting: asyncio.Queue[str | None] = asyncio.Queue(WAITING_MAX)
        self._waiting_bytes = 0

    async def run(self) -> None:
        """Answer until the client goes; the session is closed in any case."""
        hearing = asyncio.create_task(self._hear())
        try:
            for name, value in self._session.settings.items():
                await self._say("ParameterStatus", {"name": name, "value": value})
            key = {"conn_id": self._session.id, "secret_key": self._session.secret}
            await self._say("BackendKeyData", key)
            await self._ready()
            while (text := await self._waiting.get()) is not None:
                await self._answer(text)
                self._count(-len(text))
        except Lost:
            return
        finally:
            self._count(-self._waiting_bytes)
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)
            await self._session.close()

    async def _hear(self) -> None:
        """Take requests as they come, also while one runs: so that a goodbye is heard."""
        try:
            while True:
                text = await self._socket.receive_text()
                while not self._count(len(text)):
                    await asyncio.sleep(_ROOM_SECONDS)  # others have the room: nothing more is read
                await self._waiting.put(text)
        except (WebSocketDisconnect, RuntimeError, KeyError):
            self._session.cancel()
            await self._waiting.put(None)

    def _count(self, size: int) -> bool:
        there_is_room = self._received.move(size)
        if there_is_room:
            self._waiting_bytes += size
        return there_is_room

    async def _answer(self, text: str) -> None:
        try:
            request = parse_request(text)
        except ProtocolViolation as error:
            await self.fail(error)
        else:
            await answer(self._session, request, self, self._figures)
        await self._ready()

    async def _ready(self) -> None:
        await self._say("ReadyForQuery", _STATUS[self._session.status])

    async def _say(self, kind: str, payload: Any) -> None:
        await self._send(json.dumps({"type": kind, "payload": payload}, ensure_ascii=False))

    async def _send(self, text: str) -> None:
        try:
            await self._socket.send_text(text)
        except (WebSocketDisconnect, RuntimeError) as error:
            raise Lost from error

    # What it hears of results.

    async def begin(self, fields: tuple[Field, ...] | None, streaming: bool) -> None:
        """See `Listener.begin`."""
        has_rows = fields is not None
        await self._say("CommandStarting", {"has_rows": has_rows, "is_streaming": streaming})
        if fields is not None:
            zone = time_zone(self._session.settings.get("TimeZone"))
            self._write = shape.row_writer(fields, zone)
            await self._say("Rows", {"columns": shape.columns(fields)})

    async def rows(self, chunk: Sequence[Row]) -> None:
        """See `Listener.rows`."""
        for row in chunk:
            written = await shape.written(self._write, [row])
            await self._send(f'{{"type":"Row","payload":{written}}}')

    async def end(self, tag: str, notices: Sequence[Notice]) -> None:
        """See `Listener.end`."""
        for notice in notices:
            await self._say("Notice", shape.notice(notice))
        await self._say("CommandComplete", tag)

    async def fail(self, error: NoonmarkError, offset: int = 0) -> None:
        """See `Listener.fail`."""
        await self._say("Error", shape.error(error, offset))
