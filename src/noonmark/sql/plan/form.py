"""Expressions with a syntax of their own: CASE, casts, EXTRACT, ARRAY[], subqueries, ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from noonmark.errors import (
    CannotCast,
    DatatypeMismatch,
    InvalidSyntax,
    NoonmarkError,
    OutOfRange,
)
from noonmark.rows import types as t
from noonmark.rows.domain import Domain
from noonmark.sql.assign import is_assignable
from noonmark.sql.coerce import UNKNOWN, coerce, settle
from noonmark.sql.dialect import position_of
from noonmark.sql.functions import FUNCTIONS
from noonmark.sql.functions.cast import TEXTS
from noonmark.sql.functions.errors import IndeterminateType
from noonmark.sql.functions.number.fit import numeric_for
from noonmark.sql.functions.time.extract import NO_FIELD
from noonmark.sql.functions.time.unit import unit_name
from noonmark.sql.ir.scalar import (
    Case,
    FieldRef,
    Literal,
    MakeArray,
    MakeRecord,
    Scalar,
    When,
)
from noonmark.sql.plan.domain import checked
from noonmark.sql.plan.registered import REGISTERED, name_of_number
from noonmark.sql.plan.row import Row, Statement, name_of, unsupported
from noonmark.sql.plan.scalar import (
    Planner,
    call,
    compare,
    plan,
    plan_boolean,
    plan_value,
    same_type,
)


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
    last = Literal(UNKNOWN, None) if default is None else plan(default, row)
    # Of types that become each other, PostgreSQL takes that of ELSE before all others.
    otherwise, *results = same_type([last, *values], "CASE", tree)
    whens = tuple(When(c, v) for c, v in zip(conditions, results, strict=True))
    return Case(whens, otherwise)


def written_type(tree: exp.Expr) -> tuple[str, ...] | None:
    """The parts of the name of a type that is none of PostgreSQL's grammar."""
    kind = tree.args.get("kind") if isinstance(tree, exp.DataType) else None
    if isinstance(kind, exp.Identifier):
        return (name_of(kind),)
    if isinstance(kind, exp.Dot) and isinstance(kind.this, exp.Identifier):
        return name_of(kind.this), name_of(kind.expression)
    return None


def made_type(tree: exp.Expr, statement: Statement) -> t.SqlType | None:
    """The type that somebody made of the name that a syntax tree spells, or its array."""
    kept: t.SqlType | None = tree.meta.get(_MADE)
    if kept is not None:
        return kept
    if isinstance(tree, exp.DataType) and tree.this == exp.DType.ARRAY and tree.expressions:
        element = made_type(tree.expressions[0], statement)
        if isinstance(element, Domain):
            raise unsupported(f"an array of domain {element}", tree)
        return None if element is None else t.Array(element)
    parts = written_type(tree)
    if parts is None or parts[:-1] == ("pg_catalog",):
        return None
    return statement.types(parts)


_MADE = "made"


def cast_tree(tree: exp.Expr, kind: t.SqlType) -> exp.Cast:
    """The tree of a cast to a type that is known."""
    to = exp.DataType(this=exp.DType.USERDEFINED)
    to.meta[_MADE] = kind
    return exp.Cast(this=tree, to=to)


def with_types(tree: exp.Expr, types: Callable[[Sequence[str]], t.SqlType | None]) -> exp.Expr:
    """The tree of a text that was kept: each name of a type means what it means there."""
    for node in tree.walk():
        parts = written_type(node)
        if parts is not None:
            node.meta[_MADE] = types(parts)
    return tree


def type_named(tree: exp.Expr, statement: Statement) -> t.SqlType:
    """The type that a syntax tree spells, where only a cast asks what a domain asks."""
    made = made_type(tree, statement)
    if isinstance(made, Domain):
        raise unsupported(f"domain {made} here", tree, "Cast the column to it.")
    if made is not None:
        return made
    try:
        return t.parse_type(tree.sql(dialect="postgres"))
    except NoonmarkError as error:
        error.position = error.position or position_of(tree)
        raise


def _empty_array(tree: exp.Cast, row: Row) -> Scalar | None:
    """``ARRAY[]::integer[]``: only the cast says of what it is."""
    inner = tree.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if not isinstance(inner, exp.Array) or inner.expressions:
        return None
    made = made_type(tree.args["to"], row.statement)
    if isinstance(made, Domain) and isinstance(made.base, t.Array):
        return checked(MakeArray(made.base, ()), made)
    target = made or type_named(tree.args["to"], row.statement)
    return MakeArray(target, ()) if isinstance(target, t.Array) else None


def _cast(tree: exp.Cast, row: Row) -> Scalar:
    empty = _empty_array(tree, row)
    if empty is not None:
        return empty
    scalar = plan(tree.this, row)
    spelled = system_type_name(tree.args["to"])
    if row.statement.session is not None and (spelled in SYSTEM_TYPES or spelled in REGISTERED):
        return _of_the_catalog(spelled, scalar, tree, row)
    made = made_type(tree.args["to"], row.statement)
    if isinstance(made, Domain):
        position = position_of(tree)
        return checked(cast_to(scalar, made.base, position), made, position)
    if spelled is not None and made is None:
        return cast_to(scalar, t.parse_type(spelled), position_of(tree))
    target = made or type_named(tree.args["to"], row.statement)
    if isinstance(target, TEXTS):
        scalar = name_of_number(scalar, row.statement)
    return cast_to(scalar, target, position_of(tree))


_OIDS = 1 << 32


def _oid(literal: Literal, position: int | None) -> Scalar:
    """A number as an oid, which has no sign; one that no integer holds is a bigint."""
    if literal.value is None:
        return Literal(t.Integer("oid"), None)
    wide = coerce(literal, t.BigInt(), position)
    if not isinstance(wide, Literal):
        raise CannotCast(f"cannot cast type {literal.type} to oid", position=position)
    number: int = wide.value
    least = 0 if isinstance(literal.type, t.BigInt) else -(_OIDS >> 1)
    if not least <= number < _OIDS:
        raise OutOfRange("OID out of range", position=position)
    unsigned = number % _OIDS
    kind = t.Integer if unsigned < _OIDS >> 1 else t.BigInt
    return Literal(kind("oid"), unsigned)


#: Types of PostgreSQL's catalog that ours has as another type: an oid is an integer here.
SYSTEM_TYPES: dict[str, t.SqlType] = {
    **{name: t.Integer(name) for name in ("oid", "xid")},
    **{name: t.Text(name) for name in ("name", "char", "cstring", "pg_node_tree")},
    "int2vector": t.Array(t.SmallInt()),
    "oidvector": t.Array(t.Integer("oid")),
    **{f"{name}[]": t.Array(t.Integer(name)) for name in ("oid", "xid")},
    **{f"{name}[]": t.Array(t.Text(name)) for name in ("name", "char")},
}


def system_type_name(tree: exp.Expr) -> str | None:
    """The name of a type that is qualified, quoted or of the catalog; None for ordinary ones."""
    if isinstance(tree, exp.ObjectIdentifier):
        return str(tree.this).lower()
    if not isinstance(tree, exp.DataType):
        return None
    if tree.this == exp.DType.NAME:
        return "name"
    if tree.this == exp.DType.ARRAY and tree.expressions:
        inner = system_type_name(tree.expressions[0])
        return None if inner is None else f"{inner}[]"
    kind = tree.args.get("kind")
    if isinstance(kind, exp.Dot):
        return name_of(kind.expression)
    return name_of(kind) if isinstance(kind, exp.Identifier) else None


def _of_the_catalog(spelled: str, scalar: Scalar, tree: exp.Cast, row: Row) -> Scalar:
    """A cast to a type of PostgreSQL's catalog: a name becomes its oid, an oid its name."""
    from noonmark.sql.plan.function import ask  # door: it plans arguments by this module

    known: str = getattr(scalar.type, "told", "")
    if known == spelled:
        return scalar
    if spelled in REGISTERED:
        return ask(spelled, [settle(scalar)], tree, row)
    if known in REGISTERED and spelled == "oid" and isinstance(scalar.type, t.Text):
        scalar = ask(known, [coerce(scalar, t.Text())], tree, row)
    if spelled == "oid" and isinstance(scalar, Literal):
        if isinstance(scalar.type, TEXTS):
            scalar = Literal(UNKNOWN, scalar.value)
        return _oid(scalar, position_of(tree))
    if spelled in ("name", "char"):
        number = spelled == "char" and isinstance(scalar.type, t.Integer)
        text = call("chr", [scalar], tree, False) if number else coerce(scalar, t.Text())
        name = spelled if spelled == "name" else f'"{spelled}"'
        return call(name, [text], tree, operator=False)
    return coerce(scalar, SYSTEM_TYPES[spelled], position_of(tree))


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
    source = plan(tree.expression, row)
    name = f"extract {unit_name(tree.this.name)}"
    kinds = [each.parameters for each in FUNCTIONS.by_name.get(name, ())]
    if (type(source.type),) in kinds:
        return call(name, [source], tree, operator=False)
    field = Literal(t.Text(), tree.this.name)
    return call(NO_FIELD, [field, source], tree, operator=False)


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
    return call("position", arguments, tree, operator=False)


def _overlay(tree: exp.Overlay, row: Row) -> Scalar:
    parts = [tree.this, tree.expression, tree.args["from_"], tree.args.get("for_")]
    return call("overlay", [plan(p, row) for p in parts if p is not None], tree, operator=False)


def _normalize(tree: exp.Normalize, row: Row) -> Scalar:
    form = tree.args.get("form")
    arguments = [plan(tree.this, row), *([Literal(t.Text(), form.name)] if form else [])]
    return call("normalize", arguments, tree, operator=False)


def _overlaps(tree: exp.Overlaps, row: Row) -> Scalar:
    spans = [tree.this, tree.expression]
    for span, side in zip(spans, ("left", "right"), strict=True):
        if not isinstance(span, exp.Tuple) or len(span.expressions) != 2:
            message = f"wrong number of parameters on {side} side of OVERLAPS expression"
            raise InvalidSyntax(message, position=position_of(span))
    ends = [plan(each, row) for span in spans for each in span.expressions]
    return call("overlaps", ends, tree, operator=False)


def _at_time_zone(tree: exp.AtTimeZone, row: Row) -> Scalar:
    return call("timezone", [plan(tree.args["zone"], row), plan(tree.this, row)], tree, False)


def _array(tree: exp.Array, row: Row) -> Scalar:
    items = [plan(each, row) for each in tree.expressions]
    if not items:
        raise IndeterminateType(
            "cannot determine type of empty array",
            hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].",
            position=position_of(tree),
        )
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
        return _member(array, at, tree, row)
    is_slice = isinstance(at, exp.Slice)
    if isinstance(array.type, t.Text) and row.statement.session is not None and not is_slice:
        from noonmark.sql.plan.function import ask  # door: it plans arguments by this module

        return ask("name_character", [array, plan(at, row)], tree, row)
    if not isinstance(array.type, t.Array):
        message = f"cannot subscript type {array.type} because it does not support subscripting"
        raise DatatypeMismatch(message, position=position_of(tree))
    if not is_slice:
        return call("subscript", [array, _place(at, row)], tree, operator=False)
    if at.this is None or at.expression is None:
        raise unsupported("a slice without both bounds", tree)
    bounds = [_place(each, row) for each in (at.this, at.expression)]
    return call("slice", [array, *bounds], tree, operator=False)


def _place(tree: exp.Expr, row: Row) -> Scalar:
    """A subscript of an array: an integer, or what goes into one without a written cast."""
    place = plan(tree, row)
    if place.type != UNKNOWN and not is_assignable(place.type, t.Integer()):
        message = "array subscript must have type integer"
        raise DatatypeMismatch(message, position=position_of(tree))
    return coerce(place, t.Integer(), position_of(tree))


def _member(document: Scalar, at: exp.Expr, tree: exp.Bracket, row: Row) -> Scalar:
    """A subscript of a document: a step of a path, whether it is written as text or as a number."""
    if isinstance(at, exp.Slice):
        message = "jsonb subscript does not support slices"
        raise DatatypeMismatch(message, position=position_of(tree))
    step = settle(plan(at, row))
    if not isinstance(step.type, t.Text | t.Varchar | t.SmallInt | t.Integer):
        raise DatatypeMismatch(
            f"subscript type {step.type} is not supported",
            detail="jsonb subscript must be coercible to either integer or text.",
            position=position_of(tree),
        )
    path = MakeArray(t.Array(t.Text()), (coerce(step, t.Text()),))
    return call("#>", [document, path], tree, operator=True)


def _dot(tree: exp.Dot, row: Row) -> Scalar:
    if isinstance(tree.expression, exp.Anonymous) and isinstance(tree.this, exp.Identifier):
        if name_of(tree.this) not in ("pg_catalog", "information_schema", "mz_internal"):
            raise unsupported(f"a function of the schema {name_of(tree.this)}", tree)
        return plan(tree.expression, row)
    source, field = plan(tree.this, row), name_of(tree.expression)
    names = [f.name for f in source.type.fields] if isinstance(source.type, t.Record) else []
    if field not in names:
        raise DatatypeMismatch(
            f'column "{field}" not found in data type {source.type}', position=position_of(tree)
        )
    return FieldRef(source, names.index(field))


def _subquery(tree: exp.Expr, row: Row) -> Scalar:
    from noonmark.sql.plan.subquery import scalar_subquery  # door: it uses this module

    return scalar_subquery(tree, row)


def _exists(tree: exp.Exists, row: Row) -> Scalar:
    from noonmark.sql.plan.subquery import exists  # door: it uses this module

    return exists(tree.this, row)


_CONSTANTS: dict[type[exp.Expr], str] = {
    exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
    exp.CurrentSchema: "current_schema",
    exp.CurrentCatalog: "current_database",
    exp.CurrentRole: "current_user",
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "now",
    exp.Localtimestamp: "localtimestamp",
    exp.CurrentTime: "current_time",
    exp.Localtime: "localtime",
}


def _constant(tree: exp.Expr, row: Row) -> Scalar:
    """Words without brackets that the session answers."""
    from noonmark.sql.plan.function import ask  # door: it plans arguments by this module

    return ask(_CONSTANTS[type(tree)], [], tree, row)


def _ordered_set(tree: exp.WithinGroup, row: Row) -> Scalar:
    from noonmark.sql.plan.function import plan_ordered_set  # door: it casts, as this module does

    return plan_ordered_set(tree, row)


def _function(tree: exp.Anonymous, row: Row) -> Scalar:
    from noonmark.sql.plan.function import plan_function  # door: it uses this module

    return plan_function(tree, row)


PLANNERS: dict[type[exp.Expr], Planner] = {
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Collate: _collate,
    exp.Extract: _extract,
    exp.Substring: _substring,
    exp.Trim: _trim,
    exp.StrPosition: _position,
    exp.Overlay: _overlay,
    exp.Overlaps: _overlaps,
    exp.Normalize: _normalize,
    exp.AtTimeZone: _at_time_zone,
    exp.Array: _array,
    exp.Tuple: _tuple,
    exp.Bracket: _bracket,
    exp.Dot: _dot,
    exp.Subquery: _subquery,
    exp.Select: _subquery,
    exp.Exists: _exists,
    **dict.fromkeys(_CONSTANTS, _constant),
    exp.Anonymous: _function,
    exp.WithinGroup: _ordered_set,
}
