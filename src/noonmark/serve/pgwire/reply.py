"""What the server says, as bytes: one function or constant per message.

A message is its kind, the length of the rest and the rest. Text is UTF-8 and ends with a zero byte;
what would hold a zero byte inside is cut there, so that no text can begin a message of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from noonmark.adapter.contract import Notice, TransactionStatus
from noonmark.errors import NoonmarkError

_HEAD = struct.Struct(">ci")

PARSE_COMPLETE = b"1\0\0\0\4"
BIND_COMPLETE = b"2\0\0\0\4"
CLOSE_COMPLETE = b"3\0\0\0\4"
NO_DATA = b"n\0\0\0\4"
EMPTY_QUERY = b"I\0\0\0\4"
PORTAL_SUSPENDED = b"s\0\0\0\4"
COPY_DONE = b"c\0\0\0\4"
AUTHENTICATION_OK = b"R\0\0\0\x08\0\0\0\0"

_READY: Mapping[TransactionStatus, bytes] = {
    "idle": b"Z\0\0\0\5I",
    "open": b"Z\0\0\0\5T",
    "failed": b"Z\0\0\0\5E",
}
# Typed fields of an error that PostgreSQL's protocol has a letter for.
_NAMED = (("schema", b"s"), ("table", b"t"), ("column", b"c"), ("datatype", b"d"),
          ("constraint", b"n"))  # fmt: skip


def frame(kind: bytes, body: bytes) -> bytes:
    """One message."""
    return _HEAD.pack(kind, len(body) + 4) + body


def cstring(text: str) -> bytes:
    """Text with the zero byte that ends it."""
    raw = text.encode(errors="replace")
    return raw.partition(b"\0")[0] + b"\0"


def ready_for_query(status: TransactionStatus) -> bytes:
    """The server waits; where the transaction stands."""
    return _READY[status]


def sasl(mechanisms: Iterable[str]) -> bytes:
    """Prove who you are, in one of these ways."""
    names = b"".join(map(cstring, mechanisms))
    return frame(b"R", struct.pack(">i", 10) + names + b"\0")


def sasl_continue(data: bytes) -> bytes:
    """The challenge."""
    return frame(b"R", struct.pack(">i", 11) + data)


def sasl_final(data: bytes) -> bytes:
    """The server's own proof."""
    return frame(b"R", struct.pack(">i", 12) + data)


def negotiate_protocol_version(minor: int, unknown: Sequence[str]) -> bytes:
    """The newest minor version here, and the options that are not known."""
    names = b"".join(map(cstring, unknown))
    return frame(b"v", struct.pack(">ii", minor, len(unknown)) + names)


def notification_response(sender: int, channel: str, payload: str) -> bytes:
    """What another session, or this one, notified."""
    return frame(b"A", struct.pack("!i", sender) + cstring(channel) + cstring(payload))


def parameter_status(name: str, value: str) -> bytes:
    """A setting and its value."""
    return frame(b"S", cstring(name) + cstring(value))


def backend_key_data(id: int, secret: int) -> bytes:
    """What a request to cancel must bring."""
    return frame(b"K", struct.pack(">II", id & 0xFFFFFFFF, secret & 0xFFFFFFFF))


def parameter_description(oids: Sequence[int]) -> bytes:
    """The types of a statement's parameters."""
    return frame(b"t", struct.pack(f">H{len(oids)}I", len(oids), *oids))


def command_complete(tag: str) -> bytes:
    """What was done."""
    return frame(b"C", tag.encode() + b"\0")


def copy_response(kind: Literal[b"G", b"H"], binary: bool, columns: int) -> bytes:
    """The client is to send (``G``) or to take (``H``) the data of a COPY."""
    formats = [int(binary)] * columns
    return frame(kind, struct.pack(f">bH{columns}h", int(binary), columns, *formats))


def error_response(
    error: NoonmarkError, severity: str = "ERROR", position: int | None = None
) -> bytes:
    """An error with all that is known of it; `position` counts characters of the client's text."""
    fields = [
        *_common(severity, error.sqlstate, error.message, error.detail, error.hint),
        *((b"P" + cstring(str(position)),) if position is not None else ()),
    ]
    for name, letter in _NAMED:
        value = error.fields.get(name)
        if isinstance(value, str):
            fields.append(letter + cstring(value))
    return frame(b"E", b"".join(fields) + b"\0")


def notice_response(notice: Notice) -> bytes:
    """Something to know that is no error."""
    fields = _common(notice.severity, notice.sqlstate, notice.message, notice.detail, notice.hint)
    return frame(b"N", b"".join(fields) + b"\0")


def _common(
    severity: str, sqlstate: str, message: str, detail: str | None, hint: str | None
) -> list[bytes]:
    """The severity comes twice: translated, and for programs."""
    pairs = ((b"S", severity), (b"V", severity), (b"C", sqlstate), (b"M", message))
    more = ((b"D", detail), (b"H", hint))
    return [letter + cstring(text) for letter, text in (*pairs, *more) if text]
