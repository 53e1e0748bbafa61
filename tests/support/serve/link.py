"""A line in memory: what a client would send is there from the start, what it gets is kept."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterable, Iterator

from noonmark.errors import NoonmarkError
from noonmark.serve.pgwire.frames import Frames
from noonmark.serve.pgwire.link import Lost


class MemoryLink:
    """See `Link`. Pieces arrive one at a time; after the last the client is gone."""

    def __init__(self, pieces: Iterable[bytes] = (), *, local: bool = True) -> None:
        self.frames = Frames(1 << 20)
        self.local, self.peer = local, "memory"
        self.can_encrypt = False
        self.drained: Callable[[], None] | None = None
        self.sent = bytearray()
        self.drains = 0
        self._pieces = iter(pieces)

    async def encrypt(self) -> None:
        raise AssertionError("it said that it cannot")

    async def more(self, fast_path: Callable[[], bool] | None = None) -> None:
        await asyncio.sleep(0)
        answered = True
        while answered:
            try:
                self.frames.feed(next(self._pieces))
            except StopIteration:
                raise Lost from None
            answered = fast_path is not None and fast_path()

    def end(self, why: NoonmarkError) -> None:
        raise AssertionError(f"nobody is ended here: {why}")

    @property
    def congested(self) -> bool:
        return False

    def send(self, data: bytes) -> None:
        self.sent += data

    def flush(self) -> None:
        """All was sent already."""

    async def drain(self) -> None:
        self.drains += 1

    def replies(self) -> list[tuple[str, bytes]]:
        """What the client got, message by message."""
        return list(split(bytes(self.sent)))

    def kinds(self) -> str:
        """The kinds of what the client got."""
        return "".join(kind for kind, _ in self.replies())


def split(raw: bytes) -> Iterator[tuple[str, bytes]]:
    """The messages of a server's bytes; they must end where the bytes end."""
    at = 0
    while at < len(raw):
        (length,) = struct.unpack_from(">i", raw, at + 1)
        assert length >= 4, "a length counts itself"
        assert at + 1 + length <= len(raw), "a message was cut"
        yield chr(raw[at]), raw[at + 5 : at + 1 + length]
        at += 1 + length


def frame(kind: str, body: bytes = b"") -> bytes:
    return kind.encode() + struct.pack(">i", len(body) + 4) + body


def start(code: int = 3 << 16, **parameters: str) -> bytes:
    words = b"".join(f"{name}\0{value}\0".encode() for name, value in parameters.items())
    body = struct.pack(">i", code) + words + b"\0"
    return struct.pack(">i", len(body) + 4) + body


def query(text: str) -> bytes:
    return frame("Q", text.encode() + b"\0")


def parse(text: str, name: str = "", oids: tuple[int, ...] = ()) -> bytes:
    numbers = struct.pack(f">h{len(oids)}I", len(oids), *oids)
    return frame("P", f"{name}\0{text}\0".encode() + numbers)


def bind(
    values: Iterable[bytes | None] = (),
    *,
    portal: str = "",
    statement: str = "",
    formats: tuple[int, ...] = (),
    results: tuple[int, ...] = (),
) -> bytes:
    given = list(values)
    body = f"{portal}\0{statement}\0".encode() + _int2s(formats) + struct.pack(">h", len(given))
    for value in given:
        size = -1 if value is None else len(value)
        body += struct.pack(">i", size) + (value or b"")
    return frame("B", body + _int2s(results))


def _int2s(numbers: tuple[int, ...]) -> bytes:
    return struct.pack(f">h{len(numbers)}h", len(numbers), *numbers)


def execute(portal: str = "", rows_max: int = 0) -> bytes:
    return frame("E", portal.encode() + b"\0" + struct.pack(">i", rows_max))


def describe(what: str, name: str = "") -> bytes:
    return frame("D", what.encode() + name.encode() + b"\0")


def close(what: str, name: str = "") -> bytes:
    return frame("C", what.encode() + name.encode() + b"\0")


SYNC, FLUSH, TERMINATE = frame("S"), frame("H"), frame("X")
