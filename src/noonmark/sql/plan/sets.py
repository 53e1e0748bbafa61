"""VALUES, UNION, INTERSECT and EXCEPT: columns meet by position, as their common type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from noonmark.errors import InvalidSyntax
from noonmark.rows import types as t
from noonmark.rows.schema import Column, Schema
from noonmark.sql.coerce import UNKNOWN, coerce, common_type, common_type_of
from noonmark.sql.dialect import position_of
from noonmark.sql.evaluate import evaluate
from noonmark.sql.ir.asked import unsized
from noonmark.sql.ir.relation import (
    ONE_ROW,
    Constant,
    Distinct,
    Except,
    Intersect,
    Project,
    Relation,
    Union,
    distinct_names,
)
from noonmark.sql.ir.scalar import Cast, Literal, Scalar, column
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.planned import Planned
from noonmark.sql.plan.query import plan_query
from noonmark.sql.plan.row import Row
from noonmark.sql.plan.scalar import check_equality, plan
from noonmark.sql.scope import Scope


def plan_values(tree: exp.Values, frame: Frame) -> Planned:
    """The rows of VALUES."""
    rows = [each.expressions for each in tree.expressions]
    if len({len(each) for each in rows}) != 1:
        raise InvalidSyntax("VALUES lists must all be the same length", position=position_of(tree))
    places = [frame.row("VALUES", Scope(), ONE_ROW) for _ in rows]
    planned = [[plan(each, place) for each in row] for row, place in zip(rows, places, strict=True)]
    types = [
        common_type_of(values, "VALUES", position_of(tree)) for values in zip(*planned, strict=True)
    ]
    unknown = frozenset(
        at
        for at, values in enumerate(zip(*planned, strict=True))
        if all(each.type == UNKNOWN for each in values)
    )
    names = tuple(f"column{at}" for at in range(1, len(types) + 1))
    typed = [
        [coerce(each, kind, position_of(tree)) for each, kind in zip(row, types, strict=True)]
        for row in planned
    ]
    return Planned(_constant(typed, names, places), names, unknown=unknown)


def _constant(rows: list[list[Scalar]], names: tuple[str, ...], places: list[Row]) -> Relation:
    if all(isinstance(each, Literal) for row in rows for each in row):
        columns = [
            Column(name, values[0].type, any(each.nullable for each in values))
            for name, values in zip(names, zip(*rows, strict=True), strict=True)
        ]
        data = tuple(tuple(evaluate(each) for each in row) for row in rows)
        return Constant(Schema(tuple(columns)), data)
    parts = []
    for row, place in zip(rows, places, strict=True):
        assert place.relation is not None
        parts.append(Project(place.relation, tuple(row), names))
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


_SET_OPERATIONS: dict[type[exp.Expr], str] = {
    exp.Union: "UNION",
    exp.Intersect: "INTERSECT",
    exp.Except: "EXCEPT",
}


def _is_union_all(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Union) and not tree.args.get("distinct")


def _plain(tree: exp.SetOperation) -> bool:
    """Whether it is a set operation and nothing else: no ORDER BY, LIMIT or WITH of its own."""
    parts = {"this", "expression", "distinct", "by_name"}
    return not any(value for name, value in tree.args.items() if name not in parts)


def _plan_union_all(tree: exp.SetOperation, frame: Frame) -> Planned:
    """A chain of UNION ALL, however long: one union of all its queries."""
    trees: list[exp.Expr] = []
    left: Any = tree
    while _is_union_all(left) and (left is tree or _plain(left)):
        trees.append(left.expression)
        left = left.this
    sides = [plan_query(each, frame) for each in (left, *reversed(trees))]
    first = sides[0]
    if any(len(side.names) != len(first.names) for side in sides):
        raise InvalidSyntax(
            "each UNION query must have the same number of columns", position=position_of(tree)
        )
    types = [type_at(first, at) for at in range(len(first.names))]
    unknown = first.unknown
    for side in sides[1:]:
        own = [type_at(side, at) for at in range(len(types))]
        pairs = zip(types, own, strict=True)
        # Two texts whose type nobody has said are texts for a third: as if two were one at a time.
        both = unknown & side.unknown
        types = [
            UNKNOWN if at in both else common_type(list(pair), "UNION", position_of(tree))
            for at, pair in enumerate(pairs)
        ]
        unknown = both
    settled = [
        t.Text() if at in unknown else _as_written(kind, sides, at) for at, kind in enumerate(types)
    ]
    relations = tuple([_as_types(side, settled, first.names) for side in sides])
    flat: list[Relation] = []
    for each in relations:
        flat += each.inputs if isinstance(each, Union) else (each,)
    return Planned(Union(tuple(flat)), first.names, unknown=unknown)


def plan_set_operation(tree: exp.SetOperation, frame: Frame) -> Planned:
    """Two queries as one."""
    if _is_union_all(tree):
        return _plan_union_all(tree, frame)
    word = _SET_OPERATIONS[type(tree)]
    sides = [plan_query(tree.this, frame), plan_query(tree.expression, frame)]
    if len(sides[0].names) != len(sides[1].names):
        raise InvalidSyntax(
            f"each {word} query must have the same number of columns", position=position_of(tree)
        )
    types = [
        _as_written(
            common_type([type_at(side, at) for side in sides], word, position_of(tree)), sides, at
        )
        for at in range(len(sides[0].names))
    ]
    check_equality(types, tree)
    left, right = (_as_types(side, types, sides[0].names) for side in sides)
    is_distinct = bool(tree.args.get("distinct"))
    relation = _SETS[type(tree)](left, right, not is_distinct)
    unknown = sides[0].unknown & sides[1].unknown
    return Planned(relation, sides[0].names, unknown=unknown)


def type_at(planned: Planned, at: int) -> t.SqlType:
    """The type of a column; UNKNOWN where it has only literals of none."""
    return UNKNOWN if at in planned.unknown else planned.relation.schema.columns[at].type


def _as_written(kind: t.SqlType, sides: Sequence[Planned], at: int) -> t.SqlType:
    """The type without its length and digits where one side has a literal of no type."""
    return unsized(kind) if any(_has_literal(side, at) for side in sides) else kind


def _has_literal(planned: Planned, at: int) -> bool:
    """Whether a column without a type of its own is something other than NULL."""
    if at not in planned.unknown:
        return False
    relation = planned.relation
    scalar = relation.scalars[at] if isinstance(relation, Project) else None
    while isinstance(scalar, Cast):
        scalar = scalar.operand
    return not (isinstance(scalar, Literal) and scalar.value is None)


def _as_types(planned: Planned, types: list[t.SqlType], names: tuple[str, ...]) -> Relation:
    relation = planned.output()
    if [each.type for each in relation.schema] == types:
        return relation
    scalars = tuple(
        coerce(column(at, each), kind)
        for at, (each, kind) in enumerate(zip(relation.schema, types, strict=True))
    )
    return Project(relation, scalars, tuple(distinct_names(names)))


def _union(left: Relation, right: Relation, every: bool) -> Relation:
    first = left.inputs if isinstance(left, Union) else (left,)
    union = Union((*first, right))
    return union if every else Distinct(union)


_SETS: dict[type[exp.Expr], Callable[[Any, Any, bool], Relation]] = {
    exp.Union: _union,
    exp.Intersect: Intersect,
    exp.Except: Except,
}
