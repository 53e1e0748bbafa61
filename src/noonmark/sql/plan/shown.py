"""The name of an output column that has no alias: PostgreSQL's rules.

A name has a strength. A column or a function names its output for certain; a type or CASE only
where nothing inside of it does; an operator or a literal has no name.

    f(x)::int          f        the function inside is stronger than the type
    '1'::int           int4     the type, by its name in the catalog
    case ... else a    a        the ELSE is looked into
    a + 1              ?column?
"""

from __future__ import annotations

from sqlglot import exp

from noonmark.sql.plan.form import system_type_name
from noonmark.sql.plan.row import name_of

NAMELESS = "?column?"
_NONE, _WEAK, _SURE = 0, 1, 2

_BY_KIND: dict[type[exp.Expr], str] = {
    exp.Exists: "exists",
    exp.Extract: "extract",
    exp.Array: "array",
    exp.Substring: "substring",
    exp.StrPosition: "position",
    exp.Overlay: "overlay",
    exp.Overlaps: "overlaps",
    exp.Normalize: "normalize",
    exp.Tuple: "row",
    exp.AtTimeZone: "timezone",
    exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
    exp.CurrentSchema: "current_schema",
    exp.CurrentCatalog: "current_catalog",
    exp.CurrentDate: "current_date",
    exp.CurrentTime: "current_time",
    exp.CurrentTimestamp: "current_timestamp",
    exp.Localtime: "localtime",
    exp.Localtimestamp: "localtimestamp",
}
_TRIMS = {"LEADING": "ltrim", "TRAILING": "rtrim"}
_TYPES: dict[exp.DType, str] = {
    exp.DType.BOOLEAN: "bool",
    exp.DType.SMALLINT: "int2",
    exp.DType.INT: "int4",
    exp.DType.BIGINT: "int8",
    exp.DType.FLOAT: "float4",
    exp.DType.DOUBLE: "float8",
    exp.DType.DECIMAL: "numeric",
    exp.DType.CHAR: "bpchar",
    exp.DType.VARBINARY: "bytea",
}


def shown_name(tree: exp.Expr) -> str:
    """PostgreSQL's name of an output column without an alias."""
    return _named(tree)[0]


def _named(tree: exp.Expr) -> tuple[str, int]:
    match tree:
        case exp.Column():
            return name_of(tree.this), _SURE
        case exp.Dot():
            inner = tree.expression
            return name_of(inner.this if isinstance(inner, exp.Anonymous) else inner), _SURE
        case exp.Alias():
            return name_of(tree.args["alias"]), _SURE
        case exp.Anonymous():
            name = name_of(tree.this)
            return (name, _SURE) if name.isidentifier() else (NAMELESS, _NONE)
        case exp.Paren() | exp.Window() | exp.Filter() | exp.WithinGroup() | exp.Bracket():
            return _named(tree.this)
        case exp.Collate():
            return _named(tree.this)
        case exp.Cast():
            inside = _named(tree.this)
            return inside if inside[1] == _SURE else (type_shown(tree.args["to"]), _WEAK)
        case exp.Interval():
            return "interval", _WEAK
        case exp.Case():
            default = tree.args.get("default")
            inside = (NAMELESS, _NONE) if default is None else _named(default)
            return inside if inside[1] == _SURE else ("case", _WEAK)
        case exp.Trim():
            return _TRIMS.get(str(tree.args.get("position") or "").upper(), "btrim"), _SURE
        case exp.Subquery() | exp.Select():
            return _of_query(tree)
    kind = _BY_KIND.get(type(tree))
    return (NAMELESS, _NONE) if kind is None else (kind, _SURE)


def _of_query(tree: exp.Expr) -> tuple[str, int]:
    """A subquery as a value is named after its one column."""
    inner = tree.this if isinstance(tree, exp.Subquery) else tree
    while isinstance(inner, exp.SetOperation | exp.Subquery):
        inner = inner.this
    if isinstance(inner, exp.Values):
        return "column1", _SURE
    first = inner.expressions[:1] if isinstance(inner, exp.Select) else []
    return (_named(first[0])[0], _SURE) if first else (NAMELESS, _NONE)


def type_shown(tree: exp.Expr) -> str:
    """A type by its name in PostgreSQL's catalog; an array by that of its elements."""
    if isinstance(tree, exp.DataType) and tree.this == exp.DType.ARRAY and tree.expressions:
        return type_shown(tree.expressions[0])
    system = system_type_name(tree)
    if system is not None:
        return system.partition("(")[0]
    return _TYPES.get(tree.this) or str(getattr(tree.this, "name", tree.this)).lower()
