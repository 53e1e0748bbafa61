"""The data of a COPY, column by column: what is ordinary, as Arrow tables instead of rows.

Law (same): where `decode` gives a table, its rows are those that `copy.decoder` makes of the bytes;
where it gives none, the rows have to be made one by one: there the bytes hold something that is
seldom (quotes inside of a cell, another type's spelling) or wrong, and only the exact way says
what.

Where it runs: threads beside the loop; pure.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from noonmark.adapter.contract import CopyFormat
from noonmark.errors import BadCopyData
from noonmark.rows import types as t
from noonmark.serve.pgwire.copy_lines import unescape
from noonmark.source.format.convert import from_texts

#: Types whose texts mean the same in every session, and need nothing done to them afterwards.
_PLAIN = (
    t.Boolean, t.SmallInt, t.Integer, t.BigInt, t.Real, t.Double, t.Numeric, t.Text, t.Varchar,
    t.Date, t.Timestamp, t.Time, t.Uuid, t.Jsonb, t.Json, t.Bytea,
)  # fmt: skip
#: Of the order of bytes, which UTF-8 has no need of.
_MARK = b"\xef\xbb\xbf"


class Columns:
    """Blocks of lines as tables of columns of these types."""

    def __init__(self, form: CopyFormat, sql_types: Sequence[t.SqlType], zone: dt.tzinfo) -> None:
        self._form, self._types = form, tuple(sql_types)
        self._names = [str(at) for at in range(len(self._types))]
        self._delimiter, self._quote = form.delimiter.encode(), form.quote.encode()
        same_zone = zone.utcoffset(None) == dt.timedelta(0)
        plain = (*_PLAIN, t.TimestampTz) if same_zone else _PLAIN
        #: Whether there is anything that `decode` could do.
        self.can = (
            form.kind != "binary"
            and len(self._types) > 1
            and form.delimiter not in (form.quote, "\\")
            and all(isinstance(each, plain) for each in self._types)
        )

    def opening(self, data: bytes) -> int:
        """How many bytes end the line that others have begun, or that is a header."""
        return data.find(b"\n") + 1

    def decode(self, data: bytes) -> tuple[int, pa.Table | None]:
        """How many bytes are whole lines, and their rows; None where they are not for columns."""
        quotes = _Quotes(data, self._form) if self._may_quote(data) else None
        end = data.rfind(b"\n") + 1 if quotes is None else quotes.end
        lines = data if end == len(data) else data[:end]
        if not end or not self.can or (quotes is not None and not quotes.are_plain):
            return end, None
        plain = self._plain(lines, quotes is not None and quotes.hold_breaks)
        return end, None if plain is None else self._table(plain, quotes is not None)

    def _may_quote(self, data: bytes) -> bool:
        return self._form.kind == "csv" and self._quote in data

    def _plain(self, lines: bytes, hold_breaks: bool) -> bytes | None:
        """The lines as Arrow reads them; None where it would read them otherwise."""
        if b"\r" in lines:
            # A carriage return belongs to the line break, or to a cell.
            if hold_breaks or lines.count(b"\r") != lines.count(b"\r\n"):
                return None
            lines = lines.replace(b"\r\n", b"\n")
        if b"\0" in lines or lines.startswith(b"\n") or b"\n\n" in lines:
            return None  # Arrow takes an empty line for a whole row
        if b"\\" in lines and (lines.startswith(b"\\.\n") or b"\n\\.\n" in lines):
            return None  # the end of the data
        if lines.startswith(_MARK):
            return None  # Arrow leaves it out
        if self._form.kind == "text" and (b"\\\n" in lines or b"\\" + self._delimiter in lines):
            return None  # what the backslash stands before is not what it seems
        return lines

    def _table(self, lines: bytes, has_quotes: bool) -> pa.Table | None:
        try:
            cells = self._cells(lines, has_quotes)
        except pa.ArrowException:
            return None
        arrays = []
        for column, sql_type in zip(cells.columns, self._types, strict=True):
            texts = column.combine_chunks()
            if self._form.kind == "text" and b"\\" in lines:
                texts = _unescaped(texts)
            if texts is None:
                return None
            array, reasons = from_texts(texts, sql_type)
            if reasons:
                return None
            arrays.append(array)
        return pa.table(arrays, self._names)

    def _cells(self, lines: bytes, has_quotes: bool) -> pa.Table:
        """Every cell as its text, or NULL; of invalid UTF-8 Arrow makes an error."""
        return pyarrow.csv.read_csv(
            pa.BufferReader(lines),
            pyarrow.csv.ReadOptions(
                use_threads=False, block_size=len(lines), column_names=self._names
            ),
            pyarrow.csv.ParseOptions(
                delimiter=self._form.delimiter,
                quote_char=self._form.quote if has_quotes else False,
                newlines_in_values=has_quotes,
                ignore_empty_lines=False,
            ),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(self._names, pa.string()),
                null_values=[self._form.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


class _Quotes:
    """Where the quotes of CSV data are, and whether they are as everybody writes them.

    Outside of a cell in quotes a quote opens one, inside it closes it; two of them inside close and
    open again, which is how a quote is written. They are plain when each opens at the begin of a
    cell and closes at its end: whatever else PostgreSQL takes is for the exact way.
    """

    def __init__(self, data: bytes, form: CopyFormat) -> None:
        raw = np.frombuffer(data, np.uint8)
        places = np.flatnonzero(raw == ord(form.quote))
        breaks = np.flatnonzero(raw == ord("\n"))
        outside = breaks[np.searchsorted(places, breaks) % 2 == 0]
        #: Whether a cell has a line break.
        self.hold_breaks = len(outside) < len(breaks)
        #: Where the last row ends.
        self.end = int(outside[-1]) + 1 if len(outside) else 0
        places = places[places < self.end]
        beside = np.zeros(256, np.bool_)
        beside[[ord(each) for each in (form.delimiter, form.quote, "\n", "\r")]] = True
        opens, closes = places[::2], places[1::2]
        #: Whether Arrow reads them alike.
        self.are_plain = (
            form.escape == form.quote
            and len(opens) == len(closes)
            and bool(beside[raw[opens[opens > 0] - 1]].all())
            and bool(beside[raw[closes + 1]].all())
        )


def _unescaped(cells: pa.Array) -> pa.Array | None:
    """The cells without escapes; None where one has no meaning."""
    escaped = pc.fill_null(pc.match_substring(cells, "\\"), False)
    places = pc.indices_nonzero(escaped)
    if not len(places):
        return cells
    try:
        texts = [unescape(cell) for cell in cells.take(places).to_pylist()]
    except BadCopyData:
        return None
    return pc.replace_with_mask(cells, escaped, pa.array(texts, pa.string()))
