"""Implicit casts and common types, as PostgreSQL has them.

A quoted literal and NULL are of type `Unknown` until their place gives them one. Types widen along

    smallint -> integer -> bigint -> numeric -> real -> double precision
    character(n), character varying -> text
    date -> timestamp -> timestamp with time zone        time -> interval

Which of the functions of one name is meant, `choose` decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from noonmark.errors import (
    CannotCast,
    DatatypeMismatch,
    EvaluationError,
)
from noonmark.rows import types as t
from noonmark.rows.coded import CODED
from noonmark.sql.functions.cast import cast, cast_exists
from noonmark.sql.functions.elsewhere import category
from noonmark.sql.functions.number.fit import bounded, numeric_for
from noonmark.sql.ir.asked import Parameter, unsized
from noonmark.sql.ir.scalar import (
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    Literal,
    OuterRef,
    Scalar,
    When,
)


@dataclass(frozen=True, slots=True)
class Unknown(t.SqlType):
    """The type of a quoted literal or NULL whose place has not given it one yet."""

    spelling: ClassVar[str] = "unknown"


UNKNOWN = Unknown()
_NUMBERS = (t.SmallInt, t.Integer, t.BigInt, t.Numeric, t.Real, t.Double)
_WIDER: dict[type[t.SqlType], tuple[type[t.SqlType], ...]] = {
    **{kind: _NUMBERS[at + 1 :] for at, kind in enumerate(_NUMBERS)},
    t.Char: (t.Text, t.Varchar),
    t.Varchar: (t.Text,),
    t.Date: (t.Timestamp, t.TimestampTz),
    t.Timestamp: (t.TimestampTz,),
    t.Time: (t.Interval,),
    **{kind: kind.wider for kind in CODED},
}


def is_implicit(source: t.SqlType, target: type[t.SqlType]) -> bool:
    """Whether a value of the type becomes one of the target's kind without being told to."""
    return type(source) is target or source == UNKNOWN or target in _WIDER.get(type(source), ())


def as_kind(source: t.SqlType, target: type[t.SqlType]) -> t.SqlType:
    """The type of that kind that a source becomes."""
    if type(source) is target:
        return source
    if target is t.Numeric:
        return numeric_for(source)
    if target is t.Record:
        return t.Record(())  # of no type yet, it says nothing of its fields
    return target()


def settle(scalar: Scalar) -> Scalar:
    """The scalar; text, if nothing gave it a type."""
    return coerce(scalar, t.Text()) if scalar.type == UNKNOWN else scalar


def coerce(scalar: Scalar, target: t.SqlType, position: int | None = None) -> Scalar:
    """The scalar as the type, by any cast that exists; a literal is read now.

    Raises:
        CannotCast: there is no such cast.
        EvaluationError: a literal that the type cannot read.
    """
    if scalar.type == target:
        return _told_as(scalar, target)
    if isinstance(scalar, Literal) and scalar.type == UNKNOWN:
        return _read(scalar, target, position)
    if isinstance(scalar, Parameter) and scalar.type == UNKNOWN:
        return coerce(scalar.declared(target), target, position)
    if not cast_exists(scalar.type, target):
        raise CannotCast(f"cannot cast type {scalar.type} to {target}", position=position)
    if (
        isinstance(scalar, Literal)
        and isinstance(scalar.value, int)
        and not isinstance(scalar.value, bool)
    ):
        try:
            return Literal(target, cast(scalar.value, scalar.type, target))
        except EvaluationError:
            return Cast(target, scalar)
    return Cast(target, scalar)


def told_of(kind: t.SqlType) -> str:
    """The type of PostgreSQL's catalog that clients are told of, or of whose values an array is."""
    own = kind.element if isinstance(kind, t.Array) else kind
    return own.told if isinstance(own, t.Integer | t.BigInt | t.Text) else ""


def _told_as(scalar: Scalar, target: t.SqlType) -> Scalar:
    """The same values: only what clients are told of changes."""
    if told_of(scalar.type) == told_of(target):
        return scalar
    if isinstance(scalar, Literal | ColumnRef | OuterRef):
        return replace(scalar, type=target)
    return Cast(target, scalar)


def _read(literal: Literal, target: t.SqlType, position: int | None) -> Scalar:
    if literal.value is None:
        return Literal(target, None)
    try:
        return Literal(target, cast(literal.value, t.Text(), target))
    except EvaluationError as error:
        if isinstance(target, t.Numeric) and not target.is_plain and not target.trimmed:
            # That it has no room for the digits is told when it is evaluated.
            return Cast(target, _read(literal, t.Numeric(), position))
        error.position = position
        raise


def common_type(types: Sequence[t.SqlType], place: str, position: int | None = None) -> t.SqlType:
    """The type that all of them become in CASE, COALESCE, VALUES, UNION and the like.

    Law (common type): all are of one category; from left to right, a type gives way to one that it
    becomes implicitly and that does not become it. Each must become the last that is left.

    Raises:
        DatatypeMismatch: they are of several categories.
        CannotCast: one of them does not become the type that is left.
    """
    known = [each for each in types if each != UNKNOWN]
    if not known:
        return t.Text()
    result = known[0]
    for each in known[1:]:
        if category(type(result))[0] != category(type(each))[0]:
            message = f"{place} types {result} and {each} cannot be matched"
            raise DatatypeMismatch(message, position=position)
        result = _merge(result, each) or result
    for each in known:
        if _merge(result, each) is None:
            message = f"{place} could not convert type {each} to {result}"
            raise CannotCast(message, position=position)
    return result


def is_open(scalar: Scalar) -> bool:
    """Whether it is a literal, other than NULL, or a parameter whose place gives it its type."""
    is_null = isinstance(scalar, Literal) and scalar.value is None
    return scalar.type == UNKNOWN and not is_null


def common_type_of(scalars: Sequence[Scalar], place: str, position: int | None = None) -> t.SqlType:
    """The common type of scalars; what is open has the digits that are written, and no length."""
    kind = common_type([each.type for each in scalars], place, position)
    return unsized(kind) if any(map(is_open, scalars)) else kind


def compared_type(types: Sequence[t.SqlType]) -> t.SqlType | None:
    """The type as which they are compared; None if there is no operator for it.

    Other than a common type, it may be of another category: a time is compared with an interval.
    Of texts, text wins, and then character(n): blanks at the end count only in the first case. A
    real is compared with another number as double precision.
    """
    known = [each for each in types if each != UNKNOWN]
    if known and all(map(is_text, known)):
        first = next((each for each in known if isinstance(each, t.Text)), None)
        return first or next((t.Char(None) for e in known if isinstance(e, t.Char)), t.Varchar())
    result: t.SqlType | None = known[0] if known else t.Text()
    for each in known[1:]:
        if isinstance(result, t.Array) and isinstance(each, t.Array):
            alike = type(result.element) is type(each.element)
            result = result if alike else None  # arrays do not become others here
        if {type(result), type(each)} & {t.Real} and type(result) is not type(each):
            result = t.Double() if isinstance(result, _NUMBERS) else result
        result = None if result is None else _merge(result, each)
    return result


def _merge(a: t.SqlType, b: t.SqlType) -> t.SqlType | None:
    if a == b:
        return a if told_of(a) == told_of(b) else _both_told(a)
    if isinstance(a, t.Numeric | t.SmallInt | t.Integer | t.BigInt) and isinstance(b, t.Numeric):
        return _merge_numeric(numeric_for(a), b)
    if isinstance(a, t.Numeric) and isinstance(b, t.SmallInt | t.Integer | t.BigInt):
        return _merge_numeric(a, numeric_for(b))
    if isinstance(a, t.Array) and isinstance(b, t.Array):
        element = _merge(a.element, b.element)
        return None if element is None else t.Array(element)
    if is_text(a) and is_text(b):
        return _unbounded(a)  # each becomes the other: the first stays
    if type(a) is type(b):
        return a.unsized if isinstance(a, t.Coded) else None
    if is_implicit(a, type(b)) and not is_implicit(b, type(a)):
        return as_kind(a, type(b))
    if is_implicit(b, type(a)):
        return as_kind(b, type(a))
    return None


def _both_told(kind: t.SqlType) -> t.SqlType:
    """What values of the catalog are beside others: numbers become oids, and names become text."""
    if isinstance(kind, t.Array):
        return t.Array(_both_told(kind.element))
    return type(kind)("oid") if isinstance(kind, t.Integer | t.BigInt) else t.Text()


def is_text(sql_type: t.SqlType) -> bool:
    """Whether it is one of the types of text."""
    return isinstance(sql_type, t.Text | t.Varchar | t.Char)


def _unbounded(sql_type: t.SqlType) -> t.SqlType:
    match sql_type:
        case t.Varchar():
            return t.Varchar()
        case t.Char():
            return t.Char(None)
    return t.Text()


def _merge_numeric(a: t.Numeric, b: t.Numeric) -> t.Numeric:
    if a.precision is None or b.precision is None or a.scale is None or b.scale is None:
        return t.Numeric()
    if a.trimmed or b.trimmed or a.scale != b.scale:
        return t.Numeric()  # each value keeps the digits that it has
    return bounded(max(a.precision - a.scale, b.precision - b.scale), max(a.scale, b.scale))


def fixed_scale(scalar: Scalar) -> Scalar:
    """CASE or COALESCE of numerics of one scale and of zeros, at that scale.

    A sum of it is quick then. Where all is zero, it shows more digits than PostgreSQL's.
    """
    if not t.is_plain(scalar.type) or not isinstance(scalar, Case | Coalesce):
        return scalar
    if isinstance(scalar, Coalesce):
        values = list(scalar.arguments)
    else:
        values = [*(each.value for each in scalar.branches), scalar.default]
    terms = [each for each in values if not (isinstance(each, Literal) and not each.value)]
    kinds = {each.operand.type for each in terms if isinstance(each, Cast)}
    target = next(iter(kinds), None)
    if len(kinds) != 1 or not all(isinstance(each, Cast) for each in terms):
        return scalar
    if not isinstance(target, t.Numeric) or target.is_plain or target.trimmed:
        return scalar
    fixed = [each.operand if isinstance(each, Cast) else coerce(each, target) for each in values]
    if isinstance(scalar, Coalesce):
        return Coalesce(tuple(fixed))
    whens = zip(scalar.branches, fixed, strict=False)
    return Case(tuple(When(each.condition, value) for each, value in whens), fixed[-1])
