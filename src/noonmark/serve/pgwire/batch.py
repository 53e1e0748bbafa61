"""Executions that come in one piece: Bind, perhaps Describe, Execute and Sync.

Drivers send each execution of a prepared statement as three or four messages in one packet, and
all of it but the values is the same each time. Once an execution was answered message by message,
without waiting, the next one that differs in its values alone is known by its bytes:

    the Bind     unnamed portal, statement, formats │ values │ formats of the result
    the rest     [Describe the unnamed portal,] Execute it whole, Sync: nothing behind them

Law (same): the values that `Batches.find` gives are those that `decode_parameters` gives for the
Bind, and the execution is that of the statement that has its name now. Where a value, a length or
a name is not what it was, there is none, and the messages are taken one by one.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from noonmark.errors import NoonmarkError
from noonmark.rows import types as t
from noonmark.rows.postgres import decode_binary, decode_text
from noonmark.serve.beside import CHARACTERS_MAX
from noonmark.serve.pgwire import message as m
from noonmark.serve.pgwire import reply
from noonmark.serve.pgwire.codec import BINARY, PARAMETERS, spread
from noonmark.serve.pgwire.statements import Formats, Names, Statement

#: How many kinds of executions a connection knows.
KNOWN_MAX = 64
#: The length of a Sync, the last of the messages.
SYNC_BYTES = 5

_DESCRIBE, _EXECUTE, _SYNC = b"D\0\0\0\6P\0", b"E\0\0\0\x09\0\0\0\0\0", b"S\0\0\0\4"
#: What may stand behind a Bind; whether the client asks for the columns.
_RESTS = {_EXECUTE + _SYNC: False, _DESCRIBE + _EXECUTE + _SYNC: True}

Decode = Callable[[bytes], Any]
Values = tuple[Any, ...]
_WHOLE_BYTES: dict[type[t.SqlType], int] = {t.SmallInt: 2, t.Integer: 4, t.BigInt: 8}


class Execution:
    """An execution that was answered once.

    Attributes:
        statement: what is run.
        formats: of the columns of its result.
        bind: that Bind, without its values.
        bound: the answer to the Bind alone, and to Bind and Describe.
        encode: rows as messages.
    """

    __slots__ = (
        "_decoders", "_end", "bind", "bound", "encode", "formats", "is_long", "name", "statement",
        "zone",
    )  # fmt: skip

    def __init__(self, bind: m.Bind, statement: Statement, zone: dt.tzinfo) -> None:
        # Without its values: they may be long, and are others each time.
        self.bind = m.Bind(bind.portal, bind.statement, bind.formats, [], bind.result_formats)
        self.name, self.statement, self.zone = bind.statement, statement, zone
        self.formats: Formats = statement.formats(bind.result_formats)
        encoder = statement.encoder(self.formats, zone)
        self.encode, self.is_long = encoder.encode, encoder.is_long
        described = statement.description(self.formats)
        self.bound = (reply.BIND_COMPLETE, reply.BIND_COMPLETE + described)
        types = statement.prepared.parameters
        forms = spread(bind.formats, len(types), PARAMETERS)
        pairs = zip(types, forms, strict=True)
        self._decoders = [_decoder(kind, form, zone) for kind, form in pairs]
        self._end = _formats(bind.result_formats)

    def values(self, raw: bytes, at: int) -> Values | None:
        """The values of a Bind that begin there; None where it is not such a Bind."""
        found: list[Any] = []
        for decode in self._decoders:
            length = int.from_bytes(raw[at : at + 4], "big")
            at += 4
            if length == _NULL_LENGTH:
                found.append(None)
                continue
            found.append(decode(raw[at : at + length]))
            at += length
        return tuple(found) if raw[at:] == self._end else None


_NULL_LENGTH = 0xFFFFFFFF


class Batches:
    """The executions that one connection is known for."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[bytes, Execution] = {}

    def learn(self, bind: m.Bind, statement: Statement, zone: dt.tzinfo) -> None:
        """An execution was answered, of the unnamed portal, whole, without waiting."""
        head = _head(bind)
        if head not in self._known and len(self._known) >= KNOWN_MAX:
            self._known.pop(next(iter(self._known)))
        self._known[head] = Execution(bind, statement, zone)

    def find(
        self, raw: bytes, rest: bytes, zone: dt.tzinfo
    ) -> tuple[Execution, Values, bool] | None:
        """The execution that a Bind and what follows it ask for: its values, and if described."""
        described = _RESTS.get(rest)
        if described is None or len(raw) > CHARACTERS_MAX:
            return None
        end = (
            raw.find(0, 1) + 1
        )  # of the statement's name; the portal has none, or nothing is known
        at = end + 4 + 2 * int.from_bytes(raw[end : end + 2], "big")
        known = self._known.get(raw[:at])
        if known is None or known.zone is not zone:
            return None
        if self._names.now(known.name) is not known.statement:
            return None
        try:
            values = known.values(raw, at)
        except (NoonmarkError, struct.error):
            return None  # whoever takes the message apart says what is wrong with it
        return None if values is None else (known, values, described)


def _head(bind: m.Bind) -> bytes:
    """The bytes of a Bind of the unnamed portal before its values."""
    count = struct.pack(">H", len(bind.values))
    return b"\0" + bind.statement.encode() + b"\0" + _formats(bind.formats) + count


def _formats(formats: Sequence[int]) -> bytes:
    return struct.pack(f">H{len(formats)}h", len(formats), *formats)


def _decoder(kind: t.SqlType, form: int, zone: dt.tzinfo) -> Decode:
    """Reads a value that is not NULL."""
    if form == BINARY:
        size = _WHOLE_BYTES.get(type(kind))
        general = partial(decode_binary, sql_type=kind)
        return general if size is None else partial(_whole, size, general)
    return lambda raw: decode_text(raw, kind, zone)


def _whole(size: int, general: Decode, raw: bytes) -> Any:
    """A whole number in binary form."""
    return int.from_bytes(raw, "big", signed=True) if len(raw) == size else general(raw)
