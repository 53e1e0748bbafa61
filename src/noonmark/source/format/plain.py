"""FORMAT TEXT and FORMAT BYTES: the record as it is, in one column."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from noonmark.rows import types as t
from noonmark.rows.schema import Column, Schema
from noonmark.source.format.convert import Parsed, as_text, decode_each, from_texts

_TEXT = Schema((Column("text", t.Text(), nullable=False),))
_BYTES = Schema((Column("data", t.Bytea(), nullable=False),))


@dataclass(frozen=True)
class Text:
    """See `noonmark.source.format.decode.Format`. What is not UTF-8, or has a NUL, is an error."""

    schema: Schema = _TEXT
    header: bool = False

    def parse(self, values: pa.Array) -> Parsed:
        """The records as text; `values` has no NULL."""
        texts = as_text(values)
        if texts is not None:
            column, reasons = from_texts(texts, t.Text())
            return Parsed([column], reasons)
        decoded, reasons = decode_each(values)
        column, more = from_texts(pa.array(decoded, pa.string()), t.Text())
        return Parsed([column], {**more, **reasons})


@dataclass(frozen=True)
class Bytes:
    """See `noonmark.source.format.decode.Format`. Every record is a row."""

    schema: Schema = _BYTES
    header: bool = False

    def parse(self, values: pa.Array) -> Parsed:
        """The records; `values` has no NULL."""
        return Parsed([values], {})
