r"""Rows as lines of COPY's text format, the one form that snapshot and stream share.

Fields stand between tabs; ``\N`` is NULL; a backslash, tab or line break inside a value is written
with a backslash. So a line has no line break, and a tab in it always parts two fields. One addition
of ours: ``\u`` is a value that an update left unchanged and the log does not have; COPY itself
never writes it, because it doubles every backslash of a value.

Law (inverse): `fields(line(values)) == values`.
Law (whole): `columns(lines, n)` are the fields of all lines, column by column, still escaped;
`texts` of such a column are the values.

Where it runs: executors; pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from noonmark.rows.schema import Schema
from noonmark.source.format.convert import (
    Parsed,
    Reasons,
    as_text,
    decode_each,
    from_texts,
    merge_reasons,
)
from noonmark.source.impl.postgres.pgoutput import UNCHANGED, Value

NULL, KEPT_MARK = b"\\N", b"\\u"

_SPECIAL = re.compile(rb"[\\\t\n\r]")
_WRITTEN = {b"\\": b"\\\\", b"\t": b"\\t", b"\n": b"\\n", b"\r": b"\\r"}
_ESCAPED = re.compile(r"\\(.)")
_READ = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def line(values: Iterable[Value]) -> bytes:
    """The values of a row as one line."""
    return b"\t".join(map(field, values))


def field(value: Value) -> bytes:
    """One value as a field."""
    if value is None:
        return NULL
    if isinstance(value, bytes):
        if _SPECIAL.search(value):
            return _SPECIAL.sub(lambda found: _WRITTEN[found[0]], value)
        return value
    return KEPT_MARK


def fields(row: bytes) -> list[Value]:
    """The values of a line."""
    return [_value(each) for each in row.split(b"\t")]


def _value(raw: bytes) -> Value:
    if raw == NULL:
        return None
    if raw == KEPT_MARK:
        return UNCHANGED
    if b"\\" not in raw:
        return raw
    return unescape(raw.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def unescape(text: str) -> str:
    """The value of an escaped field."""
    return _ESCAPED.sub(_unescaped, text)


def _unescaped(found: re.Match[str]) -> str:
    return _READ.get(found[1], found[1])


def columns(lines: bytes, width: int) -> list[pa.Array]:
    """The fields of lines that each end in a line break, as binary columns, still escaped."""
    if width <= 1:
        rows = lines.split(b"\n")[:-1]
        return [pa.array(rows, pa.binary())] if width else []
    names = [str(at) for at in range(width)]
    table = pyarrow.csv.read_csv(
        pa.BufferReader(lines),
        pyarrow.csv.ReadOptions(
            use_threads=False, block_size=max(1, len(lines)), column_names=names
        ),
        pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False, ignore_empty_lines=False),
        pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()), strings_can_be_null=False
        ),
    )
    return [column.combine_chunks() for column in table.columns]


def join(parts: Sequence[pa.Array], count: int) -> pa.Array:
    """Columns of escaped fields as lines."""
    if not parts:
        return pa.repeat(pa.scalar(b"", pa.binary()), count)
    return pc.binary_join_element_wise(*parts, pa.scalar(b"\t", pa.binary()))


def texts(column: pa.Array) -> tuple[pa.Array, Reasons]:
    """The values of a column of escaped fields; what is unchanged is NULL here."""
    absent = pc.is_in(column, pa.array([NULL, KEPT_MARK], pa.binary()))
    if pc.any(absent).as_py():
        column = pc.if_else(absent, pa.scalar(None, pa.binary()), column)
    made, reasons = as_text(column), Reasons()
    if made is None:
        decoded, reasons = decode_each(column)
        made = pa.array(decoded, pa.string())
    escaped = pc.indices_nonzero(pc.fill_null(pc.match_substring(made, "\\"), False))
    if len(escaped):
        values = made.to_pylist()
        for at in escaped.to_pylist():
            values[at] = unescape(values[at])
        made = pa.array(values, pa.string())
    return made, reasons


def typed(parts: Sequence[pa.Array], schema: Schema) -> Parsed:
    """Columns of escaped fields as columns of a schema."""
    made, reasons = [], Reasons()
    for column, part in zip(schema.columns, parts, strict=True):
        values, bad = texts(part)
        array, more = from_texts(values, column.type)
        merge_reasons(reasons, {**more, **bad}, column.name)
        made.append(array)
    return Parsed(made, reasons)


@dataclass(frozen=True)
class CopyText:
    """See `noonmark.source.format.decode.Format`: one line a record."""

    schema: Schema
    header: bool = False

    def parse(self, values: pa.Array) -> Parsed:
        """The columns of the records; `values` has no NULL."""
        return typed(self.parts(values), self.schema)

    def parts(self, values: pa.Array) -> list[pa.Array]:
        """The escaped fields of the records, by column."""
        if len(values) == 0:
            return [pa.array([], pa.binary()) for _ in self.schema.columns]
        return columns(b"\n".join(values.to_pylist()) + b"\n", len(self.schema))
