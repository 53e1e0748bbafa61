"""The data of a COPY: rows to bytes and back, in PostgreSQL's three formats.

Law (round trip): decoding what was encoded gives the rows, whatever the pieces in which the bytes
arrive. Data that are no rows of these columns raise `BadCopyData`, with the line.

Text: a line per row; a field that is the NULL marker, before any escape is undone, is NULL. CSV: a
field that is the marker and was not quoted is NULL. Binary: a signature, then each row as the
number of its fields and each field with its length.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from noonmark.adapter.contract import CopyFormat, Row
from noonmark.errors import BadCopyData, InvalidValue
from noonmark.rows import types as t
from noonmark.rows.pg.text import formatter, parse_value
from noonmark.rows.postgres import decode_binary
from noonmark.serve.pgwire.codec import BINARY, NULL, framed
from noonmark.serve.pgwire.copy_lines import CsvLines, TextLines, escape_text, quote_csv

_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEADER = _SIGNATURE + struct.pack(">ii", 0, 0)
_TRAILER = struct.pack(">h", -1)
_FIELDS, _LENGTH = struct.Struct(">h"), struct.Struct(">i")
#: Of these types no text has a character that the text format escapes.
_UNESCAPED = (t.Boolean, t.SmallInt, t.Integer, t.BigInt, t.Numeric, t.Real, t.Double)
#: One row, before it is whole, may not take more than this.
ROW_BYTES_MAX = 256 << 20


class Encoder(Protocol):
    """Rows to the client."""

    def begin(self, names: Sequence[str]) -> bytes:
        """What comes before the rows."""

    def encode(self, row: Row) -> bytes:
        """One row, to be sent as one message."""

    def end(self) -> bytes:
        """What comes after the rows."""


class Decoder(Protocol):
    """Rows from the client."""

    def decode(self, data: bytes) -> list[Row]:
        """The rows that are whole now."""

    def end(self) -> list[Row]:
        """The rest, once the client has sent all."""

    @property
    def is_between_rows(self) -> bool:
        """Whether the next byte begins a row, like any other row."""

    def skipped(self, count: int) -> None:
        """So many rows were made by somebody else."""


def encoder(form: CopyFormat, sql_types: Sequence[t.SqlType], zone: dt.tzinfo) -> Encoder:
    """How rows go out."""
    if form.kind == "binary":
        return _BinaryEncoder(sql_types, zone)
    return _LineEncoder(form, sql_types, zone)


def decoder(
    form: CopyFormat,
    sql_types: Sequence[t.SqlType],
    zone: dt.tzinfo,
    names: Sequence[str] = (),
) -> Decoder:
    """How rows come in; `names` are for errors."""
    if form.kind == "binary":
        return _BinaryDecoder(sql_types)
    return _LineDecoder(form, sql_types, zone, names)


class _LineEncoder:
    def __init__(self, form: CopyFormat, sql_types: Sequence[t.SqlType], zone: dt.tzinfo) -> None:
        self._form = form
        self._write = quote_csv if form.kind == "csv" else escape_text
        self._alone = len(sql_types) == 1
        self._cells = [self._cell(each, zone) for each in sql_types]

    def _cell(self, sql_type: t.SqlType, zone: dt.tzinfo) -> Callable[[Any], str]:
        """How a column's values are written."""
        show, write, form, alone = formatter(sql_type, zone), self._write, self._form, self._alone
        if form.kind == "text" and form.delimiter == "\t" and isinstance(sql_type, _UNESCAPED):
            return show
        return lambda value: write(show(value), form, alone)

    def begin(self, names: Sequence[str]) -> bytes:
        return self._line(names) if self._form.header else b""

    def encode(self, row: Row) -> bytes:
        null, pairs = self._form.null, zip(self._cells, row, strict=True)
        cells = [null if value is None else cell(value) for cell, value in pairs]
        return (self._form.delimiter.join(cells) + "\n").encode()

    def end(self) -> bytes:
        return b""

    def _line(self, texts: Sequence[str]) -> bytes:
        cells = [self._write(text, self._form, self._alone) for text in texts]
        return (self._form.delimiter.join(cells) + "\n").encode()


class _LineDecoder:
    def __init__(
        self,
        form: CopyFormat,
        sql_types: Sequence[t.SqlType],
        zone: dt.tzinfo,
        names: Sequence[str],
    ) -> None:
        self._types, self._zone, self._names = sql_types, zone, names
        self._lines = (CsvLines if form.kind == "csv" else TextLines)(form, ROW_BYTES_MAX)
        self._header = form.header
        self._number = 0

    def decode(self, data: bytes) -> list[Row]:
        return self._rows(self._lines.feed(data))

    def end(self) -> list[Row]:
        return self._rows(self._lines.end())

    @property
    def is_between_rows(self) -> bool:
        return not self._header and self._lines.is_between_lines

    def skipped(self, count: int) -> None:
        self._number += count

    def _rows(self, lines: list[list[str | None]]) -> list[Row]:
        rows = []
        for cells in lines:
            self._number += 1
            if self._header:
                self._header = False
                continue
            rows.append(self._row(cells))
        return rows

    def _row(self, cells: list[str | None]) -> Row:
        if len(cells) != len(self._types):
            few = len(cells) < len(self._types)
            at = len(cells)
            missing = f'column "{self._names[at]}"' if at < len(self._names) else "a column"
            raise BadCopyData(
                f"missing data for {missing}" if few else "extra data after last expected column",
                detail=f"Line {self._number} has {len(cells)} fields, not {len(self._types)}.",
            )
        try:
            return tuple(
                None if cell is None else parse_value(cell, sql_type, self._zone)
                for cell, sql_type in zip(cells, self._types, strict=True)
            )
        except InvalidValue as error:
            where = f"COPY, line {self._number}."
            detail = f"{error.detail} {where}" if error.detail else where
            raise InvalidValue(error.message, detail=detail, hint=error.hint) from None


class _BinaryEncoder:
    def __init__(self, sql_types: Sequence[t.SqlType], zone: dt.tzinfo) -> None:
        self._columns = [framed(sql_type, BINARY, zone) for sql_type in sql_types]
        self._count = _FIELDS.pack(len(self._columns))

    def begin(self, names: Sequence[str]) -> bytes:  # noqa: ARG002 - binary has no names
        return _HEADER

    def encode(self, row: Row) -> bytes:
        pairs = zip(self._columns, row, strict=True)
        return self._count + b"".join(
            [NULL if value is None else encode(value) for encode, value in pairs]
        )

    def end(self) -> bytes:
        return _TRAILER


class _BinaryDecoder:
    def __init__(self, sql_types: Sequence[t.SqlType]) -> None:
        self._types = sql_types
        self._buffer = bytearray()
        self._begun = False
        self._ended = False
        self._number = 0

    def decode(self, data: bytes) -> list[Row]:
        self._buffer += data
        if not self._begun and not self._begin():
            return []
        rows: list[Row] = []
        at = 0
        raw = bytes(self._buffer)
        while not self._ended and (found := self._row(raw, at)) is not None:
            row, at = found
            if row is not None:
                rows.append(row)
        if self._ended and at < len(raw):
            raise BadCopyData("received copy data after EOF marker")
        del self._buffer[:at]
        if len(self._buffer) > ROW_BYTES_MAX:
            raise BadCopyData(f"row {self._number + 1} is longer than {ROW_BYTES_MAX} bytes")
        return rows

    def end(self) -> list[Row]:
        if not self._ended and (self._buffer or not self._begun):
            raise BadCopyData("unexpected EOF in COPY data")
        return []

    @property
    def is_between_rows(self) -> bool:
        return self._begun and not self._ended and not self._buffer

    def skipped(self, count: int) -> None:
        self._number += count

    def _begin(self) -> bool:
        """The signature, flags and an extension that is skipped."""
        known = bytes(self._buffer[: len(_SIGNATURE)])
        if known != _SIGNATURE[: len(known)]:
            raise BadCopyData("COPY file signature not recognized")
        if len(self._buffer) < len(_HEADER):
            return False
        flags, extension = struct.unpack_from(">ii", self._buffer, len(_SIGNATURE))
        if flags & 0xFFFF0000:
            raise BadCopyData("invalid COPY file header: it has flags that are not known")
        if not 0 <= extension <= ROW_BYTES_MAX:
            raise BadCopyData("invalid COPY file header: wrong length")
        if len(self._buffer) < len(_HEADER) + extension:
            return False
        del self._buffer[: len(_HEADER) + extension]
        self._begun = True
        return True

    def _row(self, raw: bytes, at: int) -> tuple[Row | None, int] | None:
        """A row, or the end (as None), and where it ends; None while it is not whole."""
        if len(raw) - at < 2:
            return None
        (count,) = _FIELDS.unpack_from(raw, at)
        at += 2
        if count == -1:
            self._ended = True
            return None, at
        if count != len(self._types):
            raise BadCopyData(
                f"row field count is {count}, expected {len(self._types)}",
                detail=f"Row {self._number + 1}.",
            )
        values: list[Any] = []
        for sql_type in self._types:
            if len(raw) - at < 4:
                return None
            (length,) = _LENGTH.unpack_from(raw, at)
            at += 4
            if length == -1:
                values.append(None)
                continue
            if not 0 <= length <= ROW_BYTES_MAX:
                raise BadCopyData("invalid field size", detail=f"Row {self._number + 1}.")
            if len(raw) - at < length:
                return None
            values.append(decode_binary(raw[at : at + length], sql_type))
            at += length
        self._number += 1
        return tuple(values), at
