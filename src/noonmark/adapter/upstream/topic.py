"""CREATE SOURCE FROM KAFKA: how the columns that were written are shared out between key and value.

With KEY FORMAT (or INCLUDE KEY) the columns of PRIMARY KEY are read from the record's key, and all
others from its value; without PRIMARY KEY the key is one column, called "key" or as INCLUDE KEY
says. Under UPSERT without KEY FORMAT the columns of PRIMARY KEY are read from the value.
"""

from __future__ import annotations

from typing import Any

from noonmark.adapter.run.ddl import columns_of
from noonmark.errors import InvalidValue
from noonmark.rows import types as t
from noonmark.rows.schema import Column, Schema
from noonmark.sql.statement import statement as st

_KEY_TYPES: dict[str, t.SqlType] = {"json": t.Jsonb(), "bytes": t.Bytea()}


def topic_definition(statement: st.CreateSource) -> dict[str, Any]:
    """What a source over a topic remembers of its format."""
    if statement.format is None:
        raise InvalidValue(
            "a source FROM KAFKA needs a FORMAT", hint="FORMAT JSON, AVRO, CSV, TEXT or BYTES."
        )
    columns = columns_of(statement.columns or (), statement.key)
    key_name = next((name for what, name in statement.include if what == "key"), None)
    key_format = statement.key_format
    if key_format is None and key_name is not None:
        key_format = st.Format("text" if statement.format.kind == "csv" else statement.format.kind)
    if statement.envelope == "upsert" and key_format is None and not statement.key:
        raise InvalidValue(
            "ENVELOPE UPSERT needs a key",
            hint="Say KEY FORMAT ... VALUE FORMAT ..., or give the columns a PRIMARY KEY.",
        )
    key: tuple[Column, ...] = ()
    if key_format is not None:
        key, columns = _shared_out(statement.key, columns, key_format.kind, key_name)
    return {
        "format": _format(statement.format),
        "key_format": None if key_format is None else _format(key_format),
        "columns": columns.to_wire(),
        "key_columns": Schema(key).to_wire(),
        "include": [list(each) for each in statement.include if each[0] != "key"],
        "envelope": (statement.envelope or "none").upper(),
        "key": list(statement.key),
    }


def _shared_out(
    names: tuple[str, ...], columns: Schema, kind: str, key_name: str | None
) -> tuple[tuple[Column, ...], Schema]:
    if not names:
        key_type = _KEY_TYPES.get(kind, t.Text())
        return (Column(key_name or "key", key_type, nullable=False),), columns
    key = tuple(columns[name] for name in names)
    return key, Schema(tuple(each for each in columns.columns if each.name not in names))


def _format(written: st.Format) -> dict[str, Any]:
    options = {
        name: list(value.parts) if isinstance(value, st.Name) else value
        for name, value in written.options.items()
    }
    return {"kind": written.kind, **options}
