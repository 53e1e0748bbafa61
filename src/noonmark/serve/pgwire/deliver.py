"""What a statement gave, on its way to the client.

Rows are taken chunk by chunk and written as they come: at most one slice of a chunk is encoded
beyond what the client has taken. Whoever begins a stream ends it: `Stream.close` lets go of what
the rest would have needed, also when the client is gone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Literal

from noonmark.adapter.contract import Answer, CopyIn, CopyOut, Done, Row, Rows
from noonmark.adapter.peek.chunks import Listed
from noonmark.adapter.session.memory import rows_bytes
from noonmark.errors import CopyFailed, ProtocolViolation
from noonmark.serve.beside import beside, is_long
from noonmark.serve.pgwire import message as m
from noonmark.serve.pgwire import reply
from noonmark.serve.pgwire.codec import RowEncoder
from noonmark.serve.pgwire.copy import encoder
from noonmark.serve.pgwire.copy_taken import Taken
from noonmark.serve.pgwire.link import Link, Lost

SLICE_ROWS = 1_000
#: What a stream takes beside its rows.
_STREAM_BYTES = 32_000


class Stream:
    """The rows of an outcome, taken as the client asks for them."""

    __slots__ = ("_at", "_iterator", "_prompt", "_rows", "counted", "ended", "outcome")

    def __init__(self, outcome: Rows) -> None:
        self.outcome = outcome
        self.ended = False  # all was taken, and all was let go
        self.counted = False  # what is left of it counts as its session's
        self._iterator: AsyncIterator[Sequence[Row]] = aiter(outcome.chunks)
        self._rows: Sequence[Row] = ()
        self._at = 0
        # Rows of a subscription are seen when they come; others when there are enough, or all.
        self._prompt = outcome.verb == "SUBSCRIBE"

    @classmethod
    def of(cls, answer: Answer) -> Stream:
        """The rows of an answer."""
        return cls(Rows(answer.fields, Listed(answer.rows)))

    @property
    def bytes(self) -> int:
        """About what the rows take that are here."""
        chunks = self.outcome.chunks
        here = chunks.rows if isinstance(chunks, Listed) else self._rows
        return _STREAM_BYTES + rows_bytes(here)

    async def send(self, link: Link, encode: RowEncoder, rows_max: int) -> int:
        """Send rows, at most `rows_max` unless that is 0; how many there were."""
        sent = 0
        try:
            while not rows_max or sent < rows_max:
                if self._at >= len(self._rows):
                    self._rows, self._at = await anext(self._iterator), 0
                count = min(SLICE_ROWS, rows_max - sent) if rows_max else SLICE_ROWS
                whole = not self._at and count >= len(self._rows)
                part = self._rows if whole else self._rows[self._at : self._at + count]
                self._at += len(part)
                sent += len(part)
                link.send(await encode.encoded(part))
                if len(part) == SLICE_ROWS or self._prompt:
                    await link.drain()
        except StopAsyncIteration:
            await self.close()
        except BaseException:
            await self.close()
            raise
        return sent

    async def close(self) -> None:
        """Let go of the rest."""
        if not self.ended:
            self.ended = True
            await self.outcome.chunks.aclose()

    def tag(self, count: int) -> str:
        """What to say at the end."""
        return f"{self.outcome.verb} {count}" if self.outcome.counted else self.outcome.verb


async def send_copy(link: Link, outcome: CopyOut, zone: dt.tzinfo) -> str:
    """Send the rows of a COPY, one message each; the tag.

    A binary header is in the message of the first row, as in PostgreSQL: clients count on it.
    """
    encode = encoder(outcome.format, [field.type for field in outcome.fields], zone)

    def encoded(rows: Sequence[Row]) -> list[bytes]:
        return [encode.encode(row) for row in rows]

    sent = 0
    try:
        link.send(_copy_response(b"H", outcome))
        head = encode.begin([field.name for field in outcome.fields])
        if outcome.format.kind != "binary":
            _send_data(link, head)
            head = b""
        async for chunk in outcome.chunks:
            for begin in range(0, len(chunk), SLICE_ROWS):
                rows = chunk[begin : begin + SLICE_ROWS]
                long = is_long(value for row in rows for value in row)
                part = await beside(partial(encoded, rows)) if long else encoded(rows)
                part[0], head = head + part[0], b""
                link.send(b"".join([reply.frame(b"d", row) for row in part]))
                await link.drain()
            sent += len(chunk)
        _send_data(link, head + encode.end())
    finally:
        await outcome.chunks.aclose()
    link.send(reply.COPY_DONE)
    return f"COPY {sent}"


def _copy_response(kind: Literal[b"G", b"H"], outcome: CopyOut | CopyIn) -> bytes:
    binary = outcome.format.kind == "binary"
    return reply.copy_response(kind, binary, len(outcome.fields))


def _send_data(link: Link, data: bytes) -> None:
    if data:
        link.send(reply.frame(b"d", data))


async def take_copy(link: Link, copy: CopyIn, zone: dt.tzinfo) -> Done:
    """Take the rows of a COPY from the client; they are there once this returns."""
    try:
        link.send(_copy_response(b"G", copy))
        taken = Taken(copy, zone)
        while True:
            message = await _next_message(link)
            match message:
                case m.CopyData(data):
                    await taken.take(data)
                case m.CopyDone():
                    await taken.end()
                    break
                case m.CopyFail(reason):
                    raise CopyFailed(f"COPY from stdin failed: {reason}")
                case m.Flush() | m.Sync():
                    continue
                case _:
                    kind = type(message).__name__
                    raise ProtocolViolation(f"unexpected {kind} message during COPY from stdin")
    except BaseException:
        await copy.fail()
        raise
    return await copy.finish()


async def _next_message(link: Link) -> m.Message:
    while (frame := link.frames.next()) is None:
        link.flush()
        await link.more()
    message = m.parse(*frame)
    if isinstance(message, m.Terminate):
        raise Lost
    return message
