"""The answer to ``POST /api/sql``, written while it is made.

    {"results":[{"desc":{"columns":[...]},"rows":[["1"],...],"tag":"SELECT 1","notices":[]},
                {"ok":"CREATE TABLE","notices":[]},
                {"error":{"message":...,"code":...},"notices":[]}]}

A result that fails after some of its rows has those rows and an error.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from collections.abc import AsyncIterator, Sequence

from noonmark.adapter.contract import Field, Notice, Row, Session
from noonmark.errors import NoonmarkError
from noonmark.serve.http import shape
from noonmark.serve.http.answer import answer
from noonmark.serve.http.request import Request
from noonmark.serve.metrics import Figures

_PIECES_MAX = 8


class _Writer:
    """Hears results and puts JSON text into a queue that waits for its reader."""

    def __init__(self, zone: dt.tzinfo) -> None:
        self.pieces: asyncio.Queue[str | None] = asyncio.Queue(_PIECES_MAX)
        self._zone = zone
        self._fields: tuple[Field, ...] | None = None
        self._results = self._rows = 0
        self._open = False

    async def begin(self, fields: tuple[Field, ...] | None, streaming: bool) -> None:  # noqa: ARG002
        self._fields, self._rows, self._open = fields, 0, True
        if fields is None:
            return await self._put(self._comma() + "{")
        desc = _dump({"columns": shape.columns(fields)})
        self._write = shape.row_writer(fields, self._zone)
        return await self._put(f'{self._comma()}{{"desc":{desc},"rows":[')

    async def rows(self, chunk: Sequence[Row]) -> None:
        if chunk:
            text = await shape.written(self._write, chunk)
            await self._put("," + text if self._rows else text)
            self._rows += len(chunk)

    async def end(self, tag: str, notices: Sequence[Notice]) -> None:
        told = _dump([shape.notice(notice) for notice in notices])
        name, close = ("ok", "") if self._fields is None else ("tag", "],")
        self._open = False
        await self._put(f'{close}"{name}":{shape.quoted(tag)},"notices":{told}}}')

    async def fail(self, error: NoonmarkError, offset: int = 0) -> None:
        if not self._open:
            await self._put(self._comma() + "{")
        elif self._fields is not None:
            await self._put("],")
        await self._put(f'"error":{_dump(shape.error(error, offset))},"notices":[]}}')

    def _comma(self) -> str:
        self._results += 1
        return "," if self._results > 1 else ""

    async def _put(self, text: str) -> None:
        await self.pieces.put(text)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


async def stream(
    session: Session, request: Request, zone: dt.tzinfo, figures: Figures
) -> AsyncIterator[bytes]:
    """The answer's bytes; the session is closed at the end, also when nobody reads to it."""
    writer = _Writer(zone)

    async def work() -> None:
        await answer(session, request, writer, figures)
        await writer.pieces.put(None)

    task = asyncio.create_task(work())
    try:
        yield b'{"results":['
        while (piece := await writer.pieces.get()) is not None:
            yield piece.encode()
        yield b"]}"
    finally:
        session.cancel()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await session.close()
