"""Imply: what an alternative over both sides of an inner join demands of each side alone.

    (l1 AND r1 AND ..) OR (l2 AND r2 AND ..)    implies    l1 OR l2    and    r1 OR r2

The condition stays; each side is filtered by what it implies, if every alternative says something
of that side which cannot fail. Asked again, the rule adds what is there already, and `fold` drops
it.
"""

from __future__ import annotations

from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.relation import Join, JoinKind, Relation
from noonmark.sql.rules.rewrite import bottom_up, filtered, onto


def _imply(relation: Relation) -> Relation:
    if not isinstance(relation, Join) or relation.kind is not JoinKind.INNER:
        return relation
    width = len(relation.left.schema)
    left = set(range(width))
    right = set(range(width, width + len(relation.right.schema)))
    ors = [part for part in s.conjuncts(relation.on) if isinstance(part, s.Or)]
    to_left = [p for part in ors if (p := _of_side(part, left)) is not None]
    to_right = [p for part in ors if (p := _of_side(part, right)) is not None]
    if not to_left and not to_right:
        return relation
    moved = [onto(part, relation.right.schema, lambda at: at - width) for part in to_right]
    return Join(
        relation.kind,
        filtered(relation.left, to_left),
        filtered(relation.right, moved),
        relation.keys,
        relation.on,
    )


def _of_side(either: s.Or, columns: set[int]) -> s.Scalar | None:
    """What the alternatives say of these columns; None if one says nothing."""
    said = []
    for part in either.parts:
        own = [
            each
            for each in s.conjuncts(part)
            if s.columns_of(each) and s.columns_of(each) <= columns and not s.may_fail(each)
        ]
        if not own:
            return None
        said.append(s.conjunction(own))
    return s.Or(tuple(said))


imply = bottom_up(_imply)
