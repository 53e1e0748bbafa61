"""Operators: arithmetic, comparisons, patterns, and the logic that joins them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp

from noonmark.errors import (
    CannotCast,
    DatatypeMismatch,
    InvalidSyntax,
    UndefinedFunction,
)
from noonmark.rows import types as t
from noonmark.rows.coded.bits import Bit, Varbit
from noonmark.rows.order import has_equality
from noonmark.sql.coerce import UNKNOWN, coerce, common_type, compared_type, is_text, settle
from noonmark.sql.dialect import position_of
from noonmark.sql.ir.scalar import (
    And,
    Call,
    Case,
    FieldRef,
    InList,
    Is,
    IsDistinct,
    Literal,
    Not,
    Or,
    Scalar,
    When,
    columns_of,
    conjuncts,
)
from noonmark.sql.plan.registered import name_of_number
from noonmark.sql.plan.row import Row, name_of, unsupported
from noonmark.sql.plan.scalar import (
    Planner,
    as_kind_of,
    call,
    comparable,
    compare,
    plan,
    plan_boolean,
    plan_value,
)


def _operator(name: str) -> Callable[[Any, Row], Scalar]:
    def act(tree: exp.Binary, row: Row) -> Scalar:
        arguments = [plan(tree.this, row), plan(tree.expression, row)]
        if name == "||":
            arguments = _joinable([name_of_number(x, row.statement) for x in arguments], tree)
        return _in_order(call(name, arguments, tree, operator=True))

    return act


def _path_match(tree: exp.MatchAgainst, row: Row) -> Scalar:
    """``document @@ path``, which is read as the match of a path against documents."""
    arguments = [*(plan(each, row) for each in tree.expressions), plan(tree.this, row)]
    return call("@@", arguments, tree, operator=True)


def _in_order(made: Scalar) -> Scalar:
    """Sums in which PostgreSQL evaluates the time first, although it stands behind."""
    turned = _TURNED.get(made.function) if isinstance(made, Call) else None
    if turned is None or not isinstance(made, Call):
        return made
    return Call(turned, made.arguments[::-1])


_TIMES = (t.Date, t.Timestamp, t.TimestampTz)
_TURNED = {
    f"+({by.spelling}, {kind.spelling})": f"+({kind.spelling}, {by.spelling})"
    for kind in _TIMES
    for by in (t.Interval, *((t.Integer,) if kind is t.Date else ()))
}


def _joinable(arguments: list[Scalar], tree: exp.Expr) -> list[Scalar]:
    """Text joins with anything but arrays; a literal is a document or bytes beside one."""
    types = [each.type for each in arguments]
    if any(isinstance(each, t.Array) for each in types):
        return arguments
    is_text = any(isinstance(each, t.Text | t.Varchar | t.Char) for each in types)
    is_own = any(isinstance(each, t.Jsonb | t.Bytea | Bit | Varbit) for each in types)
    if not is_text and (is_own or UNKNOWN not in types):
        return arguments
    return [coerce(each, t.Text(), position_of(tree)) for each in arguments]


def _root(name: str) -> Callable[[Any, Row], Scalar]:
    """``|/ x`` and ``||/ x``, which are of double precision whatever x is."""

    def act(tree: exp.Unary, row: Row) -> Scalar:
        operand = coerce(plan(tree.this, row), t.Double(), position_of(tree))
        return call(name, [operand], tree, operator=False)

    return act


def _unary(name: str) -> Callable[[Any, Row], Scalar]:
    def act(tree: exp.Unary, row: Row) -> Scalar:
        if name == "-" and (written := _written(tree)) is not None:
            number, negative = written
            operand = plan(number, row)
            if isinstance(operand, Literal):
                return _negative(operand) if negative else operand
        return call(name, [plan(tree.this, row)], tree, operator=True)

    return act


def _written(tree: exp.Expr) -> tuple[exp.Literal, bool] | None:
    """A number with its minus signs, which are a part of it: ``-(-2147483648)`` is a bigint."""
    negative = False
    while isinstance(tree, exp.Neg | exp.Paren):
        negative ^= isinstance(tree, exp.Neg)
        tree = tree.this
    return (tree, negative) if isinstance(tree, exp.Literal) and not tree.is_string else None


def _negative(written: Literal) -> Literal:
    """A number that was written with a minus: the least of a type has no counterpart above."""
    number = written.value  # a Decimal's own minus rounds to the digits of a context
    value = number.copy_negate() if isinstance(number, Decimal) and number else -number
    if isinstance(written.type, t.BigInt) and value == -(1 << 31):
        return Literal(t.Integer(), value)
    if isinstance(written.type, t.Numeric) and value == -(1 << 63):
        return Literal(t.BigInt(), int(value))
    return Literal(written.type, value)


def _comparison(op: str) -> Callable[[Any, Row], Scalar]:
    def act(tree: exp.Binary, row: Row) -> Scalar:
        left, right = _unwrap(tree.this), _unwrap(tree.expression)
        quantifier = _quantifier(right)
        if quantifier is not None:
            return _quantified(op, tree, quantifier, row)
        rows = row_fields(left), row_fields(right)
        if rows[0] is not None and rows[1] is not None:
            return compare_rows(op, _pairs(rows[0], rows[1], row), tree)
        if rows[0] is not None and isinstance(right, exp.Query):
            from noonmark.sql.plan.subquery import row_subquery  # door: it uses this module

            values = row_subquery(right, len(rows[0]), row)
            fields = [plan(each, row) for each in rows[0]]
            return compare_rows(op, list(zip(fields, values, strict=True)), tree)
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
        from noonmark.sql.plan.subquery import quantified  # door: it uses this module

        return quantified(op, word, tree.this, over, row)
    array = plan(over, row)
    item = plan(tree.this, row)
    if array.type == UNKNOWN:
        array = coerce(array, t.Array(settle(item).type), position_of(tree))
    if isinstance(array.type, t.Array) and not has_equality(array.type.element):
        shown = f"{array.type.element if item.type == UNKNOWN else item.type} {op}"
        raise UndefinedFunction(
            f"operator does not exist: {shown} {array.type.element}", position=position_of(tree)
        )
    if isinstance(array.type, t.Array) and item.type != UNKNOWN:
        kind = compared_type([item.type, array.type.element])
        if kind is not None and (is_text(kind) or isinstance(kind, t.Double)):
            item = coerce(item, kind, position_of(tree))
            array = coerce(array, t.Array(kind), position_of(tree))
    return call(f"{op} {word}", [item, array], tree, operator=False)


def row_fields(tree: exp.Expr) -> list[exp.Expr] | None:
    """What stands in a row that is written, ``(a, b)`` or ``ROW(a, b)``, each of its own type."""
    tree = _unwrap(tree)
    is_row = isinstance(tree, exp.Anonymous) and name_of(tree.this) == "row"
    return list(tree.expressions) if is_row or isinstance(tree, exp.Tuple) else None


def _pairs(left: list[exp.Expr], right: list[exp.Expr], row: Row) -> list[tuple[Scalar, Scalar]]:
    if len(left) != len(right):
        raise InvalidSyntax("unequal number of entries in row expressions")
    return [(plan(a, row), plan(b, row)) for a, b in zip(left, right, strict=True)]


def compare_rows(op: str, pairs: Sequence[tuple[Scalar, Scalar]], tree: exp.Expr) -> Scalar:
    """``(a, b) op (c, d)``: equality of all, or the order of the first that differ."""
    if op == "=":
        return And(tuple(compare("=", a, b, tree) for a, b in pairs))
    if op == "<>":
        return Or(tuple(compare("<>", a, b, tree) for a, b in pairs))
    *before, last = pairs
    # What stands behind a pair that decides is not looked at: it may have no value.
    decided = compare(op, *last, tree)
    for a, b in reversed(before):
        decided = Case((When(compare("=", a, b, tree), decided),), compare(op[0], a, b, tree))
    return decided


def _chain(tree: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The operands of a chain of one operator, from the left."""
    operands: list[exp.Expr] = []
    while type(tree) is kind:
        operands.append(tree.expression)
        tree = tree.this
    return [tree, *reversed(operands)]


def _and(tree: exp.And, row: Row) -> Scalar:
    parts = [plan_boolean(each, row, "AND") for each in _chain(tree, exp.And)]
    return And(tuple(part for each in parts for part in conjuncts(each)))


def _or(tree: exp.Or, row: Row) -> Scalar:
    parts = [plan_boolean(each, row, "OR") for each in _chain(tree, exp.Or)]
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
        value = plan_value(tree.this, row)
        if isinstance(value.type, t.Record):
            return _is_null_row(value, bool(tree.args.get("negate")))
        result: Scalar = Is(value, None)
    elif isinstance(wanted, exp.Boolean):
        result = Is(plan_boolean(tree.this, row, "IS"), bool(wanted.this))
    else:
        raise unsupported(f"IS {type(wanted).__name__}", tree)
    return Not(result) if tree.args.get("negate") else result


def _is_null_row(value: Scalar, negate: bool) -> Scalar:
    """A row IS NULL when all its fields are, and IS NOT NULL when none is."""
    assert isinstance(value.type, t.Record)
    fields = [Is(FieldRef(value, at), None) for at in range(len(value.type.fields))]
    return And(tuple(Not(each) if negate else each for each in fields))


def _distinct_from(negated: bool) -> Callable[[Any, Row], Scalar]:
    def distinct(a: Scalar, b: Scalar, tree: exp.Binary) -> Scalar:
        return IsDistinct(*comparable("=", [a, b], tree))

    def act(tree: exp.Binary, row: Row) -> Scalar:
        left, right = row_fields(tree.this), row_fields(tree.expression)
        if left is None or right is None:
            found = distinct(plan(tree.this, row), plan(tree.expression, row), tree)
        else:
            found = Or(tuple(distinct(a, b, tree) for a, b in _pairs(left, right, row)))
        return Not(found) if negated else found

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
        from noonmark.sql.plan.subquery import quantified  # door: it uses this module

        return quantified("=", "any", tree.this, query, row)
    left, items = _unwrap(tree.this), tree.expressions
    if not items:
        raise unsupported("IN over something other than a list or a query", tree)
    fields = row_fields(left)
    if fields is not None:
        rows = []
        for item in items:
            others = row_fields(item)
            if others is None:
                raise DatatypeMismatch("IN mixes rows and values", position=position_of(item))
            rows.append(compare_rows("=", _pairs(fields, others, row), tree))
        return Or(tuple(rows))
    operand, *values = (plan(each, row) for each in (left, *items))
    return _in_list(operand, values, tree)


def _in_list(left: Scalar, values: list[Scalar], tree: exp.Expr) -> Scalar:
    """``x IN (a, b)``: x = a OR x = b, each compared as its type and that of x are.

    Values without columns, if there are several, have one type among them and x first.
    """
    fixed = {at for at, each in enumerate(values) if not columns_of(each)}
    if len(fixed) > 1:
        try:
            among = [left.type, *(values[at].type for at in fixed)]
            target = common_type(among, "IN")
        except (CannotCast, DatatypeMismatch):
            pass  # each on its own
        else:
            position = position_of(tree)
            values = [
                as_kind_of(each, target, position) if at in fixed else each
                for at, each in enumerate(values)
            ]
    lists: dict[Scalar, list[Scalar]] = {}
    for each in values:
        operand, value = comparable("=", [left, each], tree)
        lists.setdefault(operand, []).append(value)
    tests = tuple(InList(operand, tuple(found)) for operand, found in lists.items())
    return tests[0] if len(tests) == 1 else Or(tests)


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
    names = {exp.Like: "like", exp.ILike: "ilike", exp.SimilarTo: "similar to"}
    if type(inner) not in names:
        raise unsupported(f"ESCAPE of {type(inner).__name__}", tree)
    arguments = [plan(each, row) for each in (inner.this, inner.expression, tree.expression)]
    result = call(names[type(inner)], arguments, tree, operator=False)
    return Not(result) if inner.args.get("negate") else result


def _named_operator(tree: exp.Operator, row: Row) -> Scalar:
    """``a OPERATOR(pg_catalog.~) b``: an operator under its full name."""
    name = str(tree.args["operator"]).removeprefix("pg_catalog.").strip()
    kinds: dict[str, type[exp.Binary]] = {
        **{op: kind for kind, op in _COMPARISONS.items() if issubclass(kind, exp.Binary)},
        "~": exp.RegexpLike,
        "~*": exp.RegexpILike,
        "+": exp.Add,
        "-": exp.Sub,
    }
    negated = name.startswith("!~") and name[1:] in kinds
    kind = kinds.get(name[1:] if negated else name)
    if kind is None:
        raise unsupported(f"OPERATOR({name})", tree)
    result = plan(kind(this=tree.this, expression=tree.expression), row)
    return Not(result) if negated else result


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
    exp.JSONBDeleteAtPath: "#-",
    exp.JSONBPathExists: "@?",
    exp.ExtendsLeft: "&<",
    exp.ExtendsRight: "&>",
    exp.StartsWith: "^@",
    exp.Distance: "<->",
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

PLANNERS: dict[type[exp.Expr], Planner] = {
    **{kind: _operator(name) for kind, name in _OPERATORS.items()},
    **{kind: _comparison(op) for kind, op in _COMPARISONS.items()},
    **{kind: _pattern(name) for kind, name in _PATTERNS.items()},
    exp.Neg: _unary("-"),
    exp.BitwiseNot: _unary("~"),
    exp.Sqrt: _root("sqrt"),
    exp.Cbrt: _root("cbrt"),
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _not,
    exp.Is: _is,
    exp.NullSafeEQ: _distinct_from(negated=True),
    exp.NullSafeNEQ: _distinct_from(negated=False),
    exp.Between: _between,
    exp.In: _in,
    exp.Escape: _escape,
    exp.Operator: _named_operator,
    exp.MatchAgainst: _path_match,
}
