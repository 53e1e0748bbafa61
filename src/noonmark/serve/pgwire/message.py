"""What a client says, as values.

Law (total): `parse` of any kind and any bytes gives a message or raises `ProtocolViolation`, and
nothing else; it takes no memory beyond a small multiple of the body. Counts are checked against the
bytes that are there before anything of that many is made.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from msgspec import Struct

from noonmark.errors import ProtocolViolation

PROTOCOL = 3 << 16
CANCEL_REQUEST, SSL_REQUEST, GSSENC_REQUEST = 80877102, 80877103, 80877104

_INT2, _UINT2, _INT4 = struct.Struct(">h"), struct.Struct(">H"), struct.Struct(">i")


class Query(Struct, frozen=True):
    """Run every statement of a text."""

    text: str


class Parse(Struct, frozen=True):
    """Prepare a statement; an oid of 0 leaves the parameter's type open."""

    name: str
    text: str
    oids: tuple[int, ...]


class Bind(Struct, frozen=True):
    """Make a portal of a prepared statement and values."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: list[bytes | None]
    result_formats: tuple[int, ...]


class Describe(Struct, frozen=True):
    """Ask what a statement (``S``) or a portal (``P``) takes and gives."""

    what: str
    name: str


class Execute(Struct, frozen=True):
    """Run a portal, for at most so many rows; 0 = all."""

    portal: str
    rows_max: int


class Close(Struct, frozen=True):
    """Forget a statement (``S``) or a portal (``P``)."""

    what: str
    name: str


class Flush(Struct, frozen=True):
    """Send what there is."""


class Sync(Struct, frozen=True):
    """The end of a pipeline."""


class Terminate(Struct, frozen=True):
    """Goodbye."""


class FunctionCall(Struct, frozen=True):
    """A call by oid, of old: refused."""


class CopyData(Struct, frozen=True):
    """Some bytes of a COPY."""

    data: bytes


class CopyDone(Struct, frozen=True):
    """The end of a COPY."""


class CopyFail(Struct, frozen=True):
    """A COPY that the client gives up."""

    reason: str


Message = (
    Query | Parse | Bind | Describe | Execute | Close | Flush | Sync | Terminate
    | FunctionCall | CopyData | CopyDone | CopyFail
)  # fmt: skip


class StartUp(Struct, frozen=True):
    """Who comes, and what they ask for: user, database, settings."""

    minor: int
    parameters: dict[str, str]


class CancelRequest(Struct, frozen=True):
    """Cancel what another connection does."""

    id: int
    secret: int


class _Body:
    """A cursor over a body that refuses to read past its end."""

    __slots__ = ("at", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def text(self) -> str:
        end = self.raw.find(0, self.at)
        if end < 0:
            raise ProtocolViolation("invalid string in message: it has no end")
        piece, self.at = self.raw[self.at : end], end + 1
        return _utf8(piece)

    def int2(self) -> int:
        self._need(2)
        (number,) = _UINT2.unpack_from(self.raw, self.at)
        self.at += 2
        return int(number)

    def int4(self) -> int:
        self._need(4)
        (number,) = _INT4.unpack_from(self.raw, self.at)
        self.at += 4
        return int(number)

    def numbers(self, size: int, code: str) -> tuple[int, ...]:
        """A count, then so many numbers."""
        count = self.int2()
        self._need(count * size)
        found = struct.unpack_from(f">{count}{code}", self.raw, self.at)
        self.at += count * size
        return found

    def end(self) -> None:
        if self.at != len(self.raw):
            raise ProtocolViolation("invalid message format: there is more than the message has")

    def _need(self, count: int) -> None:
        if count > len(self.raw) - self.at:
            raise ProtocolViolation("insufficient data left in message")


def parse(kind: int, raw: bytes) -> Message:
    """The message of a frame."""
    reader = _PARSERS.get(kind)
    if reader is None:
        raise ProtocolViolation(f"invalid frontend message type {kind}", kind=kind)
    try:
        return reader(raw)
    except struct.error:
        raise ProtocolViolation("insufficient data left in message") from None
    except UnicodeDecodeError as error:
        raise _not_utf8(error) from None


def _utf8(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(error) from None


def _not_utf8(error: UnicodeDecodeError) -> ProtocolViolation:
    return ProtocolViolation("invalid byte sequence for encoding UTF8", detail=str(error))


def _too_long() -> ProtocolViolation:
    return ProtocolViolation("invalid message format: there is more than the message has")


def _parse_query(raw: bytes) -> Query:
    return Query(_only_text(raw, 0))


def _only_text(raw: bytes, begin: int) -> str:
    """The text that is all of the message from `begin` on."""
    end = raw.find(0, begin)
    if end < 0:
        raise ProtocolViolation("invalid string in message: it has no end")
    if end + 1 != len(raw):
        raise _too_long()
    return raw[begin:end].decode()


def _parse_parse(raw: bytes) -> Parse:
    body = _Body(raw)
    message = Parse(body.text(), body.text(), body.numbers(4, "I"))
    body.end()
    return message


# These two come with every execution of a prepared statement: without a cursor, for speed.


def _parse_bind(raw: bytes) -> Bind:
    middle = raw.find(0)
    at = raw.find(0, middle + 1) + 1
    if middle < 0 or not at:
        raise ProtocolViolation("invalid string in message: it has no end")
    portal, statement = raw[:middle].decode(), raw[middle + 1 : at - 1].decode()
    formats, at = _formats(raw, at)
    (count,) = _UINT2.unpack_from(raw, at)
    at += 2
    values: list[bytes | None] = []
    for _ in range(count):
        (length,) = _INT4.unpack_from(raw, at)
        at += 4
        if length == -1:
            values.append(None)
            continue
        if not 0 <= length <= len(raw) - at:
            raise ProtocolViolation(f"invalid length {length} of a value in bind message")
        values.append(raw[at : at + length])
        at += length
    results, at = _formats(raw, at)
    if at != len(raw):
        raise _too_long()
    return Bind(portal, statement, formats, values, results)


def _formats(raw: bytes, at: int) -> tuple[tuple[int, ...], int]:
    (count,) = _UINT2.unpack_from(raw, at)
    if count == 0:
        return (), at + 2
    if count == 1:
        return _INT2.unpack_from(raw, at + 2), at + 4
    return struct.unpack_from(f">{count}h", raw, at + 2), at + 2 + 2 * count


def _parse_execute(raw: bytes) -> Execute:
    end = raw.find(0)
    if end < 0 or end + 5 != len(raw):
        raise ProtocolViolation("invalid message format: not a portal and a number of rows")
    return Execute(raw[:end].decode(), _INT4.unpack_from(raw, end + 1)[0])


def _what(raw: bytes) -> str:
    what = chr(raw[0]) if raw else ""
    if what not in ("S", "P"):
        raise ProtocolViolation(f"invalid message subtype {what!r}: it is neither S nor P")
    return what


def _empty(raw: bytes, message: Message) -> Message:
    if raw:
        raise _too_long()
    return message


_FLUSH, _SYNC, _TERMINATE, _COPY_DONE = Flush(), Sync(), Terminate(), CopyDone()

_PARSERS: dict[int, Callable[[bytes], Message]] = {
    ord("Q"): _parse_query,
    ord("P"): _parse_parse,
    ord("B"): _parse_bind,
    ord("D"): lambda raw: Describe(_what(raw), _only_text(raw, 1)),
    ord("E"): _parse_execute,
    ord("C"): lambda raw: Close(_what(raw), _only_text(raw, 1)),
    ord("H"): lambda raw: _empty(raw, _FLUSH),
    ord("S"): lambda raw: _empty(raw, _SYNC),
    ord("X"): lambda raw: _empty(raw, _TERMINATE),
    ord("F"): lambda _: FunctionCall(),
    ord("d"): CopyData,
    ord("c"): lambda raw: _empty(raw, _COPY_DONE),
    ord("f"): lambda raw: CopyFail(_only_text(raw, 0)),
}


def parse_start(code: int, raw: bytes) -> StartUp | CancelRequest:
    """What a frame without a kind asks for, other than encryption."""
    body = _Body(raw)
    if code == CANCEL_REQUEST:
        request = CancelRequest(body.int4() & 0xFFFFFFFF, body.int4() & 0xFFFFFFFF)
        body.end()
        return request
    if code >> 16 != PROTOCOL >> 16:
        raise ProtocolViolation(
            f"unsupported frontend protocol {code >> 16}.{code & 0xFFFF}: server supports 3.0"
        )
    parameters: dict[str, str] = {}
    while name := body.text():
        parameters[name] = body.text()
    body.end()
    return StartUp(code & 0xFFFF, parameters)


def parse_sasl_initial(raw: bytes) -> tuple[str, bytes]:
    """The mechanism that the client chose and its first words."""
    body = _Body(raw)
    mechanism = body.text()
    length = body.int4()
    data = raw[body.at :]
    if length != len(data) and not (length == -1 and not data):
        raise ProtocolViolation("malformed SASL message: its length is not that of its data")
    return mechanism, data
