"""Assignment casts: what a column takes of an expression.

Law (assignment): an expression goes into a column by PostgreSQL's assignment casts: numbers into
numbers, anything into text, dates and times into each other; nothing else without a cast. Whether
a text is too long for its column is known when it is there, and then it is refused, never cut.
"""

from __future__ import annotations

from sqlglot import exp

from noonmark.errors import DatatypeMismatch
from noonmark.rows import types as t
from noonmark.rows.schema import Column
from noonmark.sql.coerce import UNKNOWN, coerce
from noonmark.sql.dialect import position_of
from noonmark.sql.ir.scalar import Scalar

_NUMBERS = (t.SmallInt, t.Integer, t.BigInt, t.Numeric, t.Real, t.Double)
_TEXTS = (t.Text, t.Varchar, t.Char)
_DAYS = (t.Date, t.Timestamp, t.TimestampTz)


def assigned(scalar: Scalar, column: Column, tree: exp.Expr | None = None) -> Scalar:
    """An expression as what its column takes.

    Raises:
        DatatypeMismatch: there is no cast that needs not be written.
    """
    position = None if tree is None else position_of(tree)
    if scalar.type != UNKNOWN and not is_assignable(scalar.type, column.type):
        raise DatatypeMismatch(
            f'column "{column.name}" is of type {column.declared} but expression is of type '
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
        case t.Coded():
            return kind.unsized
        case t.Array(element):
            return t.Array(loose(element))
    return kind


def is_assignable(source: t.SqlType, target: t.SqlType) -> bool:
    """Whether values of one type go into columns of the other without a written cast."""
    if isinstance(source, t.Array) and isinstance(target, t.Array):
        return is_assignable(source.element, target.element)
    if type(source) is type(target) or isinstance(target, _TEXTS):
        return True  # everything has a text
    if isinstance(source, t.Coded):
        return type(target) in (*source.wider, *source.assignable)
    pairs = ((_NUMBERS, _NUMBERS), (_DAYS, _DAYS), (_DAYS[1:], (t.Time,)),
             ((t.Time,), (t.Interval,)), ((t.Interval,), (t.Time,)))  # fmt: skip
    return any(isinstance(source, own) and isinstance(target, other) for own, other in pairs)
