r"""FORMAT CSV: one record per line, fields by position.

A field is anything without a quote, delimiter or line break; or it stands in quotes, and then a
quote inside is doubled. A field with nothing in it is NULL; ``""`` is the empty text. A record with
another number of fields than there are columns is an error, as is a stray quote. A line is a
record: a line break inside quotes is not supported, and shows as an error for both halves.

WITH HEADER: the first record of every partition names the columns; it is no row, and an error
unless its names are those of the columns, in their order.

Law (exact): `Csv.parse` agrees with `exact` on every record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from noonmark.errors import ConfigError
from noonmark.rows.schema import Schema
from noonmark.source.format.convert import (
    Parsed,
    Reasons,
    as_text,
    decode_each,
    from_texts,
    in_blocks,
    joined,
    merge_reasons,
)


@dataclass(frozen=True)
class Csv:
    """See `noonmark.source.format.decode.Format`."""

    schema: Schema
    delimiter: str = ","
    header: bool = False

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n\0':
            raise ConfigError(f"{self.delimiter!r} cannot be a delimiter: it is one character")
        if not len(self.schema):
            raise ConfigError(
                "FORMAT CSV needs columns",
                hint="Name them and their types: CREATE SOURCE s (a int, b text) FROM ...",
            )

    def parse(self, values: pa.Array) -> Parsed:
        """The columns of the records; `values` has no NULL."""
        return in_blocks(values, self._quick, self.exact)

    def exact(self, values: pa.Array) -> Parsed:
        """Record by record: the definition."""
        texts, reasons = decode_each(values)
        rows = [self._fields(text, at, reasons) for at, text in enumerate(texts)]
        columns = zip(*rows, strict=True) if rows else [()] * len(self.schema)
        return self._typed([pa.array(column, pa.string()) for column in columns], reasons)

    def names(self, value: bytes) -> str | None:
        """Why a header is not the one of this schema; None if it is."""
        texts, reasons = decode_each(pa.array([value], pa.binary()))
        fields = self._fields(texts[0], 0, reasons)
        if not reasons and tuple(fields) != self.schema.names:
            found = ", ".join(str(field) for field in fields)
            reasons[0] = f"the header is {found}, not {', '.join(self.schema.names)}"
        return reasons.get(0)

    def _fields(self, text: str | None, at: int, reasons: Reasons) -> list[str | None]:
        width, field = len(self.schema), _field(self.delimiter)
        fields: list[str | None] = []
        place = 0 if text is not None else -1
        while place >= 0:
            assert text is not None
            found = field.match(text, place)
            if found is None:
                reasons[at] = f"a stray quote in field {len(fields) + 1}"
                break
            quoted, plain, delimiter = found.groups()
            fields.append(quoted.replace('""', '"') if quoted is not None else plain or None)
            place = found.end() if delimiter else -1
        if at not in reasons and len(fields) != width:
            reasons[at] = f"{len(fields)} fields, not {width}"
        return [None] * width if at in reasons else fields

    def _quick(self, values: pa.Array) -> list[pa.Array] | None:
        texts = as_text(values)
        if texts is None:
            return None
        lines = joined(texts)
        if lines.count(b"\n") != len(texts) or b"\r" in lines:
            return None
        # Arrow takes a line with nothing in it for a row of NULLs, however many columns there are.
        if len(self.schema) > 1 and pc.min(pc.binary_length(texts)).as_py() == 0:
            return None
        quoted = b'"' in lines
        if quoted and not pc.all(pc.match_substring_regex(texts, self._regular())).as_py():
            return None
        try:
            table = self._read(lines, quoted)
        except pa.ArrowException:
            return None
        if table.num_rows != len(values):
            return None
        parsed = self._typed([column.combine_chunks() for column in table.columns], {})
        return None if parsed.reasons else parsed.columns

    def _regular(self) -> str:
        """Records whose quotes every reader of CSV understands alike."""
        mark = re.escape(self.delimiter)
        field = rf'(?:"(?:[^"]|"")*"|[^"{mark}]*)'
        return f"^{field}(?:{mark}{field})*$"

    def _read(self, lines: bytes, quoted: bool) -> pa.Table:
        names = [str(at) for at in range(len(self.schema))]
        return pyarrow.csv.read_csv(
            pa.BufferReader(lines),
            pyarrow.csv.ReadOptions(
                use_threads=False, block_size=max(1, len(lines)), column_names=names
            ),
            pyarrow.csv.ParseOptions(
                delimiter=self.delimiter,
                quote_char='"' if quoted else False,
                ignore_empty_lines=False,
            ),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _typed(self, texts: list[pa.Array], reasons: Reasons) -> Parsed:
        columns = []
        for column, array in zip(self.schema.columns, texts, strict=True):
            typed, more = from_texts(array, column.type)
            merge_reasons(reasons, more, column.name)
            columns.append(typed)
        return Parsed(columns, reasons)


@cache
def _field(delimiter: str) -> re.Pattern[str]:
    mark = re.escape(delimiter)
    return re.compile(rf'(?:"((?:[^"]|"")*)"|([^"{mark}\n]*))(?:({mark})|\Z)')
