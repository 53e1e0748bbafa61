"""The table that a statement writes, and what its columns take.

An expression goes into a column by assignment casts (`sql.assign`). Text that is longer than its
column takes is refused, never cut.
Law (row): a row that leaves `fitted_rows` has a value of the column's type in every column, that of
its expression in a generated one (`adapter.table.generated`), no NULL where there may be none, and
no CHECK is false of it (`adapter.table.checks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.type_names import TypeNames
from noonmark.adapter.catalog.user_types import Types
from noonmark.adapter.sequence.default import default_text
from noonmark.errors import (
    InvalidSyntax,
    NotNullViolation,
    StringTooLong,
    UndefinedColumn,
    UsageError,
    WrongObjectType,
)
from noonmark.rows import types as t
from noonmark.rows.identity import one_float
from noonmark.rows.pg.text import format_value
from noonmark.rows.schema import Column
from noonmark.sql.dialect import parse_scalar
from noonmark.sql.plan.form import with_types
from noonmark.sql.statement.base import Name

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

Row = tuple[Any, ...]

_SHOWN_MAX = 200


def target(session: AdapterSession, catalog: Catalog, name: Name, verb: str) -> Item:
    """The table of that name.

    Raises:
        UndefinedTable: there is none.
        WrongObjectType: it cannot be written.
    """
    item = session.access("SHOW", catalog).named(name.parts, name.position)
    if item.kind != "table":
        kind = item.kind.replace("-", " ")
        raise WrongObjectType(
            f'cannot {verb} {kind} "{item.name}"',
            hint="Only tables can be written.",
            position=name.position,
        )
    return item


def columns_of(item: Item, names: Sequence[str], position: int | None) -> tuple[int, ...]:
    """The places of the columns that a statement names; all of them if it names none."""
    if not names:
        return tuple(range(len(item.schema)))
    places: list[int] = []
    for name in names:
        if name not in item.schema:
            raise UndefinedColumn(
                f'column "{name}" of relation "{item.name}" does not exist', position=position
            )
        at = item.schema.index(name)
        if at in places:
            raise InvalidSyntax(f'column "{name}" specified more than once', position=position)
        places.append(at)
    return tuple(places)


def default_of(item: Item, column: Column) -> exp.Expr:
    """The expression that DEFAULT stands for."""
    found = item.definition.get("identity", {}).get(column.name)
    text = item.definition.get("defaults", {}).get(column.name)
    if found is not None:
        text = default_text(found[1])
    known: Types = item.types
    if text is None and column.domain is not None:
        text, known = column.domain.default, dict(column.domain.types)
    if text is None:
        return exp.Null()
    return with_types(parse_scalar(text), TypeNames(None, known))


class GeneratedAlways(UsageError, id="generated_always", sqlstate="428C9"):
    """A value for a column that has only those that the system gives."""


def check_given(item: Item, column: Column, verb: str, overriding: str | None = None) -> None:
    """Refuse a value for a column that is GENERATED ALWAYS; OVERRIDING is of identities alone.

    Raises:
        GeneratedAlways: it is.
    """
    name = column.name
    message = (
        f'column "{name}" can only be updated to DEFAULT'
        if verb == "update"
        else f'cannot insert a non-DEFAULT value into column "{name}"'
    )
    if name in item.definition.get("generated", {}):
        raise GeneratedAlways(message, detail=f'Column "{name}" is a generated column.')
    found = item.definition.get("identity", {}).get(name)
    if found is not None and found[0] == "a" and overriding is None:
        raise GeneratedAlways(
            message,
            detail=f'Column "{name}" is an identity column defined as GENERATED ALWAYS.',
            hint=None if verb == "update" else "Use OVERRIDING SYSTEM VALUE to override.",
        )


def is_default(tree: exp.Expr) -> bool:
    """Whether an expression is the word DEFAULT."""
    if isinstance(tree, exp.Var):
        return tree.name.lower() == "default"
    return (
        isinstance(tree, exp.Column)
        and tree.args.get("table") is None
        and isinstance(tree.this, exp.Identifier)
        and not tree.this.args.get("quoted")
        and tree.name.lower() == "default"
    )


# --- rows


def sized(item: Item, row: Sequence[Any]) -> Row:
    """A row with values of the columns' types.

    Raises:
        StringTooLong: text that is longer than its column takes.
    """
    return tuple(
        [
            value if value is None else _sized(value, column.type)
            for value, column in zip(row, item.schema.columns, strict=True)
        ]
    )


def fitted(item: Item, row: Sequence[Any]) -> Row:
    """A row with values of the columns' types, and NULL only where it may be.

    Raises:
        NotNullViolation: NULL where there may be none.
        StringTooLong: text that is longer than its column takes.
    """
    columns, result = item.schema.columns, sized(item, row)
    more = item.definition.get("not_null", ())
    for value, column in zip(result, columns, strict=True):
        if value is None and (not column.nullable or column.name in more):
            raise NotNullViolation(
                f'null value in column "{column.name}" of relation "{item.name}" '
                "violates not-null constraint",
                detail=f"Failing row contains ({shown(item, result)}).",
                shows=item.collection,
                column=column.name,
            )
    return result


def _sized(value: Any, kind: t.SqlType) -> Any:
    match kind:
        case t.Varchar(int(length)) | t.Char(int(length)) if len(value) > length:
            if value[length:].strip(" "):
                raise StringTooLong(f"value too long for type {kind}")
            return value[:length]
        case t.Char(int(length)):
            return value.ljust(length)
        case t.Coded():
            return kind.fitted(value)
        case t.Real() | t.Double():
            return one_float(value)
        case t.Array(element):
            return tuple(None if each is None else _sized(each, element) for each in value)
    return value


def shown(item: Item, row: Row) -> str:
    """The values of a row, as an error has them."""
    texts = [
        "null" if value is None else format_value(value, column.type)
        for value, column in zip(row, item.schema, strict=True)
    ]
    shown = ", ".join(texts)
    return shown if len(shown) <= _SHOWN_MAX else shown[:_SHOWN_MAX] + "..."
