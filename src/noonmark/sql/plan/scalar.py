"""Expressions: a syntax tree and the row that it sees to a `Scalar`.

One function per kind of node: `leaf` has columns and literals, `operator` operators and conditions,
`form` what has a syntax of its own, and `function` calls. A node that none of them knows is refused
by name. A quoted literal stays of type unknown until its place gives it a type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from sqlglot import exp

from noonmark.errors import (
    DatatypeMismatch,
    GroupingError,
    InvalidSyntax,
    NoonmarkError,
    UndefinedFunction,
    WindowingError,
)
from noonmark.loops import WORKING
from noonmark.rows import types as t
from noonmark.rows.coded.geometry import Shape
from noonmark.rows.order import has_equality, is_ordered
from noonmark.sql.choose import resolve
from noonmark.sql.coerce import UNKNOWN, coerce, common_type_of, compared_type, settle
from noonmark.sql.dialect import position_of
from noonmark.sql.functions import FUNCTIONS
from noonmark.sql.functions.number.fit import numeric_for
from noonmark.sql.ir.asked import Now, Parameter
from noonmark.sql.ir.scalar import (
    BOOLEAN,
    Call,
    Compare,
    Literal,
    Scalar,
    same_kind,
)
from noonmark.sql.plan.row import Row, unsupported
from noonmark.sql.turns import WAITING, pass_on

Planner = Callable[[Any, Row], Scalar]


@cache
def _planners() -> dict[type[exp.Expr], Planner]:
    """The planner of every kind of node; they plan their parts through `plan`."""
    from noonmark.sql.plan import form, leaf, operator  # door: it uses this module

    return {**leaf.PLANNERS, **operator.PLANNERS, **form.PLANNERS}


def _refused(tree: exp.Expr, row: Row) -> NoonmarkError:
    """Why a node has no meaning here: windows have their places, and the rest is not supported."""
    if isinstance(tree, exp.Window):
        error = GroupingError if row.place == "aggregate arguments" else WindowingError
        message = f"window functions are not allowed in {row.place}"
        return error(message, position=position_of(tree))
    # "WITHIN GROUP" as it is written, of the class WithinGroup.
    written = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(tree).__name__).upper()
    return unsupported(written, tree)


def plan(tree: exp.Expr, row: Row) -> Scalar:
    """The scalar that a syntax tree means; it may still be of type unknown."""
    if not isinstance(tree, exp.Expr):
        raise InvalidSyntax(f"an expression is missing in {row.place}")
    if WAITING or WORKING:
        pass_on()
    found = row.computed.get(tree)
    if found is not None:
        return found
    if row.match is not None:
        matched = row.match(tree)
        if matched is not None:
            return matched
    planner = _planners().get(type(tree))
    if planner is None:
        raise _refused(tree, row)
    try:
        return planner(tree, row)
    except NoonmarkError as error:
        # The innermost node with a place names it: an error of a constructor has none yet.
        error.position = error.position or position_of(tree)
        raise


def plan_value(tree: exp.Expr, row: Row) -> Scalar:
    """The scalar, text where nothing gave it a type."""
    return settle(plan(tree, row))


def plan_boolean(tree: exp.Expr, row: Row, place: str) -> Scalar:
    """The scalar, which must be boolean."""
    scalar = plan(tree, row)
    if scalar.type == UNKNOWN:
        scalar = coerce(scalar, BOOLEAN, position_of(tree))
    if scalar.type != BOOLEAN:
        raise DatatypeMismatch(
            f"argument of {place} must be type boolean, not type {scalar.type}",
            position=position_of(tree),
        )
    return scalar


def call(name: str, arguments: Sequence[Scalar], tree: exp.Expr, operator: bool) -> Scalar:
    """The function or operator of that name that fits the arguments."""
    entry, coerced = resolve(FUNCTIONS, name, arguments, position_of(tree), operator=operator)
    return Call(entry.id, coerced)


def same_type(scalars: Sequence[Scalar], place: str, tree: exp.Expr) -> list[Scalar]:
    """All of them as their common type."""
    target = common_type_of(scalars, place, position_of(tree))
    return [coerce(each, target, position_of(tree)) for each in scalars]


def compare(op: str, left: Scalar, right: Scalar, tree: exp.Expr) -> Scalar:
    """A comparison, both sides as one kind; of shapes, an operator like others."""
    if any(isinstance(each.type, Shape) for each in (left, right)):
        return call(op, [left, right], tree, operator=True)
    a, b = comparable(op, [left, right], tree)
    if isinstance(b, Now):
        # One form for all temporal filters: mz_now() stands left.
        return Compare(_TURNED[op], b, a)
    return Compare(op, a, b)


_TURNED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _as_time(scalar: Scalar, tree: exp.Expr) -> Scalar:
    """What mz_now() is compared with: a timestamp stands for its milliseconds."""
    if isinstance(scalar.type, t.Date | t.Timestamp | t.TimestampTz):
        return call("mz_timestamp", [scalar], tree, operator=False)
    return scalar


def comparable(op: str, scalars: Sequence[Scalar], tree: exp.Expr) -> list[Scalar]:
    """The scalars as one kind. Numerics keep their scales: they compare as they are."""
    position = position_of(tree)
    if any(isinstance(each, Now) for each in scalars):
        scalars = [_as_time(each, tree) for each in scalars]
    if any(_is_function(each.type) for each in scalars):
        scalars = [_by_name(each) for each in scalars]
    known = [each.type for each in scalars if each.type != UNKNOWN]
    if len(known) == len(scalars) and all(isinstance(each, t.Record) for each in known):
        for each in known[1:]:
            _check_records(known[0], each, position)
        if op not in ("=", "<>") and not is_ordered(known[0]):
            raise unsupported(f"{op} of records with a document", tree)
        return list(scalars)
    target = compared_type(known)
    if target is None:
        shown = f" {op} ".join(str(each) for each in known[:2])
        raise UndefinedFunction(
            f"operator does not exist: {shown}",
            hint="No operator matches the given name and argument types. "
            "You might need to add explicit type casts.",
            position=position,
        )
    if not has_equality(target):
        raise UndefinedFunction(
            f"operator does not exist: {target} {op} {target}", position=position
        )
    if op not in ("=", "<>") and isinstance(target, t.Jsonb):
        raise unsupported(f"{target} {op} {target}", tree, hint="Documents have no order here.")
    if op not in ("=", "<>") and not is_ordered(target):
        raise UndefinedFunction(f"operator does not exist: {target} {op} {target}")
    return [as_kind_of(each, target, position) for each in scalars]


def check_equality(types: Iterable[t.SqlType], tree: exp.Expr) -> None:
    """Refuse types that DISTINCT, GROUP BY and their kin cannot tell apart.

    Raises:
        UndefinedFunction: one of them has no equality.
    """
    for each in types:
        if not has_equality(each):
            raise UndefinedFunction(
                f"could not identify an equality operator for type {each}",
                position=position_of(tree),
            )


def _check_records(left: t.SqlType, right: t.SqlType, position: int | None) -> None:
    """Records are compared field by field, whatever the names; each field of one type on its own.

    Raises:
        DatatypeMismatch: they cannot be.
    """
    assert isinstance(left, t.Record)
    assert isinstance(right, t.Record)
    if len(left.fields) != len(right.fields):
        message = "cannot compare record types with different numbers of columns"
        raise DatatypeMismatch(message, position=position)
    for at, (a, b) in enumerate(zip(left.fields, right.fields, strict=True), 1):
        if not same_kind(a.type, b.type):
            raise DatatypeMismatch(
                f"cannot compare dissimilar column types {a.type} and {b.type} "
                f"at record column {at}",
                position=position,
            )


def _by_name(scalar: Scalar) -> Scalar:
    """What a function of the catalog is compared with: its name; "-" is the one of oid 0."""
    if isinstance(scalar, Literal) and isinstance(scalar.type, t.Integer):
        return Literal(t.Text(), "-" if scalar.value == 0 else str(scalar.value))
    return coerce(scalar, t.Text()) if isinstance(scalar.type, t.Integer) else scalar


def _is_function(kind: t.SqlType) -> bool:
    """Whether it is the type of functions in the catalog, which have names and no numbers here."""
    return isinstance(kind, t.Text) and kind.told == "regproc"


def as_kind_of(scalar: Scalar, target: t.SqlType, position: int | None) -> Scalar:
    """The scalar as a type of the target's kind; its own length and digits stay."""
    if isinstance(scalar, Parameter) and scalar.type == UNKNOWN:
        scalar = scalar.declared(target)
    if type(scalar.type) is type(target) and not isinstance(target, t.Array | t.Record):
        return scalar
    if isinstance(target, t.Numeric):
        # A quoted literal has the digits that are written: the column's would round it.
        own = t.Numeric() if scalar.type == UNKNOWN else numeric_for(scalar.type)
        return coerce(scalar, own, position)
    if isinstance(target, t.Char) and isinstance(scalar, Literal) and scalar.value is not None:
        return Literal(t.Char(None), scalar.value)
    if isinstance(target, t.Varchar):
        return coerce(scalar, t.Varchar(), position)
    return coerce(scalar, target, position)
