"""Merge: neighbours that are one operator.

Filter(Filter(R, p), q)      Filter(R, p AND q)
Project(Project(R, f), g)    Project(R, g after f), if that computes nothing twice
Project(R, all columns)      R
Distinct(Distinct(R))        Distinct(R)
"""

from __future__ import annotations

from collections import Counter

from noonmark.sql.ir.asked import is_volatile
from noonmark.sql.ir.node import walk
from noonmark.sql.ir.relation import Distinct, Filter, Project, Relation
from noonmark.sql.ir.scalar import And, ColumnRef, Literal, OuterRef, conjuncts
from noonmark.sql.rules.rewrite import bottom_up, substitute


def _merge(relation: Relation) -> Relation:
    match relation:
        case Filter(input=Filter(input=source, predicate=first), predicate=second):
            return Filter(source, And((*conjuncts(first), *conjuncts(second))))
        case Project(input=Project() as inner):
            return _projects(relation, inner)
        case Distinct(input=Distinct() as inner):
            return inner
    if isinstance(relation, Project) and _is_identity(relation):
        return relation.input
    return relation


def _projects(outer: Project, inner: Project) -> Relation:
    uses = Counter(
        node.index for each in outer.scalars for node in walk(each) if isinstance(node, ColumnRef)
    )
    trivial = (ColumnRef, OuterRef, Literal)
    if any(map(is_volatile, inner.scalars)):
        return outer  # each is asked for once a row, needed or not
    if any(n > 1 and not isinstance(inner.scalars[at], trivial) for at, n in uses.items()):
        return outer
    scalars = tuple(substitute(each, inner.scalars) for each in outer.scalars)
    return _merge(Project(inner.input, scalars, outer.names))


def _is_identity(relation: Project) -> bool:
    if relation.names != relation.input.schema.names:
        return False
    return all(
        isinstance(each, ColumnRef) and each.index == at for at, each in enumerate(relation.scalars)
    )


merge = bottom_up(_merge)
