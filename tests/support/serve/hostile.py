"""Frames that no honest client sends, and what must hold whatever is sent.

A stream is good frames, some of them bent: bytes flipped, cut or put in, lengths and counts that
lie, kinds that do not exist, texts that are no text, values that are no values. It arrives in
pieces of any size, before login or after it.

What must hold: the conversation ends by itself, with an answer of whole messages or none; nothing
but the protocol's own errors comes out; before login no more is kept than a start packet.
"""

from __future__ import annotations

import asyncio
import logging
import random
import struct
from collections import Counter
from collections.abc import Iterator

from noonmark.clock import SYSTEM
from noonmark.errors import NoonmarkError
from noonmark.serve.metrics import Figures
from noonmark.serve.pgwire.frames import START_BYTES_MAX
from noonmark.serve.pgwire.link import Lost
from noonmark.serve.pgwire.login import Rules, log_in
from noonmark.serve.pgwire.protocol import Conversation
from support.serve import link as wire
from support.serve.sessions import Scripted

PIECE_BYTES_MAX = 4_096
ROUNDS_PER_STREAM = 15

_TEXTS = ("echo int, text", "rows 5", "rows 50 by 7", "fail", "insert 1; table", "", "begin",
          "commit", "copy in", "copy in csv", "copy in binary", "copy out", "notice x",
          "set TimeZone Europe/Berlin", "syntax error", "\u00e9\U0001f600 x", "crash")  # fmt: skip
_NAMES = ("", "", "a", "b", "x" * 300)
_LENGTHS = (-(2**31), -1, 0, 3, 4, 5, 255, 65_536, 2**24, 2**31 - 1)


class Violation(AssertionError):
    """What must hold did not."""


class Hostile:
    """Streams of hostile frames, counted by how they were bent."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.bent: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.replies: Counter[str] = Counter()
        self.frames = 0
        self._figures = Figures()
        self._rules = Rules(b"secret")
        logging.getLogger("noonmark.serve.pgwire").setLevel(logging.CRITICAL)

    def run(self, frames: int) -> None:
        """Send so many frames in streams, some before login."""
        asyncio.run(self._run(frames))

    async def _run(self, frames: int) -> None:
        upto = self.frames + frames
        while self.frames < upto:
            if self._random.random() < 0.25:
                await self._before_login()
            else:
                await self._after_login()

    async def _before_login(self) -> None:
        name = self._random.choice(("bob", "ada"))
        good = [wire.start(user=name, database="d"), self._sasl(), self._sasl()]
        if self._random.random() < 0.3:
            good.insert(0, struct.pack(">ii", 8, self._random.choice((80877103, 80877104))))
        if self._random.random() < 0.1:
            good = [struct.pack(">iiii", 16, 80877102, 1, self._random.getrandbits(31))]
        link = wire.MemoryLink(self._pieces(b"".join(self._bend(raw) for raw in good)))
        try:
            session = await log_in(link, Scripted(), self._rules, SYSTEM, lambda: None)
        except (NoonmarkError, Lost) as end:
            self.ended[f"login: {type(end).__name__}"] += 1
        else:
            self.ended["login: in" if session else "login: cancel"] += 1
        if link.frames.waiting_bytes > START_BYTES_MAX + PIECE_BYTES_MAX:
            raise Violation(f"{link.frames.waiting_bytes} bytes were kept before login")

    async def _after_login(self) -> None:
        sessions = Scripted()
        session = await sessions.connect("bob", "d", {}, "memory")
        inside = [self._bend_inside(raw) for _ in range(ROUNDS_PER_STREAM) for raw in self._round()]
        end = self._bend(self._good())
        link = wire.MemoryLink(self._pieces(b"".join((*inside, end))))
        link.frames.login()
        try:
            await Conversation(link, session, self._figures, SYSTEM).run()
            self.ended["goodbye"] += 1
        except (NoonmarkError, Lost) as end:
            self.ended[type(end).__name__] += 1
        if not session.closed:
            raise Violation("the session was left open")
        self.replies.update(link.kinds())  # whole messages, or it raises
        if any(not stream.closed for stream in sessions.streams):
            raise Violation("rows were neither taken nor let go")

    def _round(self) -> list[bytes]:
        """A frame of any kind, or a whole statement in the extended protocol."""
        if self._random.random() < 0.5:
            return [self._good()]
        values = [self._random.choice((None, b"7", b"x")) for _ in range(2)]
        bind, rows_max = wire.bind(values), self._random.choice((0, 2))
        name = wire.parse("echo int, text", oids=self._random.choice(((), (23, 25))))
        return [name, bind, wire.describe("P"), wire.execute(rows_max=rows_max), wire.SYNC]

    def _good(self) -> bytes:
        pick = self._random.choice
        return pick((
            lambda: wire.query(pick(_TEXTS)),
            lambda: wire.parse(pick(_TEXTS), pick(_NAMES), pick(((), (23,), (23, 25), (9,)))),
            self._bind,
            lambda: wire.describe(pick("SPX"), pick(_NAMES)),
            lambda: wire.execute(pick(_NAMES), pick((0, 0, 1, 3, -1))),
            lambda: wire.close(pick("SP"), pick(_NAMES)),
            lambda: wire.SYNC,
            lambda: wire.SYNC,
            lambda: wire.FLUSH,
            lambda: wire.frame("d", self._bytes(60)),
            lambda: wire.frame("d", b"1,x\n2\tone\n"),
            lambda: wire.frame("c"),
            lambda: wire.frame("f", b"no\0"),
            lambda: wire.frame("F", self._bytes(20)),
        ))()  # fmt: skip

    def _bind(self) -> bytes:
        pick = self._random.choice
        values = [pick((None, b"7", b"\0\0\0\7", self._bytes(9))) for _ in range(pick((0, 2, 3)))]
        formats = pick(((), (0,), (1,), (0, 1), (5,), (0, 0, 0)))
        return wire.bind(
            values, portal=pick(_NAMES), statement=pick(_NAMES), formats=formats, results=formats
        )

    def _sasl(self) -> bytes:
        first = b"n,,n=ada,r=" + self._bytes(12).hex().encode()
        body = b"SCRAM-SHA-256\0" + struct.pack(">i", len(first)) + first
        return wire.frame("p", self._random.choice((body, self._bytes(30), b"c=biws,r=x,p=QUJD")))

    def _bend_inside(self, raw: bytes) -> bytes:
        """One frame, as it is or with a bent body, its length still right: the stream goes on."""
        self.frames += 1
        if self._random.random() < 0.7 or len(raw) == 5:
            return raw
        kind = self._random.choice(("flip", "cut", "put in", "number"))
        self.bent[f"{kind} inside"] += 1
        return wire.frame(chr(raw[0]), self._bent(raw[5:], kind))

    def _bend(self, raw: bytes) -> bytes:
        """One frame, as it is or bent anywhere: what follows may not be told from it."""
        self.frames += 1
        if self._random.random() < 0.4:
            return raw
        kind = self._random.choice(("flip", "cut", "put in", "length", "kind", "noise"))
        self.bent[kind] += 1
        match kind:
            case "length":
                return raw[:1] + struct.pack(">i", self._random.choice(_LENGTHS)) + raw[5:]
            case "kind":
                return bytes([self._random.randrange(256)]) + raw[1:]
            case "noise":
                return self._bytes(60)
        return self._bent(raw, kind)

    def _bent(self, raw: bytes, kind: str) -> bytes:
        at = self._random.randrange(len(raw))
        match kind:
            case "flip":
                return raw[:at] + bytes([raw[at] ^ 1 << self._random.randrange(8)]) + raw[at + 1 :]
            case "cut":
                return raw[:at]
            case "put in":
                return raw[:at] + self._bytes(20) + raw[at:]
        number = struct.pack(">i", self._random.choice(_LENGTHS))
        number = number[-2:] if self._random.random() < 0.5 else number
        return raw[:at] + number[: len(raw) - at] + raw[at + len(number) :]

    def _bytes(self, count_max: int) -> bytes:
        return self._random.randbytes(self._random.randrange(1, count_max))

    def _pieces(self, stream: bytes) -> Iterator[bytes]:
        while stream:
            count = self._random.choice((1, 3, 17, 200, PIECE_BYTES_MAX))
            yield stream[:count]
            stream = stream[count:]
