"""Notifications: a writer tells readers in other processes that there is something new.

One connection per reader; after each commit the writer sends its number, 8 bytes. That is a hint
and nothing more: the reader then reads the log itself, so a lost, late or forged notification can
make it look too late or in vain, never wrong. Without a connection it polls. A connection that says
something asks a question (`question`).
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import TYPE_CHECKING

from noonmark.errors import NoonmarkError
from noonmark.persist import question
from noonmark.persist.log.state import State
from noonmark.supervise import Task

if TYPE_CHECKING:
    from noonmark.persist.client import Client

_NUMBER = struct.Struct("<Q")
#: How long a reader believes that nothing was committed because it is told nothing.
SILENT_S = 1.0


class Notifier:
    """The writer's end."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._server: asyncio.Server | None = None
        self._task: Task | None = None
        self._readers: set[asyncio.StreamWriter] = set()

    async def start(self, host: str) -> str:
        """Listen on a free port; returns the address."""
        self._server = await asyncio.start_server(self._accept, host, 0)
        name = self._server.sockets[0].getsockname()
        return f"{name[0]}:{name[1]}"

    def begin(self) -> None:
        """Follow the journal."""
        self._task = self._client.supervisor.task("notifier", "", self._follow)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._readers.add(writer)
        # What was committed before it was listed here, its reader may not have seen.
        writer.write(_NUMBER.pack(self._client.journal.state.seqno))
        try:
            # Who is notified says nothing: this returns when they leave.
            asked = await reader.read(question.LENGTH.size)
            if asked:
                self._readers.discard(writer)
                await question.answer(self._client, asked, reader, writer)
        except ConnectionError:
            pass
        finally:
            self._readers.discard(writer)
            writer.close()

    async def _follow(self) -> None:
        journal = self._client.journal
        while True:
            seen = journal.state.seqno
            number = _NUMBER.pack(seen)
            for writer in list(self._readers):
                if writer.transport.get_write_buffer_size() == 0:
                    writer.write(number)
            await journal.wait_for(lambda state: state.seqno > seen)  # noqa: B023

    async def stop(self) -> None:
        """Close every connection."""
        if self._task is not None:
            await self._task.stop()
        for writer in list(self._readers):
            writer.close()
        if self._server is not None:
            self._server.close()


async def follow(client: Client, *, notified: bool) -> None:
    """A reader's end: refresh on every notification, and at `Config.poll_s` without them."""
    while True:
        address = _address(client.journal.state) if notified else None
        if address is not None:
            with contextlib.suppress(OSError, NoonmarkError, asyncio.IncompleteReadError):
                await _listen(client, address)
        with contextlib.suppress(NoonmarkError):
            await client.journal.refresh()
        await client.clock.sleep(client.config.poll_s)


async def _listen(client: Client, address: str) -> None:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        while True:
            await client.journal.refresh()
            # Who is silent may not be the writer at all: its address is taken from the log.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SILENT_S):
                    await reader.readexactly(_NUMBER.size)
    finally:
        writer.close()


def _address(state: State) -> str | None:
    lock = state.lock
    return lock.address or None if lock is not None and not lock.released else None
