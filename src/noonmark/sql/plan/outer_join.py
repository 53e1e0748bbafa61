"""Joins that keep rows, and lateral ones, whose condition has subqueries.

Law (beside): beside a row that the join keeps stand the rows of the other side for which the whole
condition is TRUE, and one of NULL if there is none. So what is asked of the other side alone
filters that side before the join; a subquery that is asked of one side is a column of that side;
what asks of both is asked of the other side for each row that is kept; and what has no subquery
left is the condition of the join.

A full join is the left join and, beside NULL, the right rows that no left row stands beside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from noonmark.sql.ir.scalar import (
    ColumnRef,
    Literal,
    OuterRef,
    Scalar,
    column,
    conjunction,
    map_columns,
)
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.row import Row, name_of
from noonmark.sql.plan.scalar import plan, plan_boolean
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
    relation = right.relation
    for each in asking:
        if each not in crossing:
            found = filter_by(each, frame.row(_PLACE, right.scope, relation))
            relation = _columns(found, 0, relation.schema)
    right = Side(relation, right.scope)
    both = _Both(left, right, frame)
    plain = [each for each in trees if each not in asking]
    if all(both.hoist(each) for each in crossing):
        return both.joined(kind, [*plain, *crossing])
    scope = left.scope.beside(right.scope, left.width, position_of(on))
    row = frame.row(_PLACE, scope)
    row.columns = tuple(beside(left.relation.schema, relation.schema))
    test = conjunction([plan_boolean(each, row, "JOIN/ON") for each in plain])
    number, see = frame.statement.fresh_scope(), partial(frame.row, _PLACE, scope)
    matches = matching(crossing, left.relation.schema, number, relation, see)
    return Apply(kind, left.relation, matches, number, test)


#: Expressions that are values by themselves and hold a subquery.
_VALUES = (exp.Subquery, exp.Exists, exp.In)


class _Both:
    """Two sides, to each of which subqueries are attached that ask nothing of the other."""

    def __init__(self, left: Side, right: Side, frame: Frame) -> None:
        self.sides, self.frame = (left, right), frame
        self.rows = tuple(frame.row(_PLACE, each.scope, each.relation) for each in self.sides)
        self.found: list[tuple[exp.Expr, int, Scalar]] = []

    def hoist(self, tree: exp.Expr) -> bool:
        """Attach the subqueries of an expression; whether each asks of one side alone."""
        if not tree.find(exp.Query):
            return True
        for at, row in enumerate(self.rows):
            if isinstance(tree, _VALUES) and not _may_name(tree, self.sides[1 - at].scope):
                self.found.append((tree, at, plan(tree, row)))
                return True
        if isinstance(tree, (exp.Query, exp.In, exp.Any, exp.All)):
            return False  # the rows of its query are compared with what is asked of both
        return all(self.hoist(each) for each in tree.iter_expressions())

    def joined(self, kind: JoinKind, trees: Sequence[exp.Expr]) -> Relation:
        """The join by conditions whose subqueries are columns by now, without these columns."""
        left, right = (row.relation for row in self.rows)
        assert left is not None
        assert right is not None
        width = len(left.schema)
        scope = self.sides[0].scope.beside(self.sides[1].scope, width, None)
        row = self.frame.row(_PLACE, scope)
        row.columns = tuple(beside(left.schema, right.schema))
        for tree, at, scalar in self.found:
            row.computed[tree] = scalar if at == 0 else map_columns(scalar, _shifted(width))
        on = conjunction([plan_boolean(each, row, "JOIN/ON") for each in trees])
        join = Join(kind, left, right, on=on)
        kept = list(range(self.sides[0].width))
        if kind is not JoinKind.ANTI:
            kept += range(width, width + self.sides[1].width)
        if len(kept) == len(join.schema):
            return join
        columns = [column(at, join.schema.columns[at]) for at in kept]
        return Project(join, tuple(columns), tuple(join.schema.names[at] for at in kept))


def _shifted(by: int) -> Callable[[ColumnRef], Scalar]:
    return lambda ref: replace(ref, index=ref.index + by)


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
