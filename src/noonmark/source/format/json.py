"""FORMAT JSON: one document per record.

With columns: a record is an object, and each column takes the field of its name. A missing field
and null are NULL; of equal names the last counts; other fields are ignored. A value becomes one of
its column's type as PostgreSQL's ``json_populate_record`` does: the text of a string, number or
boolean is read by the type (so "5" and 5 are both integers, and 1.0 is not); a list fits an array,
an object a record by field name; either fits jsonb, and nothing else.

Without columns, or `whole`: any document, as one column, ``data jsonb``.

Law (exact): `Json.parse` agrees with `exact` on every record; the quick way, Arrow's reader over a
whole block, is taken only where the two agree, and is the reason why it is fast.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from noonmark.errors import InvalidValue, NoonmarkError
from noonmark.rows import types as t
from noonmark.rows.arrow import arrow_type
from noonmark.rows.jsonb import canonical
from noonmark.rows.pg.text import parse_value
from noonmark.rows.refine import rebuild_list, refine
from noonmark.rows.schema import Column, Schema
from noonmark.source.format.convert import (
    Parsed,
    Reasons,
    as_text,
    decode_each,
    from_texts,
    from_values,
    in_blocks,
    joined,
    merge_reasons,
    tiny_places,
)

WHOLE = Schema((Column("data", t.Jsonb(), nullable=False),))

# What a number may look like in text and be lost in a float.
_TINY_TEXT = r"[eE]-\d|0\.0{20}"
_CONSTANT = re.compile(rb"[:\[,]\s*-?(?:NaN|Inf)")
_NATIVE = (t.Boolean, t.SmallInt, t.Integer, t.BigInt, t.Real, t.Double, t.Numeric)


class _Number(Decimal):
    """A JSON number that knows how it was written."""

    text: str

    def __new__(cls, text: str) -> _Number:
        made = super().__new__(cls, text)
        made.text = text
        return made


@dataclass(frozen=True)
class Json:
    """See `noonmark.source.format.decode.Format`."""

    schema: Schema = WHOLE
    header: bool = False
    whole: bool = False

    def parse(self, values: pa.Array) -> Parsed:
        """The columns of the records; `values` has no NULL."""
        return in_blocks(values, self._quick, self.exact)

    def exact(self, values: pa.Array) -> Parsed:
        """Record by record: the definition."""
        texts, reasons = decode_each(values)
        if self.whole or self.schema == WHOLE:
            return _whole(texts, reasons)
        documents = [_document(text, at, reasons) for at, text in enumerate(texts)]
        columns = []
        for column in self.schema.columns:
            items = [None if d is None else d.get(column.name) for d in documents]
            array, more = from_values(items, column.type, _converter(column.type))
            merge_reasons(reasons, more, column.name)
            columns.append(array)
        return Parsed(columns, reasons)

    def _quick(self, values: pa.Array) -> list[pa.Array] | None:
        """The block as a whole, or None when the exact way must look at it."""
        if any(_read_as(column.type) is None for column in self.schema.columns):
            return None
        texts = as_text(values)
        # Records that all begin an object, and have no line break inside, are one line and at
        # least one row each; so as many rows as records means one row each.
        if texts is None or not pc.all(pc.starts_with(texts, "{")).as_py():
            return None
        lines = joined(texts)
        if lines.count(b"\n") != len(texts) or _may_have_constants(lines):
            return None
        try:
            table = _read(lines, self.schema)
            if table.num_rows != len(values):
                return None
            arrays = [
                _finish(table.column(column.name).combine_chunks(), column.type, texts)
                for column in self.schema.columns
            ]
        except (pa.ArrowException, NoonmarkError, _NotQuick):
            return None
        return arrays


class _NotQuick(Exception):
    """The quick way cannot be sure of a block."""


def _read(lines: bytes, schema: Schema) -> pa.Table:
    fields = [(column.name, _read_as(column.type)) for column in schema.columns]
    options = pyarrow.json.ParseOptions(
        explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"
    )
    whole = pyarrow.json.ReadOptions(use_threads=False, block_size=max(1, len(lines)))
    return pyarrow.json.read_json(pa.BufferReader(lines), whole, options)


def _read_as(sql_type: t.SqlType) -> pa.DataType | None:
    """The Arrow type that the reader is asked for; None when only the exact way will do."""
    match sql_type:
        case t.Jsonb() | t.Json() | t.Char() | t.Numeric(precision=None):
            return None
        case t.Array(element):
            inner = _read_as(element)
            return None if inner is None else pa.list_(inner)
        case t.Record(fields):
            types = [_read_as(field.type) for field in fields]
            if any(kind is None for kind in types):
                return None
            return pa.struct([(f.name, kind) for f, kind in zip(fields, types, strict=True)])
    return arrow_type(sql_type) if isinstance(sql_type, _NATIVE) else pa.string()


def _finish(array: pa.Array, sql_type: t.SqlType, texts: pa.Array) -> pa.Array:
    """From what the reader gave to the storage type."""
    match sql_type:
        case t.Array(element):
            items = _finish(array.flatten(), element, texts)
            return rebuild_list(array, items, arrow_type(sql_type))
        case t.Record(fields):
            children = zip(array.flatten(), fields, strict=True)
            columns = [_finish(child, field.type, texts) for child, field in children]
            return pa.StructArray.from_arrays(
                columns, fields=list(arrow_type(sql_type)), mask=array.is_null()
            )
        case t.Real() | t.Double():
            _check_floats(array, texts)
        case t.Numeric():
            # The reader checks the scale of a number, and not its precision.
            array.validate(full=True)
    if isinstance(sql_type, _NATIVE):
        return refine(array, sql_type)
    column, reasons = from_texts(array, sql_type)
    if reasons:
        raise _NotQuick
    return column


def _may_have_constants(lines: bytes) -> bool:
    """Whether NaN or Infinity may stand where a value does: Arrow takes them, JSON does not."""
    return (b"NaN" in lines or b"Inf" in lines) and _CONSTANT.search(lines) is not None


def _check_floats(array: pa.Array, texts: pa.Array) -> None:
    if pc.any(pc.is_inf(array)).as_py():
        raise _NotQuick
    if len(tiny_places(array)) and pc.any(pc.match_substring_regex(texts, _TINY_TEXT)).as_py():
        raise _NotQuick


def _whole(texts: list[str | None], reasons: Reasons) -> Parsed:
    """One jsonb each. Not by `from_values`, which would canonicalize what is canonical again."""
    documents: list[str | None] = []
    for at, text in enumerate(texts):
        try:
            documents.append(None if text is None else canonical(text))
        except InvalidValue as error:
            documents.append(None)
            reasons[at] = f"not JSON: {error.detail}"
    return Parsed([pa.array(documents, pa.string())], reasons)


def _document(text: str | None, at: int, reasons: Reasons) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        document = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reasons[at] = f"not JSON: {error}"
        return None
    if not isinstance(document, dict):
        reasons[at] = "not a JSON object"
        return None
    return document


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")


def _converter(sql_type: t.SqlType) -> Callable[[Any], Any]:
    return lambda item: from_json(item, sql_type)


def from_json(item: Any, sql_type: t.SqlType) -> Any:
    """The value of a JSON value that is not null."""
    match sql_type, item:
        case ((t.Jsonb() | t.Json()), _):
            # Inside a list, because a string alone would be taken for a document.
            return canonical([item])[1:-1]
        case t.Array(element), list():
            return [None if each is None else from_json(each, element) for each in item]
        case t.Record(fields), dict():
            return tuple(
                None if (each := item.get(field.name)) is None else from_json(each, field.type)
                for field in fields
            )
    return parse_value(_scalar_text(item, sql_type), sql_type)


def _scalar_text(item: Any, sql_type: t.SqlType) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, _Number):
        return item.text
    if isinstance(item, str):
        return item
    kind = "object" if isinstance(item, dict) else "array"
    raise InvalidValue(f"a JSON {kind} is no value of type {sql_type}")
