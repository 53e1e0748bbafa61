"""The server of PostgreSQL's protocol: listens, lets clients in, and stops cleanly.

A client that has not logged in within `Limits.login_seconds` is sent away. When the server stops,
clients that wait are told at once (57P01); those with a statement under way have it cancelled, and
what is left after `Limits.stop_seconds` is cut off. A client that vanishes has its statement
cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass

from noonmark import defect
from noonmark.adapter.contract import Session, Sessions
from noonmark.clock import SYSTEM, Clock
from noonmark.errors import NoonmarkError, Stopped, TooManyConnections
from noonmark.serve.metrics import Figures
from noonmark.serve.pgwire import reply
from noonmark.serve.pgwire.frames import FRAME_BYTES_MAX
from noonmark.serve.pgwire.link import Lost
from noonmark.serve.pgwire.login import Rules, log_in
from noonmark.serve.pgwire.protocol import Conversation
from noonmark.serve.pgwire.wire import RECEIVE_BYTES, Wire
from noonmark.serve.received import Received

LOG = logging.getLogger("noonmark.serve.pgwire")

#: How long a client has to take what it was told last.
_LAST_WORDS_SECONDS = 0.25


@dataclass(frozen=True)
class Limits:
    """How much a server takes on."""

    connections: int = 1_000
    frame_bytes: int = FRAME_BYTES_MAX
    login_seconds: float = 30.0
    stop_seconds: float = 3.0
    receive_mb: int = 1_024
    #: How many may be on their way in; of more, who came first is sent away.
    arriving: int = 500


class PgServer:
    """Serves sessions to PostgreSQL's clients."""

    def __init__(
        self,
        sessions: Sessions,
        figures: Figures,
        rules: Rules,
        *,
        tls: ssl.SSLContext | None = None,
        limits: Limits | None = None,
        received: Received | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self._sessions, self._figures, self._tls = sessions, figures, tls
        self._limits, self._clock = limits or Limits(), clock
        self._rules = rules
        self._received = received or Received()
        self._buffer = memoryview(bytearray(RECEIVE_BYTES))
        self._tasks: dict[Wire, asyncio.Task[None]] = {}
        self._live: dict[Wire, Session] = {}
        self._arriving: dict[Wire, None] = {}  # in the order in which they came
        self._wires: set[Wire] = set()
        self._nobody = asyncio.Event()  # no connection is open
        self._nobody.set()
        self._listener: asyncio.Server | None = None
        self._stopping = False

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; the address, with the port that was given if `port` is 0."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self._wire, host, port, backlog=512)
        address = self._listener.sockets[0].getsockname()
        return address[0], address[1]

    async def stop(self) -> None:
        """Tell every client, wait for them a little, and end."""
        self._stopping = True
        if self._listener is not None:
            self._listener.close()
        for wire in list(self._tasks):
            wire.stop()
        for session in list(self._live.values()):
            session.cancel()
        if self._tasks:
            tasks = list(self._tasks.values())
            _, slow = await asyncio.wait(tasks, timeout=self._limits.stop_seconds)
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)
        try:
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await self._nobody.wait()
        except TimeoutError:
            for wire in list(self._wires):
                wire.abort()
            await self._nobody.wait()

    def _wire(self) -> Wire:
        return Wire(
            self._buffer,
            self._tls,
            self._connected,
            self._lost,
            self._limits.frame_bytes,
            received=self._received,
        )

    def _connected(self, wire: Wire) -> None:
        self._figures.connections_total.labels("pgwire").inc()
        self._wires.add(wire)
        self._nobody.clear()
        if len(self._arriving) >= self._limits.arriving:
            # Sockets end before memory does: who says nothing keeps nobody else out.
            first = next(iter(self._arriving))
            del self._arriving[first]
            first.abort()
        self._arriving[wire] = None
        self._tasks[wire] = asyncio.get_running_loop().create_task(self._serve(wire))

    def _lost(self, wire: Wire) -> None:
        self._wires.discard(wire)
        self._arriving.pop(wire, None)
        if not self._wires:
            self._nobody.set()
        session = self._live.get(wire)
        if session is not None:
            session.cancel()

    async def _serve(self, wire: Wire) -> None:
        """One client, from first byte to last."""
        open_now = self._figures.connections.labels("pgwire")
        open_now.inc()
        try:
            await self._converse(wire)
        except Lost:
            LOG.debug("%s is gone", wire.peer)
        except NoonmarkError as error:
            wire.send(reply.error_response(error, severity="FATAL"))
        except Exception as error:
            told = defect.report(error, f"the connection of {wire.peer}")
            wire.send(reply.error_response(told, severity="FATAL"))
        finally:
            open_now.dec()
            self._live.pop(wire, None)
            self._tasks.pop(wire, None)
            wire.close()

    async def _converse(self, wire: Wire) -> None:
        try:
            async with asyncio.timeout(self._limits.login_seconds):
                session = await log_in(wire, self._sessions, self._rules, self._clock, self._admit)
        except TimeoutError:
            raise Stopped("canceling authentication due to timeout") from None
        self._arriving.pop(wire, None)
        if session is None:
            return
        self._live[wire] = session
        await Conversation(wire, session, self._figures, self._clock).run()

    def _admit(self) -> None:
        if self._stopping:
            raise Stopped("the database system is shutting down")
        if len(self._live) >= self._limits.connections:
            raise TooManyConnections("sorry, too many clients already")
