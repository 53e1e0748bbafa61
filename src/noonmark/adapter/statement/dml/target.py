"""The table that a statement writes, and what its columns take.

Law (assignment): an expression goes into a column by PostgreSQL's assignment casts: numbers into
numbers, anything into text, dates and times into each other; nothing else without a cast. Text that
is longer than its column takes is refused, never cut.
Law (row): a row that leaves `fitted` has a value of the column's type in every column, and no NULL
where there may be none; and no CHECK is false of it (`adapter.table.checks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.sequence.default import default_text
from noonmark.errors import (
    DatatypeMismatch,
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
from noonmark.sql.coerce import UNKNOWN, coerce
from noonmark.sql.dialect import parse_scalar, position_of
from noonmark.sql.ir.scalar import Scalar
from noonmark.sql.statement.base import Name

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

Row = tuple[Any, ...]

_NUMBERS = (t.SmallInt, t.Integer, t.BigInt, t.Numeric, t.Real, t.Double)
_TEXTS = (t.Text, t.Varchar, t.Char)
_DAYS = (t.Date, t.Timestamp, t.TimestampTz)
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
    return exp.Null() if text is None else parse_scalar(text)


class GeneratedAlways(UsageError, id="generated_always", sqlstate="428C9"):
    """A value for a column that has only those that the system gives."""


def check_given(item: Item, column: Column, verb: str) -> None:
    """Refuse a value for a column that is GENERATED ALWAYS.

    Raises:
        GeneratedAlways: it is.
    """
    name = column.name
    message = (
        f'column "{name}" can only be updated to DEFAULT'
        if verb == "update"
        else f'cannot insert a non-DEFAULT value into column "{name}"'
    )
    found = item.definition.get("identity", {}).get(name)
    if found is not None and found[0] == "a":
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


# --- assignment casts


def assigned(scalar: Scalar, column: Column, tree: exp.Expr | None = None) -> Scalar:
    """An expression as what its column takes.

    Raises:
        DatatypeMismatch: there is no cast that needs not be written.
    """
    position = None if tree is None else position_of(tree)
    if scalar.type != UNKNOWN and not is_assignable(scalar.type, column.type):
        raise DatatypeMismatch(
            f'column "{column.name}" is of type {column.type} but expression is of type '
            f"{scalar.type}",
            hint="You will need to rewrite or cast the expression.",
            position=position,
        )
    return coerce(scalar, loose(column.type), position)


def loose(kind: t.SqlType) -> t.SqlType:
    """The type without its length: whether the text is too long is known when it is there."""
    match kind:
        case t.Varchar():
            return t.Varchar()
        case t.Char():
            return t.Text()
        case t.Array(element):
            return t.Array(loose(element))
    return kind


def is_assignable(source: t.SqlType, target: t.SqlType) -> bool:
    """Whether values of one type go into columns of the other without a written cast."""
    if isinstance(source, t.Array) and isinstance(target, t.Array):
        return is_assignable(source.element, target.element)
    if type(source) is type(target) or isinstance(target, _TEXTS):
        return True  # everything has a text
    pairs = ((_NUMBERS, _NUMBERS), (_DAYS, _DAYS), (_DAYS[1:], (t.Time,)),
             ((t.Time,), (t.Interval,)), ((t.Interval,), (t.Time,)))  # fmt: skip
    return any(isinstance(source, own) and isinstance(target, other) for own, other in pairs)


# --- rows


def fitted(item: Item, row: Sequence[Any]) -> Row:
    """A row as the table keeps it; its CHECKs are asked by `fitting`.

    Raises:
        NotNullViolation: NULL where there may be none.
        StringTooLong: text that is longer than its column takes.
    """
    columns = item.schema.columns
    result = tuple(
        [
            value if value is None else _sized(value, column.type)
            for value, column in zip(row, columns, strict=True)
        ]
    )
    more = item.definition.get("not_null", ())
    for value, column in zip(result, columns, strict=True):
        if value is None and (not column.nullable or column.name in more):
            raise NotNullViolation(
                f'null value in column "{column.name}" of relation "{item.name}" '
                "violates not-null constraint",
                detail=f"Failing row contains ({shown(item, result)}).",
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
