"""The columns that CREATE writes, as a schema."""

from __future__ import annotations

from collections.abc import Sequence

from noonmark.errors import UndefinedColumn, UndefinedObject, UsageError
from noonmark.rows.order import has_equality
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import SqlType
from noonmark.sql.statement import statement as st


class DuplicateColumn(UsageError, id="duplicate_column", sqlstate="42701"):
    """A column of that name is there, or is named twice."""


def check_key(name: str, kind: SqlType) -> None:
    """Refuse a column of a key, a unique constraint or an index whose values have no equality.

    Raises:
        UndefinedObject: they have none.
    """
    if not has_equality(kind):
        raise UndefinedObject(
            f'data type {kind} has no default operator class for access method "btree"',
            detail=f'Column "{name}" cannot be in a key or an index.',
            hint="Use jsonb.",
        )


def columns_of(specs: Sequence[st.ColumnSpec], key: Sequence[str]) -> Schema:
    """The columns as they were written; those of the key take no NULL."""
    seen: set[str] = set()
    for spec in specs:
        if spec.name in seen:
            raise DuplicateColumn(
                f'column "{spec.name}" specified more than once', position=spec.position
            )
        seen.add(spec.name)
    for name in key:
        if name not in seen:
            raise UndefinedColumn(f'column "{name}" named in key does not exist')
    for spec in specs:
        if spec.name in key:
            check_key(spec.name, spec.type)
    return Schema(
        tuple(
            Column(spec.name, spec.type, spec.nullable and spec.name not in key, spec.domain)
            for spec in specs
        )
    )
