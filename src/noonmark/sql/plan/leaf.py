"""The leaves of expressions: columns, numbers, quoted literals, intervals."""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from noonmark.errors import (
    InvalidSyntax,
    InvalidValue,
    UndefinedParameter,
)
from noonmark.rows import types as t
from noonmark.rows.coded.bits import Bit
from noonmark.rows.numeral import numeral
from noonmark.rows.pg.intervals import cut_interval, parse_interval
from noonmark.sql.coerce import UNKNOWN
from noonmark.sql.dialect import position_of
from noonmark.sql.functions.cast import cast
from noonmark.sql.functions.number.fit import WIDE
from noonmark.sql.functions.text.unicode import unescaped
from noonmark.sql.ir.asked import Parameter
from noonmark.sql.ir.scalar import (
    BOOLEAN,
    Literal,
    Scalar,
)
from noonmark.sql.plan.row import Row, name_of, unsupported
from noonmark.sql.plan.scalar import (
    Planner,
    plan,
)

#: The protocol counts parameters in 16 bits.
PARAMETERS_MAX = 65_535


def _column(tree: exp.Column, row: Row) -> Scalar:
    # s.t.c: one FROM has one table under the name t, so its schema says nothing more.
    table = tree.args.get("table")
    if isinstance(tree.this, exp.Star) and table is not None:
        return row.whole(name_of(table), position_of(tree))  # t.* as an argument
    bare = table is None and not tree.this.quoted
    if bare and name_of(tree.this) in ("user", "current_role"):
        from noonmark.sql.plan.function import ask  # door: it plans arguments by this module

        return ask("current_user", [], tree, row)
    return row.named(
        name_of(tree.this), None if table is None else name_of(table), position_of(tree)
    )


def _literal(tree: exp.Literal, _: Row) -> Scalar:
    if tree.is_string:
        return Literal(UNKNOWN, tree.this)
    return number(tree.this)


def number(text: str) -> Literal:
    """A number as written: integer, bigint or numeric, whichever is first to hold it."""
    if text.isdigit() and int(text) < 1 << 63:
        return Literal(t.Integer() if int(text) < 1 << 31 else t.BigInt(), int(text))
    try:
        value = Decimal(text)
    except ArithmeticError:
        raise InvalidSyntax(f"{text[:50]} is not a number that is supported") from None
    exponent = value.as_tuple().exponent
    scale = max(-exponent, 0) if isinstance(exponent, int) else 0
    digits = max(value.adjusted() + 1, 0) + scale
    if digits > t.NUMERIC_PRECISION_MAX:
        return Literal(t.Numeric(), numeral(value))
    exact = value.quantize(Decimal(1).scaleb(-scale), context=WIDE)
    return Literal(t.Numeric(max(digits, scale, 1), scale), exact)


def _null(_: exp.Null, __: Row) -> Scalar:
    return Literal(UNKNOWN, None)


def _boolean(tree: exp.Boolean, _: Row) -> Scalar:
    return Literal(BOOLEAN, bool(tree.this))


def _escaped_string(tree: exp.ByteString, _: Row) -> Scalar:
    return Literal(UNKNOWN, tree.this)


def _unicode_string(tree: exp.UnicodeString, _: Row) -> Scalar:
    """A string with numbers of characters, behind the mark that UESCAPE says."""
    escape = tree.args.get("escape")
    mark = str(escape.this) if escape else "\\"
    if len(mark) != 1 or mark in "0123456789abcdefABCDEF+'\" \t\n":
        raise InvalidSyntax("invalid Unicode escape character", position=position_of(tree))
    return Literal(UNKNOWN, unescaped(str(tree.this), mark))


def _interval(tree: exp.Interval, _: Row) -> Scalar:
    text, unit = tree.this, tree.args.get("unit")
    if not isinstance(text, exp.Literal) or isinstance(unit, exp.IntervalSpan):
        raise unsupported("an interval that is not one literal with at most one unit", tree)
    cut = "second" if unit is None else unit.name.lower()
    try:
        return Literal(t.Interval(), cut_interval(parse_interval(text.this, cut), cut))
    except InvalidValue as error:
        error.position = position_of(tree)
        raise


def _parameter(tree: exp.Parameter, row: Row) -> Scalar:
    if not isinstance(tree.this, exp.Literal) or not tree.this.this.isdigit():
        raise unsupported("a parameter that is not a number", tree)
    index, statement = int(tree.this.this), row.statement
    if statement.parameters is None or not 1 <= index <= PARAMETERS_MAX:
        raise UndefinedParameter(f"there is no parameter ${index}", position=position_of(tree))
    known = statement.parameters.get(index, UNKNOWN)
    if statement.values is not None and known != UNKNOWN:
        return Literal(known, statement.values[index - 1])
    return Parameter(known, index, statement.parameters)


def _paren(tree: exp.Paren, row: Row) -> Scalar:
    return plan(tree.this, row)


def _bits(mark: str) -> Planner:
    """``B'101'`` and ``X'1F'``."""

    def act(tree: exp.BitString | exp.HexString, _: Row) -> Scalar:
        return Literal(Bit(), cast(mark + str(tree.this), t.Text(), Bit()))

    return act


PLANNERS: dict[type[exp.Expr], Planner] = {
    exp.BitString: _bits("b"),
    exp.HexString: _bits("x"),
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.ByteString: _escaped_string,
    exp.RawString: lambda tree, _: Literal(UNKNOWN, tree.this),  # between dollars
    exp.UnicodeString: _unicode_string,
    exp.Interval: _interval,
    exp.Paren: _paren,
    exp.Parameter: _parameter,
}
