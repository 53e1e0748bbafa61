"""Frames: how bytes from a client fall into messages.

After the start a frame is a kind (one byte), a length (four bytes, counting itself) and a body. The
first frames of a connection have no kind. Law: whatever the pieces in which bytes arrive, the
frames are the same; and a length is judged before a byte of its body is kept, so what a client can
make the server hold is the limit of the frame's kind and no more.
"""

from __future__ import annotations

import struct

from noonmark.errors import ProtocolViolation

#: A start packet may be no longer than in PostgreSQL.
START_BYTES_MAX = 10_000
#: Before login only answers to the server's challenge come: all are short.
LOGIN_BYTES_MAX = 4_096
#: Frames that only name something.
SHORT_BYTES_MAX = 10_000
#: What a frame with text, values or COPY data may take, unless the server says otherwise.
FRAME_BYTES_MAX = 256 << 20

_LONG_KINDS = frozenset(b"QPBdF")
_SHORT_KINDS = frozenset(b"DECHSXcf")
_PASSWORD, _BIND = ord("p"), ord("B")
#: A Bind has two names and three counts; behind it a client asks for a few short things.
_BOUND_BYTES_MIN, _BEHIND_BYTES_MAX = 13, 32
_LENGTH = struct.Struct(">i")
_KEPT_MAX = 1 << 16
_SMALL_BYTES = 1 << 12


class Frames:
    """The frames of the bytes that were fed. Before login, only answers to a challenge pass."""

    __slots__ = ("_at", "_buffer", "_frame_bytes_max", "_logged_in")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._buffer = bytearray()
        self._at = 0
        self._frame_bytes_max = frame_bytes_max
        self._logged_in = False

    def login(self) -> None:
        """From here on every kind of frame may come, in its own length."""
        self._logged_in = True

    def feed(self, data: bytes | memoryview) -> None:
        """More bytes."""
        buffer, at = self._buffer, self._at
        if at == len(buffer):
            if at:
                buffer.clear()
                self._at = 0
        elif at > _KEPT_MAX:
            del buffer[:at]
            self._at = 0
        buffer += data

    @property
    def waiting_bytes(self) -> int:
        """How many bytes were fed and not yet taken."""
        return len(self._buffer) - self._at

    def start(self) -> tuple[int, bytes] | None:
        """The next frame without a kind: its code and the rest; None while it is not whole."""
        if self.waiting_bytes < 4:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer, self._at)
        if not 8 <= length <= START_BYTES_MAX:
            raise ProtocolViolation("invalid length of startup packet", length=length)
        if self.waiting_bytes < length:
            return None
        body = self._cut(self._at + 4, length - 4)
        return int.from_bytes(body[:4], "big"), body[4:]

    def next(self) -> tuple[int, bytes] | None:
        """The next frame: its kind and its body; None while it is not whole."""
        buffer, at = self._buffer, self._at
        if len(buffer) - at < 5:
            return None
        kind = buffer[at]
        (length,) = _LENGTH.unpack_from(buffer, at + 1)
        if not 4 <= length <= self._length_max(kind):
            raise ProtocolViolation(f"invalid message length {length}", length=length)
        if len(buffer) - at <= length:
            return None
        return kind, self._cut(at + 5, length - 4)

    def bound(self) -> tuple[bytes, bytes] | None:
        """A whole Bind that is next, and what came behind it, where that is short."""
        buffer, at = self._buffer, self._at
        if len(buffer) - at < _BOUND_BYTES_MIN or buffer[at] != _BIND or not self._logged_in:
            return None
        end = at + 1 + int.from_bytes(buffer[at + 1 : at + 5], "big")
        if not 0 < len(buffer) - end <= _BEHIND_BYTES_MAX:
            return None
        return bytes(buffer[at + 5 : end]), bytes(buffer[end:])

    def leave(self, count: int) -> None:
        """All was taken but so many bytes at the end."""
        self._at = len(self._buffer) - count

    def drop(self) -> None:
        """Forget what was fed: nothing more of it is wanted."""
        self._buffer = bytearray()
        self._at = 0

    def peek(self) -> int | None:
        """The kind of the next frame, if its first byte is here."""
        return self._buffer[self._at] if self.waiting_bytes else None

    def _length_max(self, kind: int) -> int:
        if not self._logged_in:
            if kind != _PASSWORD:
                raise ProtocolViolation(f"expected password response, got message type {kind}")
            return LOGIN_BYTES_MAX
        if kind in _LONG_KINDS:
            return self._frame_bytes_max
        if kind in _SHORT_KINDS:
            return SHORT_BYTES_MAX
        raise ProtocolViolation(f"invalid frontend message type {kind}", kind=kind)

    def _cut(self, begin: int, count: int) -> bytes:
        end = self._at = begin + count
        if count < _SMALL_BYTES:
            return bytes(self._buffer[begin:end])
        with memoryview(self._buffer) as view:  # one copy, not two
            found = bytes(view[begin:end])
        if end == len(self._buffer) and end > _KEPT_MAX:
            self.drop()  # nothing of it is kept for an idle client
        return found
