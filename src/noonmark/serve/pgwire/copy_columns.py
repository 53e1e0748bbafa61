"""The data of a COPY, column by column: what is ordinary, as Arrow tables instead of rows.

Law (same): where `decode` gives a table, its rows are those that `copy.decoder` makes of the bytes;
where it gives None, the rows have to be made one by one: there the bytes hold something that is
seldom (escapes, quotes, another type's spelling) or wrong, and only the exact way says what.

Where it runs: threads beside the loop; pure.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from noonmark.adapter.contract import CopyFormat
from noonmark.rows import types as t
from noonmark.source.format.convert import from_texts

#: Types whose texts mean the same in every session, and need nothing done to them afterwards.
_PLAIN = (
    t.Boolean, t.SmallInt, t.Integer, t.BigInt, t.Real, t.Double, t.Numeric, t.Text, t.Varchar,
    t.Date, t.Timestamp, t.Time, t.Uuid, t.Jsonb, t.Bytea,
)  # fmt: skip
#: What makes a block a case for the exact way, wherever it stands.
_SELDOM = {"text": (b"\r", b"\0"), "csv": (b"\r", b"\0", b"\\")}


class Columns:
    """Blocks of whole lines as tables of columns of these types."""

    def __init__(self, form: CopyFormat, sql_types: Sequence[t.SqlType], zone: dt.tzinfo) -> None:
        self._form, self._types = form, tuple(sql_types)
        self._names = [str(at) for at in range(len(self._types))]
        quote = (form.quote.encode(),) if form.kind == "csv" else ()
        self._seldom = (*_SELDOM.get(form.kind, ()), *quote)
        same_zone = zone.utcoffset(None) == dt.timedelta(0)
        plain = (*_PLAIN, t.TimestampTz) if same_zone else _PLAIN
        #: Whether there is anything that `decode` could do.
        self.can = (
            form.kind != "binary"
            and len(self._types) > 1
            and all(isinstance(each, plain) for each in self._types)
        )

    def decode(self, lines: bytes) -> pa.Table | None:
        """The rows of lines that each end in a line break; None where that is not for columns."""
        if not self.can or any(mark in lines for mark in self._seldom):
            return None
        if lines[:1] == b"\n" or b"\n\n" in lines:  # Arrow takes an empty line for a whole row
            return None
        try:
            cells = self._cells(lines)
        except pa.ArrowException:
            return None
        arrays = []
        for column, sql_type in zip(cells.columns, self._types, strict=True):
            texts = self._texts(column.combine_chunks())
            if texts is None:
                return None
            array, reasons = from_texts(texts, sql_type)
            if reasons:
                return None
            arrays.append(array)
        return pa.table(arrays, self._names)

    def _cells(self, lines: bytes) -> pa.Table:
        """Every cell as its text; of invalid UTF-8 Arrow makes an error."""
        return pyarrow.csv.read_csv(
            pa.BufferReader(lines),
            pyarrow.csv.ReadOptions(
                use_threads=False, block_size=len(lines), column_names=self._names
            ),
            pyarrow.csv.ParseOptions(
                delimiter=self._form.delimiter, quote_char=False, ignore_empty_lines=False
            ),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(self._names, pa.string()), strings_can_be_null=False
            ),
        )

    def _texts(self, cells: pa.Array) -> pa.Array | None:
        """The cells with NULLs; None where one has an escape."""
        absent = pc.equal(cells, self._form.null)
        if pc.any(absent).as_py():
            cells = pc.if_else(absent, pa.scalar(None, pa.string()), cells)
        if self._form.kind == "text" and pc.any(pc.match_substring(cells, "\\")).as_py():
            return None
        return cells
