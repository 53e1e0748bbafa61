"""Calls by name: the functions of the table, and those that are conditions in disguise."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from sqlglot import exp

from noonmark.errors import (
    DatatypeMismatch,
    GroupingError,
    InvalidSyntax,
    NoonmarkError,
    UndefinedFunction,
    WrongObjectType,
)
from noonmark.rows import types as t
from noonmark.rows.coded import CODED
from noonmark.rows.coded.network import Cidr, Inet
from noonmark.rows.domain import Domain
from noonmark.sql.choose import require_within, resolve
from noonmark.sql.coerce import UNKNOWN, coerce, told_of
from noonmark.sql.dialect import position_of
from noonmark.sql.functions import AGGREGATES, FUNCTIONS, TABLE_FUNCTIONS, WINDOWS
from noonmark.sql.functions.number.fit import bounded
from noonmark.sql.functions.statistics import HYPOTHETICAL
from noonmark.sql.ir.asked import Ask, Now
from noonmark.sql.ir.scalar import (
    Call,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    Compare,
    Literal,
    MakeArray,
    Scalar,
    When,
)
from noonmark.sql.plan.form import cast_to, made_type, record
from noonmark.sql.plan.registered import name_of_number
from noonmark.sql.plan.row import DEFINITIONS, Row, name_of, unsupported
from noonmark.sql.plan.rowset import not_allowed
from noonmark.sql.plan.scalar import call, comparable, plan, plan_value, same_type
from noonmark.sql.plan.subquery import array_subquery

CLOCKS = frozenset(
    ("now", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "timeofday")
)
#: What is another value for every row that is asked for.
CHANCE = frozenset(
    ("random", "setseed", "gen_random_uuid", "pg_sleep", "pg_sleep_for", "pg_sleep_until")
)


def plan_function(tree: exp.Anonymous, row: Row) -> Scalar:
    """A call that is neither an aggregate nor a window function."""
    name, position = name_of(tree.this), position_of(tree)
    if name in AGGREGATES.by_name:
        message = f"aggregate functions are not allowed in {row.place}"
        raise GroupingError(message, position=position)
    if name in WINDOWS.by_name:
        if name in HYPOTHETICAL and tree.expressions:
            require_within(name, [plan(each, row) for each in tree.expressions], position)
        message = f"window function {name} requires an OVER clause"
        raise WrongObjectType(message, position=position)
    if name in TABLE_FUNCTIONS.by_name:
        if row.place in DEFINITIONS:
            raise not_allowed(row.place, tree)
        raise unsupported(f"the set-returning function {name} in {row.place}", tree)
    if name == "mz_now" and not tree.expressions:
        return Now(position)
    session = row.statement.session
    if session is not None and name in session.by_name:
        return ask(name, [plan(each, row) for each in tree.expressions], tree, row)
    if name in CLOCKS:
        raise unsupported(
            f"function {name}",
            tree,
            hint="An answer is a function of the collections at its time: use mz_now() for "
            "that time in a view, or ask for the clock in the SELECT that reads it.",
        )
    if name in CHANCE:
        raise unsupported(
            f"function {name}",
            tree,
            hint="An answer is a function of the collections at its time: "
            "use it in the SELECT that reads them, in INSERT, or as a DEFAULT.",
        )
    if name in _FORMS:
        return _FORMS[name](tree, row)
    if name not in FUNCTIONS.by_name:
        return _type_call(name, tree, row)
    arguments = _arguments(name, tree, row)
    if len(arguments) == 1 and (cast := _as_cast(name, arguments[0], tree)) is not None:
        return cast
    result = call(name, arguments, tree, operator=not name.isidentifier())
    return _scaled(result) if name in ("round", "trunc") else result


def plan_ordered_set(tree: exp.WithinGroup, row: Row) -> NoReturn:
    """WITHIN GROUP where there is no group."""
    name, position = name_of(tree.this.this), position_of(tree.this)
    if name in AGGREGATES.by_name or name in HYPOTHETICAL:
        message = f"aggregate functions are not allowed in {row.place}"
        raise GroupingError(message, position=position)
    raise UndefinedFunction(f"function {name} does not exist", position=position)


def ask(name: str, arguments: Sequence[Scalar], tree: exp.Expr, row: Row) -> Scalar:
    """A question to the session, where one may be asked."""
    session = row.statement.session
    if session is None or name not in session.by_name:
        raise unsupported(
            f"{name} in a query that is kept",
            tree,
            hint="An answer is a function of the collections at its time.",
        )
    entry, coerced = resolve(session, name, arguments, position_of(tree))
    return Ask(entry.id, coerced, entry)


def _arguments(name: str, tree: exp.Anonymous, row: Row) -> list[Scalar]:
    """What a function of the table is given: of an object, its name."""
    *first, last = tree.expressions or [None]
    written = [] if last is None else [*first, *([] if isinstance(last, exp.Variadic) else [last])]
    planned = [plan(_plain(each), row) for each in written]
    found = [name_of_number(each, row.statement) for each in planned]
    return found + (_spread(name, last, row) if isinstance(last, exp.Variadic) else [])


def _spread(name: str, last: exp.Variadic, row: Row) -> list[Scalar]:
    """``VARIADIC array``: its items as so many arguments, where they are written."""
    entries = [each for each in FUNCTIONS.by_name[name] if each.variadic]
    if not entries:
        raise UndefinedFunction(f"function {name} is not variadic", position=position_of(last))
    kind = entries[0].parameters[-1]
    array = plan(last.this, row)
    if array.type == UNKNOWN:
        element = kind() if isinstance(kind, type) else t.Text()
        array = coerce(array, t.Array(element), position_of(last))
    if not isinstance(array.type, t.Array):
        raise DatatypeMismatch("VARIADIC argument must be an array", position=position_of(last))
    if isinstance(array, MakeArray):
        return list(array.elements)
    if isinstance(array, Literal) and array.value is not None:
        return [Literal(array.type.element, each) for each in array.value]
    hint = "Write its items: VARIADIC ARRAY[a, b], or as so many arguments."
    raise unsupported("VARIADIC of an array whose length depends on a row", last, hint=hint)


def _plain(argument: exp.Expr) -> exp.Expr:
    if isinstance(argument, exp.Distinct | exp.Order | exp.Star | exp.Alias | exp.Kwarg):
        raise unsupported(f"{type(argument).__name__} in a function's arguments", argument)
    return argument


def _as_cast(name: str, argument: Scalar, tree: exp.Expr) -> Scalar | None:
    """A call that casts although there is a function: ``int4multirange('{}')``, of no type yet."""
    kind = _CODED.get(name)
    if kind is None or not (argument.type == UNKNOWN or isinstance(argument.type, kind)):
        return None
    return cast_to(argument, kind(), position_of(tree))


_CODED = {kind.spelling: kind for kind in CODED}


def _type_call(name: str, tree: exp.Anonymous, row: Row) -> Scalar:
    """``date(x)``: a cast that looks like a call."""
    try:
        target = t.parse_type(name)
    except NoonmarkError:
        target = None
    if target is None or len(tree.expressions) != 1:
        raise UndefinedFunction(
            f"function {name} does not exist",
            hint="No function of that name is supported.",
            position=position_of(tree),
        )
    return cast_to(plan(tree.expressions[0], row), target, position_of(tree))


def _scaled(result: Scalar) -> Scalar:
    """round(x, 2) and trunc(x, 2) have two digits, which the plan knows if 2 is a literal."""
    assert isinstance(result, Call)
    if len(result.arguments) != 2 or not isinstance(result.type, t.Numeric):
        return result
    value, digits = result.arguments
    if not isinstance(digits, Literal) or digits.value is None or digits.value < 0:
        return result
    assert isinstance(value.type, t.Numeric)
    if value.type.is_plain or value.type.trimmed:
        return result
    target = bounded(value.type.stored_precision - value.type.stored_scale + 1, digits.value)
    return result if target == t.Numeric() else Cast(target, result)


def _some(tree: exp.Anonymous, row: Row) -> list[Scalar]:
    """The arguments of a form of syntax, which has one at least."""
    if not tree.expressions:
        raise InvalidSyntax('syntax error at or near ")"', position=position_of(tree))
    return [plan(each, row) for each in tree.expressions]


def _coalesce(tree: exp.Anonymous, row: Row) -> Scalar:
    scalars = _some(tree, row)
    return Coalesce(tuple(same_type(scalars, "COALESCE", tree)))


def _extreme(tree: exp.Anonymous, row: Row) -> Scalar:
    """GREATEST and LEAST."""
    name, scalars = name_of(tree.this), _some(tree, row)
    return call(name, same_type(scalars, name.upper(), tree), tree, operator=False)


def _nullif(tree: exp.Anonymous, row: Row) -> Scalar:
    if len(tree.expressions) != 2:
        raise UndefinedFunction("NULLIF takes two arguments", position=position_of(tree))
    own = plan_value(tree.expressions[0], row)
    first, second = comparable("=", [own, plan(tree.expressions[1], row)], tree)
    equal = Compare("=", first, second)
    # It has the type in which PostgreSQL compares the first: its own, unless there is no operator.
    if any(isinstance(own.type, kinds) and isinstance(first.type, kinds) for kinds in _COMPARED):
        first = own
    wide = {t.Varchar: t.Text(), Cidr: Inet()}.get(type(first.type), first.type)
    first = coerce(first, wide, position_of(tree))
    return Case((When(equal, Literal(first.type, None)),), first)


#: Types that have operators with each other.
_COMPARED = (
    (t.SmallInt, t.Integer, t.BigInt),
    (t.Real, t.Double),
    (t.Date, t.Timestamp, t.TimestampTz),
)


def _row(tree: exp.Anonymous, row: Row) -> Scalar:
    return record([plan_value(each, row) for each in tree.expressions])


def _array(tree: exp.Anonymous, row: Row) -> Scalar:
    if len(tree.expressions) != 1 or not isinstance(tree.expressions[0], exp.Query):
        raise unsupported("ARRAY() of something other than a query", tree)
    return array_subquery(tree.expressions[0], row)


#: The parameters of make_interval, of which any may be left out.
_INTERVAL_PARTS = ("years", "months", "weeks", "days", "hours", "mins", "secs")


def _make_interval(tree: exp.Anonymous, row: Row) -> Scalar:
    """``make_interval(1, days => 3)``: what is not given is zero."""
    given: list[Scalar | None] = [None] * len(_INTERVAL_PARTS)
    for at, each in enumerate(tree.expressions):
        named = isinstance(each, exp.Kwarg)
        name = name_of(each.this) if named else ""
        place = _INTERVAL_PARTS.index(name) if name in _INTERVAL_PARTS else at
        if (named and name not in _INTERVAL_PARTS) or place >= len(given) or given[place]:
            raise UndefinedFunction(
                "function make_interval does not exist with these arguments",
                position=position_of(tree),
            )
        given[place] = plan(each.expression if named else each, row)
    filled = [Literal(t.Integer(), 0) if each is None else each for each in given]
    return call("make_interval", filled, tree, operator=False)


def _quoted(tree: exp.Anonymous, row: Row) -> Scalar:
    """Of a value of any type its text is quoted."""
    planned = [name_of_number(plan(each, row), row.statement) for each in tree.expressions]
    texts = [coerce(each, t.Text(), position_of(tree)) for each in planned]
    return call(name_of(tree.this), texts, tree, operator=False)


def _plus(tree: exp.Anonymous, row: Row) -> Scalar:
    """``+ x``: the number itself."""
    result = call("+", [plan(each, row) for each in tree.expressions], tree, operator=True)
    assert isinstance(result, Call)
    return result.arguments[0]


def _to_text(tree: exp.Anonymous, row: Row) -> Scalar:
    if len(tree.expressions) != 1:
        return _type_call(name_of(tree.this), tree, row)  # which says that there is none
    return coerce(plan(tree.expressions[0], row), t.Text(), position_of(tree))


def _domain_of(tree: exp.Expr, row: Row) -> Domain | None:
    """What a column is declared as, or what a cast is to, if that is a domain."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Cast):
        made = made_type(tree.args["to"], row.statement)
        return made if isinstance(made, Domain) else None
    if not isinstance(tree, exp.Column):
        return None
    found = plan(tree, row)
    if not isinstance(found, ColumnRef):
        return None
    columns = row.columns if row.relation is None else row.relation.schema.columns
    return columns[found.index].domain


def _type_name(tree: exp.Anonymous, row: Row) -> Scalar:
    """pg_typeof: the name of a type, without what it was declared with."""
    if len(tree.expressions) != 1:
        raise UndefinedFunction("pg_typeof takes one argument", position=position_of(tree))
    domain = _domain_of(tree.expressions[0], row)
    if domain is not None:
        return Literal(t.Text("regtype"), str(domain))
    kind = plan(_plain(tree.expressions[0]), row).type
    told = told_of(kind)
    if told:
        shown = '"char"' if told == "char" else told
        return Literal(t.Text("regtype"), f"{shown}[]" if isinstance(kind, t.Array) else shown)
    if isinstance(kind, t.Char):
        return Literal(t.Text("regtype"), kind.spelling)
    return Literal(t.Text("regtype"), re.sub(r"\(\d+(,-?\d+)?\)", "", str(kind)))


def _collation_for(tree: exp.Anonymous, row: Row) -> Scalar:
    """``COLLATION FOR (x)``: the collation that an expression has, as SQL writes it."""
    if len(tree.expressions) != 1:
        raise UndefinedFunction("pg_collation_for takes one argument", position=position_of(tree))
    written = tree.expressions[0]
    while isinstance(written, exp.Paren):
        written = written.this
    kind = plan(_plain(written), row).type
    if kind == UNKNOWN and not isinstance(written, exp.Collate):
        return Literal(t.Text(), None)
    if kind != UNKNOWN and not isinstance(kind, t.Text | t.Varchar | t.Char):
        message = f"collations are not supported by type {kind}"
        raise DatatypeMismatch(message, position=position_of(tree))
    name = written.expression.name if isinstance(written, exp.Collate) else "default"
    return Literal(t.Text(), f'"{name}"')


def _in_own_zone(tree: exp.Anonymous, row: Row) -> Scalar:
    """``timezone(x)``: x in the session's time zone, which casts go by."""
    if len(tree.expressions) != 1:
        return call("timezone", [plan(_plain(x), row) for x in tree.expressions], tree, False)
    stamp = plan(_plain(tree.expressions[0]), row)
    if not isinstance(stamp.type, t.Timestamp | t.TimestampTz):
        raise UndefinedFunction(
            f"function timezone({stamp.type}) does not exist", position=position_of(tree)
        )
    other = t.TimestampTz() if isinstance(stamp.type, t.Timestamp) else t.Timestamp()
    return cast_to(stamp, other, position_of(tree))


def _age(tree: exp.Anonymous, row: Row) -> Scalar:
    """``age(x)``: since x until this day began."""
    arguments = [plan(_plain(each), row) for each in tree.expressions]
    if len(arguments) != 1 or not isinstance(
        arguments[0].type, t.Date | t.Timestamp | t.TimestampTz
    ):
        return call("age", arguments, tree, operator=False)
    plain = isinstance(arguments[0].type, t.Timestamp)
    kind = t.Timestamp() if plain else t.TimestampTz()
    today = coerce(ask("current_date", [], tree, row), kind)
    return call("age", [today, coerce(arguments[0], kind)], tree, operator=False)


def _merge_action(tree: exp.Anonymous, _: Row) -> NoReturn:
    message = "MERGE_ACTION() can only be used in the RETURNING list of a MERGE command"
    raise InvalidSyntax(message, position=position_of(tree))


_FORMS: dict[str, Callable[[Any, Row], Scalar]] = {
    "coalesce": _coalesce,
    "greatest": _extreme,
    "least": _extreme,
    "nullif": _nullif,
    "row": _row,
    "array": _array,
    "text": _to_text,
    "+": _plus,
    "make_interval": _make_interval,
    "pg_typeof": _type_name,
    "timezone": _in_own_zone,
    "pg_collation_for": _collation_for,
    "quote_literal": _quoted,
    "quote_nullable": _quoted,
    "merge_action": _merge_action,
    "age": _age,
}
