"""The columns that CREATE writes, as a schema."""

from __future__ import annotations

from collections.abc import Sequence

from noonmark.errors import NameTaken, UndefinedColumn
from noonmark.rows.schema import Column, Schema
from noonmark.sql.statement import statement as st


def columns_of(specs: Sequence[st.ColumnSpec], key: Sequence[str]) -> Schema:
    """The columns as they were written; those of the key take no NULL."""
    seen: set[str] = set()
    for spec in specs:
        if spec.name in seen:
            raise NameTaken(
                f'column "{spec.name}" specified more than once', position=spec.position
            )
        seen.add(spec.name)
    for name in key:
        if name not in seen:
            raise UndefinedColumn(f'column "{name}" named in key does not exist')
    return Schema(
        tuple(
            Column(spec.name, spec.type, spec.nullable and spec.name not in key) for spec in specs
        )
    )
