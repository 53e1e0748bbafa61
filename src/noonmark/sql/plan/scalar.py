"""Expressions: a syntax tree and the row that it sees to a `Scalar`.

One function per kind of node, in the table at the end; a node that is not in the table is refused
by name. A quoted literal stays of type unknown until its place gives it a type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp

from noonmark.errors import (
    DatatypeMismatch,
    InvalidSyntax,
    InvalidValue,
    NoonmarkError,
    UndefinedFunction,
)
from noonmark.rows import types as t
from noonmark.rows.pginterval import parse_interval
from noonmark.sql.coerce import UNKNOWN, coerce, common_type, resolve, settle
from noonmark.sql.dialect import position_of
from noonmark.sql.functions import FUNCTIONS
from noonmark.sql.functions.fit import numeric_for
from noonmark.sql.functions.order import is_ordered
from noonmark.sql.functions.truncate import unit_name
from noonmark.sql.ir.scalar import (
    BOOLEAN,
    And,
    Call,
    Case,
    Compare,
    FieldRef,
    InList,
    Is,
    IsDistinct,
    Literal,
    MakeArray,
    MakeRecord,
    Not,
    Or,
    Scalar,
    When,
    conjuncts,
)
from noonmark.sql.plan.row import Row, name_of, unsupported


def plan(tree: exp.Expr, row: Row) -> Scalar:
    """The scalar that a syntax tree means; it may still be of type unknown."""
    if not isinstance(tree, exp.Expr):
        raise InvalidSyntax(f"an expression is missing in {row.place}")
    found = row.computed.get(tree)
    if found is not None:
        return found
    if row.match is not None:
        matched = row.match(tree)
        if matched is not None:
            return matched
    planner = PLANNERS.get(type(tree))
    if planner is None:
        raise unsupported(type(tree).__name__, tree)
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
    target = common_type([each.type for each in scalars], place, position_of(tree))
    return [coerce(each, target, position_of(tree)) for each in scalars]


def compare(op: str, left: Scalar, right: Scalar, tree: exp.Expr) -> Scalar:
    """A comparison, both sides as one kind."""
    a, b = comparable(op, [left, right], tree)
    return Compare(op, a, b)


def comparable(op: str, scalars: Sequence[Scalar], tree: exp.Expr) -> list[Scalar]:
    """The scalars as one kind. Numerics keep their scales: they compare as they are."""
    position = position_of(tree)
    known = [each.type for each in scalars if each.type != UNKNOWN]
    try:
        target = common_type(known, "comparison", position)
    except DatatypeMismatch:
        shown = f" {op} ".join(str(each) for each in known[:2])
        raise UndefinedFunction(
            f"operator does not exist: {shown}",
            hint="No operator matches the given name and argument types. "
            "You might need to add explicit type casts.",
            position=position,
        ) from None
    if op not in ("=", "<>") and not is_ordered(target):
        raise UndefinedFunction(f"operator does not exist: {target} {op} {target}")
    return [_as_kind(each, target, position) for each in scalars]


def _as_kind(scalar: Scalar, target: t.SqlType, position: int | None) -> Scalar:
    if type(scalar.type) is type(target) and not isinstance(target, t.Array | t.Record):
        return scalar
    if isinstance(target, t.Numeric) and scalar.type != UNKNOWN:
        return coerce(scalar, numeric_for(scalar.type), position)
    if isinstance(target, t.Char) and isinstance(scalar, Literal) and scalar.value is not None:
        return Literal(t.Char(max(len(scalar.value), 1)), scalar.value.ljust(1))
    if isinstance(target, t.Varchar):
        return coerce(scalar, t.Varchar(), position)
    return coerce(scalar, target, position)


# --- leaves


def _column(tree: exp.Column, row: Row) -> Scalar:
    if tree.args.get("db") is not None:
        raise unsupported("a column name of three parts", tree)
    table = tree.args.get("table")
    return row.named(
        name_of(tree.this), None if table is None else name_of(table), position_of(tree)
    )


def _literal(tree: exp.Literal, _: Row) -> Scalar:
    if tree.is_string:
        return Literal(UNKNOWN, tree.this)
    return number(tree.this)


def number(text: str) -> Literal:
    """A number as written: integer, bigint or numeric, whichever is first to hold it.

    What has more digits than a numeric is a double precision (PostgreSQL: still a numeric).
    """
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
        if math.isinf(float(value)):
            raise InvalidValue(f"{text[:50]} has more than {t.NUMERIC_PRECISION_MAX} digits")
        return Literal(t.Double(), float(value))
    return Literal(
        t.Numeric(max(digits, scale, 1), scale), value.quantize(Decimal(1).scaleb(-scale))
    )


def _null(_: exp.Null, __: Row) -> Scalar:
    return Literal(UNKNOWN, None)


def _boolean(tree: exp.Boolean, _: Row) -> Scalar:
    return Literal(BOOLEAN, bool(tree.this))


def _escaped_string(tree: exp.ByteString, _: Row) -> Scalar:
    return Literal(UNKNOWN, tree.this)


def _interval(tree: exp.Interval, _: Row) -> Scalar:
    text, unit = tree.this, tree.args.get("unit")
    if not isinstance(text, exp.Literal) or isinstance(unit, exp.IntervalSpan):
        raise unsupported("an interval that is not one literal with at most one unit", tree)
    words = text.this if unit is None else f"{text.this} {unit.name}"
    try:
        return Literal(t.Interval(), parse_interval(words))
    except InvalidValue as error:
        raise InvalidValue(error.message, position=position_of(tree)) from None


def _paren(tree: exp.Paren, row: Row) -> Scalar:
    return plan(tree.this, row)


# --- operators


def _operator(name: str) -> Callable[[Any, Row], Scalar]:
    def act(tree: exp.Binary, row: Row) -> Scalar:
        arguments = [plan(tree.this, row), plan(tree.expression, row)]
        if name == "||":
            arguments = _joinable(arguments, tree)
        return call(name, arguments, tree, operator=True)

    return act


def _joinable(arguments: list[Scalar], tree: exp.Expr) -> list[Scalar]:
    """Text joins with anything but arrays, documents and bytes; those join with their own."""
    types = [each.type for each in arguments]
    apart = (t.Array, t.Jsonb, t.Bytea)
    is_text = any(isinstance(each, t.Text | t.Varchar | t.Char) for each in types)
    if any(isinstance(each, apart) for each in types) or not (is_text or UNKNOWN in types):
        return arguments
    return [coerce(each, t.Text(), position_of(tree)) for each in arguments]


def _unary(name: str) -> Callable[[Any, Row], Scalar]:
    def act(tree: exp.Unary, row: Row) -> Scalar:
        operand = plan(tree.this, row)
        written = isinstance(tree.this, exp.Literal) and not tree.this.is_string
        if name == "-" and written and isinstance(operand, Literal):
            return Literal(operand.type, -operand.value)
        return call(name, [operand], tree, operator=True)

    return act


def _comparison(op: str) -> Callable[[Any, Row], Scalar]:
    def act(tree: exp.Binary, row: Row) -> Scalar:
        left, right = _unwrap(tree.this), _unwrap(tree.expression)
        quantifier = _quantifier(right)
        if quantifier is not None:
            return _quantified(op, tree, quantifier, row)
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
            return _row_compare(op, left, right, tree, row)
        return compare(op, plan(tree.this, row), plan(tree.expression, row), tree)

    return act


def _unwrap(tree: exp.Expr) -> exp.Expr:
    return tree.this if isinstance(tree, exp.Paren) else tree


def _quantifier(tree: exp.Expr) -> tuple[str, exp.Expr] | None:
    """ANY, SOME or ALL, and what it ranges over."""
    if isinstance(tree, exp.Any | exp.All):
        return ("all" if isinstance(tree, exp.All) else "any"), _unwrap(tree.this)
    if isinstance(tree, exp.Anonymous) and tree.name.lower() in ("all", "some"):
        return ("all" if tree.name.lower() == "all" else "any"), tree.expressions[0]
    return None


def _quantified(op: str, tree: exp.Binary, quantifier: tuple[str, exp.Expr], row: Row) -> Scalar:
    word, over = quantifier
    if isinstance(over, exp.Query):
        from noonmark.sql.plan.subquery import quantified

        return quantified(op, word, tree.this, over, row)
    array = plan(over, row)
    item = plan(tree.this, row)
    if array.type == UNKNOWN:
        array = coerce(array, t.Array(settle(item).type), position_of(tree))
    return call(f"{op} {word}", [item, array], tree, operator=False)


def _row_compare(op: str, left: exp.Tuple, right: exp.Tuple, tree: exp.Expr, row: Row) -> Scalar:
    if len(left.expressions) != len(right.expressions):
        raise InvalidSyntax("unequal number of entries in row expressions")
    pairs = [
        (plan(a, row), plan(b, row))
        for a, b in zip(left.expressions, right.expressions, strict=True)
    ]
    return compare_rows(op, pairs, tree)


def compare_rows(op: str, pairs: Sequence[tuple[Scalar, Scalar]], tree: exp.Expr) -> Scalar:
    """``(a, b) op (c, d)``: equality of all, or the order of the first that differ."""
    if op == "=":
        return And(tuple(compare("=", a, b, tree) for a, b in pairs))
    if op == "<>":
        return Or(tuple(compare("<>", a, b, tree) for a, b in pairs))
    strict = op[0]
    parts: list[Scalar] = []
    for at, (a, b) in enumerate(pairs):
        same = [compare("=", *pair, tree) for pair in pairs[:at]]
        last = op if at == len(pairs) - 1 else strict
        parts.append(And((*same, compare(last, a, b, tree))))
    return Or(tuple(parts))


def _and(tree: exp.And, row: Row) -> Scalar:
    parts = [plan_boolean(each, row, "AND") for each in (tree.this, tree.expression)]
    return And(tuple(part for each in parts for part in conjuncts(each)))


def _or(tree: exp.Or, row: Row) -> Scalar:
    parts = [plan_boolean(each, row, "OR") for each in (tree.this, tree.expression)]
    flat = [part for each in parts for part in (each.parts if isinstance(each, Or) else (each,))]
    return Or(tuple(flat))


def _not(tree: exp.Not, row: Row) -> Scalar:
    if type(tree.this) in _PATTERNS and _quantifier(_unwrap(tree.this.expression)) is not None:
        # x NOT LIKE ALL (..) and NOT x LIKE ALL (..) differ, and the tree does not tell them apart.
        raise unsupported("NOT LIKE ANY or ALL", tree)
    return Not(plan_boolean(tree.this, row, "NOT"))


def _is(tree: exp.Is, row: Row) -> Scalar:
    wanted = tree.expression
    if isinstance(wanted, exp.Null):
        result: Scalar = Is(plan_value(tree.this, row), None)
    elif isinstance(wanted, exp.Boolean):
        result = Is(plan_boolean(tree.this, row, "IS"), bool(wanted.this))
    else:
        raise unsupported(f"IS {type(wanted).__name__}", tree)
    return Not(result) if tree.args.get("negate") else result


def _distinct_from(negated: bool) -> Callable[[Any, Row], Scalar]:
    def act(tree: exp.Binary, row: Row) -> Scalar:
        a, b = comparable("=", [plan(tree.this, row), plan(tree.expression, row)], tree)
        return Not(IsDistinct(a, b)) if negated else IsDistinct(a, b)

    return act


def _between(tree: exp.Between, row: Row) -> Scalar:
    value = plan(tree.this, row)
    low, high = plan(tree.args["low"], row), plan(tree.args["high"], row)
    inside = And((compare(">=", value, low, tree), compare("<=", value, high, tree)))
    if not tree.args.get("symmetric"):
        return inside
    turned = And((compare(">=", value, high, tree), compare("<=", value, low, tree)))
    return Or((inside, turned))


def _in(tree: exp.In, row: Row) -> Scalar:
    query = tree.args.get("query")
    if query is not None:
        from noonmark.sql.plan.subquery import quantified

        return quantified("=", "any", tree.this, query, row)
    left, items = _unwrap(tree.this), tree.expressions
    if not items:
        raise unsupported("IN over something other than a list or a query", tree)
    if isinstance(left, exp.Tuple):
        rows = []
        for item in items:
            if not isinstance(item, exp.Tuple):
                raise DatatypeMismatch("IN mixes rows and values", position=position_of(item))
            rows.append(_row_compare("=", left, item, tree, row))
        return Or(tuple(rows))
    operand, *values = comparable("=", [plan(each, row) for each in (left, *items)], tree)
    return InList(operand, tuple(values))


def _pattern(name: str) -> Callable[[Any, Row], Scalar]:
    def act(tree: exp.Binary, row: Row) -> Scalar:
        quantifier = _quantifier(_unwrap(tree.expression))
        if quantifier is not None:
            return _like_each(name, tree, quantifier, row)
        result = call(name, [plan(tree.this, row), plan(tree.expression, row)], tree, False)
        return Not(result) if tree.args.get("negate") else result

    return act


def _like_each(name: str, tree: exp.Binary, quantifier: tuple[str, exp.Expr], row: Row) -> Scalar:
    """``x LIKE ANY (ARRAY[...])``: of a written array, one by one."""
    word, over = quantifier
    if not isinstance(over, exp.Array):
        raise unsupported(f"{name.upper()} {word.upper()} of something but ARRAY[...]", tree)
    text = plan(tree.this, row)
    tests = tuple(call(name, [text, plan(e, row)], tree, False) for e in over.expressions)
    result = Or(tests) if word == "any" else And(tests)
    return Not(result) if tree.args.get("negate") else result


def _escape(tree: exp.Escape, row: Row) -> Scalar:
    inner = tree.this
    names = {exp.Like: "like", exp.ILike: "ilike"}
    if type(inner) not in names:
        raise unsupported(f"ESCAPE of {type(inner).__name__}", tree)
    arguments = [plan(each, row) for each in (inner.this, inner.expression, tree.expression)]
    result = call(names[type(inner)], arguments, tree, operator=False)
    return Not(result) if inner.args.get("negate") else result


# --- conditions and casts


def _case(tree: exp.Case, row: Row) -> Scalar:
    branches = tree.args["ifs"]
    operand = tree.this
    conditions = []
    for branch in branches:
        if operand is None:
            conditions.append(plan_boolean(branch.this, row, "CASE/WHEN"))
        else:
            conditions.append(compare("=", plan(operand, row), plan(branch.this, row), branch))
    default = tree.args.get("default")
    values = [plan(branch.args["true"], row) for branch in branches]
    values.append(Literal(UNKNOWN, None) if default is None else plan(default, row))
    *results, otherwise = same_type(values, "CASE", tree)
    whens = tuple(When(c, v) for c, v in zip(conditions, results, strict=True))
    return Case(whens, otherwise)


def type_named(tree: exp.DataType) -> t.SqlType:
    """The type that a syntax tree spells."""
    try:
        return t.parse_type(tree.sql(dialect="postgres"))
    except NoonmarkError as error:
        error.position = error.position or position_of(tree)
        raise


def _cast(tree: exp.Cast, row: Row) -> Scalar:
    return cast_to(plan(tree.this, row), type_named(tree.args["to"]), position_of(tree))


def cast_to(scalar: Scalar, target: t.SqlType, position: int | None) -> Scalar:
    """An explicit cast. To plain numeric, a number keeps the digits that it has."""
    if target == t.Numeric() and isinstance(
        scalar.type, t.SmallInt | t.Integer | t.BigInt | t.Numeric
    ):
        target = numeric_for(scalar.type)
    return coerce(scalar, target, position)


def _collate(tree: exp.Collate, row: Row) -> Scalar:
    if tree.expression.name.upper() not in ("C", "POSIX", "DEFAULT"):
        raise unsupported(f'collation "{tree.expression.name}"', tree)
    return plan(tree.this, row)


# --- functions with a syntax of their own


def _extract(tree: exp.Extract, row: Row) -> Scalar:
    field = unit_name(tree.this.name)
    source = plan(tree.expression, row)
    name = f"extract {field}"
    if name not in FUNCTIONS.by_name:
        raise unsupported(f'the unit "{field}" of EXTRACT', tree)
    return call(name, [source], tree, operator=False)


def _substring(tree: exp.Substring, row: Row) -> Scalar:
    parts = [tree.this, tree.args.get("start"), tree.args.get("length")]
    if parts[1] is None:
        parts[1] = exp.Literal.number(1)
    return call("substring", [plan(p, row) for p in parts if p is not None], tree, operator=False)


def _trim(tree: exp.Trim, row: Row) -> Scalar:
    position = tree.args.get("position") or "BOTH"
    name = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}[str(position).upper()]
    parts = [part for part in (tree.this, tree.expression) if part is not None]
    return call(name, [plan(part, row) for part in parts], tree, operator=False)


def _position(tree: exp.StrPosition, row: Row) -> Scalar:
    arguments = [plan(tree.this, row), plan(tree.args["substr"], row)]
    return call("strpos", arguments, tree, operator=False)


def _overlay(tree: exp.Overlay, row: Row) -> Scalar:
    text, new = plan(tree.this, row), plan(tree.expression, row)
    start = coerce(plan(tree.args["from_"], row), t.Integer(), position_of(tree))
    span = tree.args.get("for_")
    length = call("length", [new], tree, False) if span is None else plan(span, row)
    one = Literal(t.Integer(), 1)
    before = call("-", [start, one], tree, operator=True)
    rest = call("+", [start, length], tree, operator=True)
    head = call("substring", [text, one, before], tree, operator=False)
    tail = call("substring", [text, rest], tree, operator=False)
    return call("||", [call("||", [head, settle(new)], tree, True), tail], tree, operator=True)


def _at_time_zone(tree: exp.AtTimeZone, row: Row) -> Scalar:
    return call("timezone", [plan(tree.args["zone"], row), plan(tree.this, row)], tree, False)


def _array(tree: exp.Array, row: Row) -> Scalar:
    items = [plan(each, row) for each in tree.expressions]
    if not items:
        raise DatatypeMismatch("cannot determine type of empty array", position=position_of(tree))
    elements = same_type(items, "ARRAY", tree)
    return MakeArray(t.Array(elements[0].type), tuple(elements))


def _tuple(tree: exp.Tuple, row: Row) -> Scalar:
    return record([plan_value(each, row) for each in tree.expressions])


def record(values: Sequence[Scalar]) -> Scalar:
    """ROW(...): its fields are called f1, f2, ..."""
    fields = tuple(t.Field(f"f{at}", each.type) for at, each in enumerate(values, 1))
    return MakeRecord(t.Record(fields), tuple(values))


def _bracket(tree: exp.Bracket, row: Row) -> Scalar:
    array = plan(tree.this, row)
    if len(tree.expressions) != 1:
        raise unsupported("a subscript of several dimensions", tree)
    (at,) = tree.expressions
    if isinstance(array.type, t.Jsonb):
        return call("->", [array, plan(at, row)], tree, operator=True)
    if isinstance(at, exp.Slice):
        if at.this is None or at.expression is None:
            raise unsupported("a slice without both bounds", tree)
        return call("slice", [array, plan(at.this, row), plan(at.expression, row)], tree, False)
    return call("subscript", [array, plan(at, row)], tree, operator=False)


def _dot(tree: exp.Dot, row: Row) -> Scalar:
    source, field = plan(tree.this, row), name_of(tree.expression)
    names = [f.name for f in source.type.fields] if isinstance(source.type, t.Record) else []
    if field not in names:
        raise DatatypeMismatch(
            f'column "{field}" not found in data type {source.type}', position=position_of(tree)
        )
    return FieldRef(source, names.index(field))


def _subquery(tree: exp.Expr, row: Row) -> Scalar:
    from noonmark.sql.plan.subquery import scalar_subquery

    return scalar_subquery(tree, row)


def _exists(tree: exp.Exists, row: Row) -> Scalar:
    from noonmark.sql.plan.subquery import exists

    return exists(tree.this, row)


def _now(tree: exp.Expr, _: Row) -> Scalar:
    raise unsupported(
        f"{tree.key} in a query",
        tree,
        hint="An answer is a function of the collections at its time.",
    )


def _function(tree: exp.Anonymous, row: Row) -> Scalar:
    from noonmark.sql.plan.function import plan_function

    return plan_function(tree, row)


_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.Pow: "^",
    exp.DPipe: "||",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "#",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.ArrayContainsAll: "@>",
    exp.ArrayContainedBy: "<@",
    exp.ArrayOverlaps: "&&",
    exp.JSONBContainsAnyTopKeys: "?|",
    exp.JSONBContainsAllTopKeys: "?&",
}
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_PATTERNS: dict[type[exp.Expr], str] = {
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.SimilarTo: "similar to",
    exp.RegexpLike: "~",
    exp.RegexpILike: "~*",
}

PLANNERS: dict[type[exp.Expr], Callable[[Any, Row], Scalar]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.ByteString: _escaped_string,
    exp.Interval: _interval,
    exp.Paren: _paren,
    **{kind: _operator(name) for kind, name in _OPERATORS.items()},
    **{kind: _comparison(op) for kind, op in _COMPARISONS.items()},
    **{kind: _pattern(name) for kind, name in _PATTERNS.items()},
    exp.Neg: _unary("-"),
    exp.BitwiseNot: _unary("~"),
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _not,
    exp.Is: _is,
    exp.NullSafeEQ: _distinct_from(negated=True),
    exp.NullSafeNEQ: _distinct_from(negated=False),
    exp.Between: _between,
    exp.In: _in,
    exp.Escape: _escape,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Collate: _collate,
    exp.Extract: _extract,
    exp.Substring: _substring,
    exp.Trim: _trim,
    exp.StrPosition: _position,
    exp.Overlay: _overlay,
    exp.AtTimeZone: _at_time_zone,
    exp.Array: _array,
    exp.Tuple: _tuple,
    exp.Bracket: _bracket,
    exp.Dot: _dot,
    exp.Subquery: _subquery,
    exp.Select: _subquery,
    exp.Exists: _exists,
    exp.CurrentDate: _now,
    exp.CurrentTime: _now,
    exp.CurrentTimestamp: _now,
    exp.Localtime: _now,
    exp.Localtimestamp: _now,
    exp.Anonymous: _function,
}
