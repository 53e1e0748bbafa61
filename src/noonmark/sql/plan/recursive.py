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

from noonmark.errors import DatatypeMismatch, DuplicateAlias, InvalidSyntax
from noonmark.rows import types as t
from noonmark.rows.schema import Column, Schema
from noonmark.sql.coerce import coerce, common_type, is_implicit
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
from noonmark.sql.plan.sets import type_at


def uses_itself(cte: exp.CTE, name: str) -> bool:
    """Whether the query of the name reads the name."""
    return any(
        isinstance(table.this, exp.Identifier)
        and table.args.get("db") is None
        and name_of(table.this) == name
        for table in cte.this.find_all(exp.Table)
    )


def plan_recursive(
    cte: exp.CTE, name: str, unique: str, frame: Frame
) -> tuple[Relation, list[str]]:
    """The fixpoint of a name, and what its columns are called."""
    tree = cte.this
    if not isinstance(tree, exp.Union):
        raise unsupported("a recursive query that is not base UNION [ALL] step", cte)
    only(tree, "this", "expression", "distinct")
    base, shown = name_columns(cte, name, plan_query(tree.this, frame))
    columns = Schema(tuple(Column(each.name, _growing(each.type)) for each in base.schema))
    base = _as_types(base, columns)
    itself = Get(unique, columns)
    planned = plan_query(tree.expression, frame.binding(name, itself, shown))
    step = planned.output()
    _check_columns(columns, planned, name, tree)
    _check_step(step, unique, tree)
    value: Relation = Union((base, _as_types(step, columns)))
    value = Distinct(value) if tree.args.get("distinct") else value
    return Recursive((unique,), (value,), Get(unique, columns)), shown


def _growing(kind: t.SqlType) -> t.SqlType:
    """Numbers without their digits: what a step adds to a numeric(3,1) has more than that."""
    return t.Numeric() if isinstance(kind, t.Numeric) else kind


def _as_types(relation: Relation, columns: Schema) -> Relation:
    if [each.type for each in relation.schema] == [each.type for each in columns]:
        return relation
    pairs = enumerate(zip(relation.schema, columns, strict=True))
    scalars = tuple(coerce(column(at, own), wanted.type) for at, (own, wanted) in pairs)
    return Project(relation, scalars, columns.names)


def _check_columns(base: Schema, step: Planned, name: str, tree: exp.Union) -> None:
    """The base alone says of what types the rows are: what a step gives must not need a wider one.

    Raises:
        InvalidSyntax: the two have not the same number of columns.
        DatatypeMismatch: a column of both together would have another type than the base's.
    """
    if len(step.names) != len(base):
        raise InvalidSyntax(
            "each UNION query must have the same number of columns", position=position_of(tree)
        )
    for at, column_ in enumerate(base):
        overall = common_type([column_.type, type_at(step, at)], "UNION", position_of(tree))
        if _growing(overall) != column_.type:
            raise DatatypeMismatch(
                f'recursive query "{name}" column {at + 1} has type {column_.type} '
                f"in non-recursive term but type {overall} overall",
                hint="Cast the output of the non-recursive term to the correct type.",
                position=position_of(tree),
            )


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
            raise DuplicateAlias(
                f'WITH query name "{name}" specified more than once',
                position=position_of(cte.args["alias"]),
            )
        unique = f"{name}#{frame.statement.fresh_scope()}"
        names.append(name)
        uniques.append(unique)
        declared_ = _declared_columns(cte)
        inner = inner.binding(name, Get(unique, declared_), declared_.names)
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
