"""Questions of readers to the writer, at the address where it notifies them of commits.

What a reader can see in the log it reads there itself. What only the writer knows (how far its
timeline is), or only the writer can do (make a collection complete that nobody writes), it asks
for: one connection per question, a frame there and a frame back.

    <length, 4 bytes> <mac, 32 bytes> <nonce, 16 bytes> <body>

Law (who): an answer is of the writer whose lock the reader knows, and is of this question: both
frames are signed with a key that is made of the lock, which only those have who can read the log.
So a process that listens at the address of a writer that is gone, or is the writer of another
location, answers nobody.

An asker that leaves ends what is done for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import secrets
import struct
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from noonmark.errors import NoonmarkError
from noonmark.persist.log.state import Lock

if TYPE_CHECKING:
    from noonmark.persist.client import Client

Answerer = Callable[[bytes], Awaitable[bytes]]

LENGTH = struct.Struct("<I")
#: What follows is an answer: no commit has this number.
ANSWERS = b"\xff" * 8
_BYTES_MAX = 1 << 20
_MAC, _NONCE = 32, 16
_CONNECT_S = 2.0


class NotAnswered(NoonmarkError, id="not_answered", sqlstate="57P03"):
    """The writer of the location cannot be asked, or did not answer."""


async def ask(client: Client, body: bytes) -> bytes:
    """What the writer answers; runs on the loop.

    Raises:
        NotAnswered: there is no writer, it cannot be reached from here, or it is gone meanwhile.
    """
    lock = client.state.lock
    if lock is None or lock.released or not lock.address:
        raise NotAnswered("nobody writes to the location now")
    host, _, port = lock.address.rpartition(":")
    try:
        async with asyncio.timeout(_CONNECT_S):
            reader, writer = await asyncio.open_connection(host, int(port))
    except (OSError, TimeoutError) as error:
        raise NotAnswered("the writer cannot be reached", detail=f"At {lock.address}.") from error
    try:
        nonce = secrets.token_bytes(_NONCE)
        writer.write(_sealed(lock, b"question", nonce, body))
        while await reader.readexactly(len(ANSWERS)) != ANSWERS:
            continue  # numbers of commits, which it tells whoever connects
        found, answer = await _opened(reader, lock, b"answer")
    except (OSError, asyncio.IncompleteReadError) as error:
        raise NotAnswered("the writer did not answer", detail=f"At {lock.address}.") from error
    finally:
        writer.close()
    if found != nonce:
        raise NotAnswered("the writer answered another question")
    return answer


async def answer(
    client: Client, header: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer the question that begins with `header`; who cannot sign it is told nothing."""
    lock, answerer = client.state.lock, client.answerer
    if lock is None or answerer is None:
        return
    if client.lock is None or lock.epoch != client.lock.epoch:
        return  # this is not the writer any more
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        header += await reader.readexactly(LENGTH.size - len(header))
        nonce, body = await _opened(reader, lock, b"question", header)
        working = asyncio.ensure_future(answerer(body))
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if working.done() and not working.exception():
                writer.write(ANSWERS + _sealed(lock, b"answer", nonce, working.result()))
                await writer.drain()
        finally:
            working.cancel()
            leaving.cancel()


async def _opened(
    reader: asyncio.StreamReader, lock: Lock, purpose: bytes, header: bytes | None = None
) -> tuple[bytes, bytes]:
    """The nonce and the body of a frame; `ConnectionError` when it is not one of ours."""
    (length,) = LENGTH.unpack(header or await reader.readexactly(LENGTH.size))
    if not _MAC + _NONCE <= length <= _BYTES_MAX:
        raise ConnectionError("no frame")
    frame = await reader.readexactly(length)
    mac, nonce, body = frame[:_MAC], frame[_MAC : _MAC + _NONCE], frame[_MAC + _NONCE :]
    if not hmac.compare_digest(mac, _mac(lock, purpose, nonce, body)):
        raise ConnectionError("not signed by who reads this log")
    return nonce, body


def _sealed(lock: Lock, purpose: bytes, nonce: bytes, body: bytes) -> bytes:
    frame = _mac(lock, purpose, nonce, body) + nonce + body
    return LENGTH.pack(len(frame)) + frame


def _mac(lock: Lock, purpose: bytes, nonce: bytes, body: bytes) -> bytes:
    known = (lock.epoch, lock.reentrance_id, lock.holder, lock.taken_ms, lock.address)
    return hmac.digest(repr(known).encode(), purpose + b"\0" + nonce + body, hashlib.sha256)
