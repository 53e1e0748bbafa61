"""A `Link` over a socket.

One task per connection reads frames that arrived; nothing is queued per message. Bytes are received
into one buffer that all connections of a listener share (the event loop fills it and hands it over
in one step), so an idle connection keeps nothing. Reading pauses while more is waiting than the
frame in hand can need; writing pauses while the client does not take what was sent. What waits of
long frames is counted for all connections together (`Received`).
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Callable
from typing import cast

from noonmark.errors import NoonmarkError, Stopped
from noonmark.serve.pgwire.frames import FRAME_BYTES_MAX, Frames
from noonmark.serve.pgwire.link import Lost
from noonmark.serve.received import Received

RECEIVE_BYTES = 1 << 18
#: Reading pauses when so many bytes wait to be handled; a larger frame is let in whole.
WAITING_BYTES_MAX = 1 << 20
_WRITE_BYTES_HIGH = 1 << 18
_SEND_BYTES_MAX = 1 << 16
_CLOSE_SECONDS = 5.0


class Wire(asyncio.BufferedProtocol):
    """The socket of one client."""

    def __init__(
        self,
        buffer: memoryview,
        tls: ssl.SSLContext | None,
        connected: Callable[[Wire], None],
        lost: Callable[[Wire], None],
        frame_bytes_max: int = FRAME_BYTES_MAX,
        *,
        received: Received | None = None,
    ) -> None:
        self.frames = Frames(frame_bytes_max)
        self._received = received or Received()
        self._buffer, self._tls = buffer, tls
        self._on_connected, self._on_lost = connected, lost
        self._transport: asyncio.Transport | None = None
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._reader: asyncio.Future[None] | None = None
        self._fast_path: Callable[[], bool] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._writing_paused = self._reading_paused = False
        self._gone = self._encrypted = False
        self._ending: NoonmarkError | None = None
        #: What of it waits was counted for all connections.
        self._counted = 0
        self.drained: Callable[[], None] | None = None
        self._loop = asyncio.get_running_loop()
        self.peer = ""
        self.local = False

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client is there."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_WRITE_BYTES_HIGH)
        address = transport.get_extra_info("peername")
        self.peer, self.local = _where(address)
        self._on_connected(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - it is as large as any hint
        """Where the next bytes go: handed over before anything else runs."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came."""
        self.frames.feed(self._buffer[:nbytes])
        if self.frames.waiting_bytes > WAITING_BYTES_MAX or self._counted:
            self._count()
        if self._reader is not None:
            if self._fast_path is None or not self._fast_path():
                _wake(self._reader)
        elif self.frames.waiting_bytes > WAITING_BYTES_MAX and not self._reading_paused:
            self._reading_paused = True
            self._live.pause_reading()

    def _count(self) -> None:
        """Count what waits of a long message; who finds no room for it is ended."""
        waiting = self.frames.waiting_bytes
        self._counted, before = max(0, waiting - WAITING_BYTES_MAX), self._counted
        if not self._received.move(self._counted - before):
            self._counted = before
            self.frames.drop()
            self.end(self._received.refusal())

    def eof_received(self) -> None:
        """The client says no more: as if it were gone."""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - gone is gone
        """The client is gone."""
        self._gone = True
        self._received.move(-self._counted)
        self._counted = 0
        for waiter in (self._reader, self._writer):
            if waiter is not None:
                _wake(waiter)
        self._on_lost(self)

    def pause_writing(self) -> None:
        """The client is slow."""
        self._writing_paused = True

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._writing_paused = False
        if self._writer is not None:
            _wake(self._writer)
        if self.drained is not None:
            self.drained()

    # What the protocol calls.

    @property
    def can_encrypt(self) -> bool:
        """See `Link.can_encrypt`."""
        return self._tls is not None and not self._encrypted

    async def encrypt(self) -> None:
        """See `Link.encrypt`."""
        assert self._tls is not None
        self._live.write(b"S")
        try:
            transport = await self._loop.start_tls(self._live, self, self._tls, server_side=True)
        except (OSError, ssl.SSLError) as error:
            raise Lost from error
        if transport is None:
            raise Lost
        transport.set_write_buffer_limits(high=_WRITE_BYTES_HIGH)
        self._transport = transport
        self._encrypted = True

    async def more(self, fast_path: Callable[[], bool] | None = None) -> None:
        """See `Link.more`."""
        self._check()
        if self._counted:
            self._count()
        if self._ending is not None:
            raise self._ending
        self._reader, self._fast_path = self._loop.create_future(), fast_path
        if self._reading_paused:
            self._reading_paused = False
            self._live.resume_reading()
        try:
            await self._reader
        finally:
            self._reader = self._fast_path = None
        self._check()
        if self._ending is not None:
            raise self._ending

    @property
    def congested(self) -> bool:
        """See `Link.congested`."""
        return self._writing_paused

    def send(self, data: bytes) -> None:
        """See `Link.send`."""
        self._gathered.append(data)
        self._gathered_bytes += len(data)
        if self._gathered_bytes > _SEND_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        """See `Link.flush`."""
        if self._gathered:
            if not self._gone:
                self._live.write(b"".join(self._gathered))
            self._gathered.clear()
            self._gathered_bytes = 0

    async def drain(self) -> None:
        """See `Link.drain`."""
        self.flush()
        self._check()
        if not self._writing_paused:
            await asyncio.sleep(0)
            return
        self._writer = self._loop.create_future()
        try:
            await self._writer
        finally:
            self._writer = None
        self._check()

    # What the server calls.

    def stop(self) -> None:
        """Make `more` raise `Stopped`, now or when it is next called."""
        self.end(Stopped("terminating connection due to administrator command"))

    def end(self, why: NoonmarkError) -> None:
        """See `Link.end`."""
        self._ending = why
        if self._reader is not None:
            _wake(self._reader)

    def close(self) -> None:
        """Write what was gathered and end the connection."""
        self.flush()
        transport = self._transport
        if transport is not None:
            transport.close()
            if transport.get_write_buffer_size():
                # A client that takes nothing would keep the last words here for ever.
                self._loop.call_later(_CLOSE_SECONDS, transport.abort)

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def _live(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def _check(self) -> None:
        if self._gone:
            raise Lost


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _where(address: object) -> tuple[str, bool]:
    """The client's address as text, and whether it is this machine's own."""
    if not isinstance(address, tuple):
        return "local", True  # a socket in the file system
    host = str(address[0])
    return f"{host}:{address[1]}", is_loopback(host)


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own.

    >>> is_loopback("127.0.0.1"), is_loopback("::ffff:127.0.0.1"), is_loopback("192.0.2.1")
    (True, True, False)
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
