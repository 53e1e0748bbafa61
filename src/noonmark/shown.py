"""Rows for people and for other libraries: tables in notebooks, data frames there and back."""

from __future__ import annotations

import html as _html
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from noonmark.adapter.contract import Field, Row
from noonmark.errors import ConfigError, SchemaMismatch
from noonmark.rows import arrow
from noonmark.rows import types as t
from noonmark.rows.pg.text import parse_value
from noonmark.rows.schema import Column, Schema

#: How many rows a notebook shows.
ROWS_SHOWN = 50


def html(names: Sequence[str], rows: Sequence[Sequence[str | None]], count: int) -> str:
    """A table of HTML; every text is escaped, NULL is told apart from text."""
    head = "".join(f"<th>{_html.escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    more = f", {len(rows):,} of them shown" if len(rows) < count else ""
    said = f"{count:,} row{'' if count == 1 else 's'}{more}"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{said}</p>"


def _cell(text: str | None) -> str:
    return "<td><i>NULL</i></td>" if text is None else f"<td>{_html.escape(text)}</td>"


def to_polars(table: pa.Table) -> Any:
    """A table as a `polars.DataFrame`."""
    try:
        import polars  # not a dependency: for those who have it
    except ImportError as error:
        raise ConfigError("polars is not installed", hint="pip install polars") from error
    return polars.from_arrow(table)


def as_arrow(rows: Any) -> pa.Table:
    """A data frame of any library as an Arrow table."""
    if isinstance(rows, pa.Table):
        return rows
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.table(rows)
    if type(rows).__module__.split(".")[0] == "pandas":
        return pa.Table.from_pandas(rows, preserve_index=False)
    raise SchemaMismatch(
        f"a {type(rows).__name__} is no data frame",
        hint="Give a pandas or polars DataFrame, or a pyarrow.Table.",
    )


#: Types of which a column that Arrow can cast needs nothing done to it afterwards.
_PLAIN = (
    t.Boolean, t.SmallInt, t.Integer, t.BigInt, t.Real, t.Double, t.Numeric, t.Date, t.Timestamp,
    t.TimestampTz,
)  # fmt: skip
_TEXTS = (t.Text, t.Varchar)


def table_for(batch: pa.RecordBatch, fields: Sequence[Field]) -> pa.Table | None:
    """The rows of a batch as columns of a table's types; None where they are asked one by one.

    Raises:
        SchemaMismatch: a column cannot be of its type without loss.
    """
    columns = []
    for field, given in zip(fields, batch.columns, strict=True):
        is_text = pa.types.is_string(given.type) or pa.types.is_large_string(given.type)
        wanted = _TEXTS if is_text else _PLAIN
        if not isinstance(field.type, wanted) or t.is_plain(field.type):
            return None
        columns.append(_cast(given, field, arrow.arrow_type(field.type)))
    return pa.table(columns, names=[field.name for field in fields])


def _cast(given: pa.Array, field: Field, wanted: pa.DataType) -> pa.Array:
    try:
        return given.cast(wanted)
    except pa.ArrowException as error:
        raise SchemaMismatch(
            f'column "{field.name}" is {given.type}, which is no {field.type}', detail=str(error)
        ) from error


def rows_for(batch: pa.RecordBatch, fields: Sequence[Field]) -> list[Row]:
    """The rows of a batch as values of a table's columns.

    Raises:
        SchemaMismatch: a column cannot be of its type without loss.
    """
    columns = []
    for field, given in zip(fields, batch.columns, strict=True):
        schema = Schema((Column(field.name, field.type),))
        # Arrow has no number of any size: such a column goes through its text.
        column = _cast(given, field, pa.string()) if t.is_plain(field.type) else given
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            texts = column.to_pylist()
            columns.append([
                None if each is None else parse_value(each, field.type) for each in texts
            ])  # fmt: skip
            continue
        table = pa.table({field.name: _cast(column, field, arrow.arrow_type(field.type))})
        columns.append([row[0] for row in arrow.from_table(table, schema)])
    return list(zip(*columns, strict=True))
