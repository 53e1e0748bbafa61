"""WITH RECURSIVE: a name that is used in its own query.

``r AS (base UNION [ALL] step)``, where only the step uses r. It means the fixpoint of
``r = base UNION [ALL] step(r)``, from nothing: for a step that takes each row of r by itself, this
is what PostgreSQL computes.

``WITH MUTUALLY RECURSIVE`` has several names, each of which may use all: they mean the fixpoint of
all of them together, from nothing, under the columns that they declare.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from noonmark.errors import DatatypeMismatch, InvalidSyntax
from noonmark.rows.schema import Column, Schema
from noonmark.sql.coerce import coerce, is_implicit
from noonmark.sql.dialect import position_of
from noonmark.sql.ir.node import walk_once
from noonmark.sql.ir.relation import (
    Aggregate,
    Distinct,
    Except,
    Get,
    Project,
    Recursive,
    Relation,
    TopK,
    Union,
    Window,
)
from noonmark.sql.ir.scalar import column
from noonmark.sql.mutual import Declared
from noonmark.sql.plan.frame import Frame, only
from noonmark.sql.plan.planned import Planned
from noonmark.sql.plan.query import name_columns, plan_query
from noonmark.sql.plan.row import name_of, unsupported


def uses_itself(cte: exp.CTE, name: str) -> bool:
    """Whether the query of the name reads the name."""
    return any(
        isinstance(table.this, exp.Identifier)
        and table.args.get("db") is None
        and name_of(table.this) == name
        for table in cte.this.find_all(exp.Table)
    )


def plan_recursive(cte: exp.CTE, name: str, unique: str, frame: Frame) -> Relation:
    """The fixpoint of a name."""
    tree = cte.this
    if not isinstance(tree, exp.Union):
        raise unsupported("a recursive query that is not base UNION [ALL] step", cte)
    only(tree, "this", "expression", "distinct")
    base = name_columns(cte, name, plan_query(tree.this, frame))
    columns = Schema(tuple(Column(each.name, each.type) for each in base.schema))
    itself = Get(unique, columns)
    step = plan_query(tree.expression, frame.binding(name, itself)).output()
    _check_step(step, unique, tree)
    if [c.type for c in step.schema] != [c.type for c in columns]:
        scalars = [
            coerce(column(at, c), columns.columns[at].type) for at, c in enumerate(step.schema)
        ]
        step = Project(step, tuple(scalars), columns.names)
    value: Relation = Union((base, step))
    value = Distinct(value) if tree.args.get("distinct") else value
    return Recursive((unique,), (value,), Get(unique, columns))


def _check_step(step: Relation, unique: str, tree: exp.Expr) -> None:
    """Only steps that take each row of the name by itself: for others the two meanings differ."""
    for node in walk_once(step):
        if isinstance(node, Aggregate | Distinct | Except | TopK | Window):
            inside = (n for n in walk_once(node) if isinstance(n, Get))
            if any(get.name == unique for get in inside):
                raise unsupported(
                    f"{type(node).__name__} over the recursive name inside WITH RECURSIVE", tree
                )


def plan_mutual(tree: exp.Expr, with_: exp.With, frame: Frame) -> Planned:
    """A query over names that use each other."""
    names: list[str] = []
    uniques: list[str] = []
    inner = frame
    for cte in with_.expressions:
        only(cte, "this", "alias", "materialized")
        name = name_of(cte.args["alias"].this)
        if name in names:
            raise InvalidSyntax(
                f'WITH query name "{name}" specified more than once',
                position=position_of(cte.args["alias"]),
            )
        unique = f"{name}#{frame.statement.fresh_scope()}"
        names.append(name)
        uniques.append(unique)
        inner = inner.binding(name, Get(unique, _declared_columns(cte)))
    values = [
        _as_declared(cte, plan_query(cte.this, inner).output(), name)
        for cte, name in zip(with_.expressions, names, strict=True)
    ]
    body = tree.copy()
    body.set("with_", None)
    planned = plan_query(body, inner)
    declared: Declared = with_.expressions[0].meta["declared"]
    relation = Recursive(
        tuple(uniques), tuple(values), planned.relation, declared.limit, declared.returns
    )
    return replace(planned, relation=relation)


def _declared_columns(cte: exp.CTE) -> Schema:
    declared: Declared = cte.meta["declared"]
    names = [name_of(each) for each in cte.args["alias"].args.get("columns") or ()]
    pairs = zip(names, declared.types, strict=True)
    return Schema(tuple(Column(name, kind) for name, kind in pairs))


def _as_declared(cte: exp.CTE, value: Relation, name: str) -> Relation:
    """The value under the columns that its name declares."""
    columns = _declared_columns(cte)
    found = [each.type for each in value.schema]
    if len(found) != len(columns):
        raise DatatypeMismatch(
            f'WITH MUTUALLY RECURSIVE query "{name}" declared {len(columns)} columns, '
            f"but has {len(found)}",
            position=position_of(cte.args["alias"]),
        )
    scalars = []
    for at, (own, wanted) in enumerate(zip(value.schema, columns, strict=True)):
        if not is_implicit(own.type, type(wanted.type)):
            raise DatatypeMismatch(
                f'column "{wanted.name}" of "{name}" is declared {wanted.type}, '
                f"but its query gives {own.type}",
                position=position_of(cte.args["alias"]),
            )
        scalars.append(coerce(column(at, own), wanted.type))
    return Project(value, tuple(scalars), columns.names)
