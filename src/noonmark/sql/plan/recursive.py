"""WITH RECURSIVE: a name that is used in its own query.

``r AS (base UNION [ALL] step)``, where only the step uses r. It means the fixpoint of
``r = base UNION [ALL] step(r)``, from nothing: for a step that takes each row of r by itself, this
is what PostgreSQL computes.
"""

from __future__ import annotations

from sqlglot import exp

from noonmark.rows.schema import Column, Schema
from noonmark.sql.coerce import coerce
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
from noonmark.sql.plan.frame import Frame, only
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
