"""A line: a connection between the driver and a resident task that carries whole messages.

Both ends show that they know the same secret before a message is read (`deliver_challenge`), so
nobody else's bytes are unpacked. Closing a descriptor does not wake a thread that reads it; `shut`
does, on either end. The descriptor goes with the line itself.

Where it runs: driver and executors.
"""

from __future__ import annotations

import os
import pickle
import socket
import struct
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any

from noonmark.compute.runner.resident.known import Telling, Told

#: How long a stranger may take to answer.
_GREETING_S = 5

Address = tuple[str, int]


class LineLost(Exception):
    """The other end is gone, or was never one of ours."""


class Line:
    """One end."""

    def __init__(self, end: socket.socket) -> None:
        end.settimeout(None)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._messages: Connection[Any, Any] = Connection(end.detach())
        self._telling, self._told = Telling(), Told()

    @classmethod
    def answering(cls, end: socket.socket, secret: bytes) -> tuple[Line, Any]:
        """The driver's end of a connection that a task opened, and what the task said first."""
        _limit(end, _GREETING_S)
        line = cls(end)
        try:
            deliver_challenge(line._messages, secret)
            answer_challenge(line._messages, secret)
            said = line.receive()
            with line._socket() as same:
                _limit(same, 0)
        except (AuthenticationError, EOFError, OSError) as error:
            raise LineLost(str(error)) from error
        return line, said

    @classmethod
    def to(cls, address: Address, secret: bytes, say: object) -> Line:
        """A task's end."""
        try:
            line = cls(socket.create_connection(address))
            answer_challenge(line._messages, secret)
            deliver_challenge(line._messages, secret)
        except (AuthenticationError, EOFError, OSError) as error:
            raise LineLost(str(error)) from error
        line.send(say)
        return line

    def send(self, message: object) -> None:
        """Send a message; waits while the other end does not take it."""
        self._send(pickle.dumps(message))

    def receive(self) -> Any:
        """The next message; waits for it."""
        return pickle.loads(self._receive())

    def tell(self, works: object) -> None:
        """Send what names batches: those that the other end knows are not sent again."""
        try:
            said = self._telling.dumps(works)
        except BaseException:
            self.shut()  # the ends do not know the same any more
            raise
        self._send(said)

    def hear(self) -> Any:
        """What the other end told; waits for it."""
        return self._told.loads(self._receive())

    def _send(self, data: bytes) -> None:
        try:
            self._messages.send_bytes(data)
        except OSError as error:
            raise LineLost(str(error)) from error

    def _receive(self) -> bytes:
        try:
            return self._messages.recv_bytes()
        except (EOFError, OSError) as error:
            raise LineLost(str(error)) from error

    def shut(self) -> None:
        """End it: whoever waits at either end learns of it at once."""
        with suppress(OSError), self._socket() as same:
            same.shutdown(socket.SHUT_RDWR)

    def _socket(self) -> socket.socket:
        return socket.socket(fileno=os.dup(self._messages.fileno()))


def _limit(end: socket.socket, seconds: int) -> None:
    """How long a read may wait; 0 is for ever."""
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", seconds, 0))
