"""Tables for others: what only we can read becomes what everybody can.

Plain numeric is stored as bytes (`noonmark.rows.numeral`): no type of Arrow or Spark has numbers of
any size. So are the labels of enums, with their order (`noonmark.rows.label`), and the types of
`noonmark.rows.coded`. Whoever reads a
table with other tools gets the text that PostgreSQL prints.

Law: ``conform`` of the texts, parsed, is the table again; every other column is the same object.
"""

from __future__ import annotations

import pyarrow as pa

from noonmark.rows import types as t
from noonmark.rows.array import from_array, to_array
from noonmark.rows.pg.text import format_value
from noonmark.rows.schema import Column, Schema


def shown_type(sql_type: t.SqlType) -> t.SqlType:
    """The type with text in the place of plain numeric and enums."""
    match sql_type:
        case t.Numeric(precision=None) | t.Enum() | t.Coded():
            return t.Text()
        case t.Array(element):
            return t.Array(shown_type(element))
        case t.Record(fields):
            return t.Record(tuple(t.Field(f.name, shown_type(f.type)) for f in fields))
    return sql_type


def shown_schema(schema: Schema) -> Schema:
    """The schema of `texts_for_numerals`."""
    return Schema(tuple(Column(c.name, shown_type(c.type), c.nullable) for c in schema))


def texts_for_numerals(table: pa.Table, schema: Schema) -> pa.Table:
    """The table, of at least the columns of the schema, with text for plain numeric and enums."""
    for column in schema:
        kind = shown_type(column.type)
        if kind == column.type or column.name not in table.column_names:
            continue
        at = table.column_names.index(column.name)
        values = [_shown(x, column.type) for x in from_array(table.column(at), column.type)]
        made = to_array(values, kind)
        table = table.set_column(at, pa.field(column.name, made.type, column.nullable), made)
    return table


def _shown(value: object, sql_type: t.SqlType) -> object:
    match sql_type:
        case _ if value is None:
            return None
        case t.Numeric(precision=None) | t.Enum() | t.Coded():
            return format_value(value, sql_type)
        case t.Array(element):
            assert isinstance(value, list | tuple)
            return [_shown(each, element) for each in value]
        case t.Record(fields):
            assert isinstance(value, tuple)
            return tuple(_shown(x, f.type) for x, f in zip(value, fields, strict=True))
    return value
