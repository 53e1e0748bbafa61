"""Results and errors as JSON, in Materialize's shape.

A value is JSON's own where JSON has it exactly: NULL, booleans, arrays, records (as objects) and
jsonb. Everything else is PostgreSQL's text in a string; numbers too, because a reader of JSON may
take them for doubles and lose digits.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from noonmark.adapter.contract import Field, Notice
from noonmark.errors import NoonmarkError
from noonmark.rows import types as t
from noonmark.rows.pg.oid import oid, type_size, typmod
from noonmark.rows.pg.text import format_value
from noonmark.serve.beside import beside, is_long

#: A value that is not NULL, as JSON text.
Cell = Callable[[Any], str]


def quoted(text: str) -> str:
    """A JSON string; text of any script stays readable."""
    return json.dumps(text, ensure_ascii=False)


def row_writer(fields: Sequence[Field], zone: dt.tzinfo) -> Callable[[Sequence[Any]], str]:
    """How rows of these fields become JSON text."""
    cells = [cell(field.type, zone) for field in fields]

    def write(row: Sequence[Any]) -> str:
        return _array(
            "null" if value is None else write_cell(value)
            for write_cell, value in zip(cells, row, strict=True)
        )

    return write


async def written(write: Callable[[Sequence[Any]], str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows as JSON text, one after the other; beside the loop if that takes long."""

    def act() -> str:
        return ",".join(map(write, rows))

    return await beside(act) if is_long(value for row in rows for value in row) else act()


def cell(sql_type: t.SqlType, zone: dt.tzinfo) -> Cell:
    """How a value of the type becomes JSON text."""
    match sql_type:
        case t.Boolean():
            return lambda value: "true" if value else "false"
        case t.Jsonb() | t.Json():
            return str
        case t.Array(element):
            inner = cell(element, zone)
            return lambda value: _array("null" if v is None else inner(v) for v in value)
        case t.Record(fields):
            names = [quoted(field.name) for field in fields]
            inners = [cell(field.type, zone) for field in fields]
            return lambda value: _object(names, inners, value)
    return lambda value: quoted(format_value(value, sql_type, zone))


def _array(items: Iterable[str]) -> str:
    return f"[{','.join(items)}]"


def _object(names: list[str], inners: list[Cell], values: Sequence[Any]) -> str:
    pairs = zip(names, inners, values, strict=True)
    items = (f"{name}:{'null' if v is None else inner(v)}" for name, inner, v in pairs)
    return f"{{{','.join(items)}}}"


def columns(fields: Iterable[Field]) -> list[dict[str, Any]]:
    """What is told of a result's columns."""
    return [
        {
            "name": field.name,
            "type_oid": oid(field.type),
            "type_len": type_size(field.type),
            "type_mod": typmod(field.type),
        }
        for field in fields
    ]


def notice(given: Notice) -> dict[str, Any]:
    """Something to know."""
    said = {
        "message": given.message,
        "code": given.sqlstate,
        "severity": given.severity.lower(),
        "detail": given.detail,
        "hint": given.hint,
    }
    return {name: value for name, value in said.items() if value is not None}


def error(given: NoonmarkError, offset: int = 0) -> dict[str, Any]:
    """An error with all that is known of it; its statement begins at `offset` of the text."""
    said = {
        "message": given.message,
        "code": given.sqlstate,
        "detail": given.detail,
        "hint": given.hint,
        "position": None if given.position is None else given.position + offset,
    }
    return {name: value for name, value in said.items() if value is not None}
