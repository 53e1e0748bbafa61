"""Joins that keep rows, and lateral ones, whose condition has subqueries.

Law (beside): beside a row that the join keeps stand the rows of the other side for which the whole
condition is TRUE, and one of NULL if there is none. So what is asked of the other side alone
filters that side before the join; what is asked of both is asked of the other side for each row
that is kept; and what has no subquery is the condition of the join.

A full join is the left join and, beside NULL, the right rows that no left row stands beside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from noonmark.rows.schema import Schema
from noonmark.sql.dialect import position_of
from noonmark.sql.ir.relation import (
    Apply,
    Join,
    JoinKind,
    Project,
    Relation,
    Union,
    beside,
    distinct_names,
)
from noonmark.sql.ir.scalar import Literal, OuterRef, Scalar, column, conjunction
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.row import Row, name_of
from noonmark.sql.plan.scalar import plan_boolean
from noonmark.sql.scope import Scope

_PLACE = "JOIN conditions"


@dataclass(frozen=True)
class Side:
    """The rows of one side of a join, and their names."""

    relation: Relation
    scope: Scope

    @property
    def width(self) -> int:
        """How many columns it has."""
        return len(self.relation.schema)


def join_by_queries(
    kind: JoinKind, sides: tuple[Side, Side], on: exp.Expr, frame: Frame
) -> Relation:
    """A left, right or full join of two sides."""
    left, right = sides
    if kind is JoinKind.LEFT:
        return _kept(kind, left, right, on, frame)
    names = distinct_names([*left.relation.schema.names, *right.relation.schema.names])
    if kind is JoinKind.RIGHT:
        return _turned(_kept(JoinKind.LEFT, right, left, on, frame), right.width, names)
    both = _kept(JoinKind.LEFT, left, right, on, frame)
    alone = _kept(JoinKind.ANTI, right, left, on, frame)
    nothing = [Literal(each.type, None) for each in left.relation.schema]
    own = [column(at, each) for at, each in enumerate(alone.schema)]
    return Union((both, Project(alone, (*nothing, *own), tuple(names))))


def matching(
    trees: Sequence[exp.Expr],
    outside: Schema,
    number: int,
    right: Relation,
    see: Callable[[Relation], Row],
) -> Relation:
    """The right rows for which conditions are TRUE, of the left row of the `Apply` of a number.

    `see` is what an expression sees of left and right rows beside each other.
    """
    from noonmark.sql.plan.subquery import filter_by  # door: subqueries stand on queries, over FROM

    refs: list[Scalar] = [
        OuterRef(each.type, each.nullable, number, at, each.name) for at, each in enumerate(outside)
    ]
    own = [column(at, each) for at, each in enumerate(right.schema)]
    names = distinct_names([*outside.names, *right.schema.names])
    found: Relation = Project(right, (*refs, *own), tuple(names))
    for each in trees:
        found = filter_by(each, see(found))
    return _columns(found, len(outside), right.schema)


def _kept(kind: JoinKind, left: Side, right: Side, on: exp.Expr, frame: Frame) -> Relation:
    """The left rows: with the right ones beside them, or those that have none."""
    from noonmark.sql.plan.subquery import conjunct_trees, filter_by  # door: as above

    trees = list(conjunct_trees(on))
    asking = [each for each in trees if each.find(exp.Query)]
    crossing = [each for each in asking if _may_name(each, left.scope)]
    scope = left.scope.beside(right.scope, left.width, position_of(on))
    row = frame.row(_PLACE, scope)
    row.columns = tuple(beside(left.relation.schema, right.relation.schema))
    plain = conjunction([plan_boolean(e, row, "JOIN/ON") for e in trees if e not in asking])
    relation = right.relation
    for each in asking:
        if each not in crossing:
            found = filter_by(each, frame.row(_PLACE, right.scope, relation))
            relation = _columns(found, 0, relation.schema)
    if not crossing:
        return Join(kind, left.relation, relation, on=plain)
    number, see = frame.statement.fresh_scope(), partial(frame.row, _PLACE, scope)
    matches = matching(crossing, left.relation.schema, number, relation, see)
    return Apply(kind, left.relation, matches, number, plain)


def _turned(relation: Relation, first: int, names: Sequence[str]) -> Relation:
    """The relation with its first columns behind the others."""
    columns = [column(at, each) for at, each in enumerate(relation.schema)]
    return Project(relation, (*columns[first:], *columns[:first]), tuple(names))


def _columns(found: Relation, first: int, schema: Schema) -> Relation:
    """The columns of a schema, which stand from a place on, without what was attached to them."""
    places = range(first, first + len(schema))
    if len(found.schema) == len(schema):
        return found
    kept = tuple(column(at, found.schema.columns[at]) for at in places)
    return Project(found, kept, schema.names)


def _may_name(tree: exp.Expr, scope: Scope) -> bool:
    """Whether some name in a condition may be one of the scope."""
    names = {each.name for each in scope.entries} | set(scope.tables)
    for each in tree.find_all(exp.Column):
        table = each.args.get("table")
        if table is not None and name_of(table) in scope.tables:
            return True
        if table is None and (isinstance(each.this, exp.Star) or name_of(each.this) in names):
            return True
    return False
